/* SPDX-License-Identifier: BSD-2-Clause */
/* HTTP on a port of the line protocol: a browser, or a program with the wrong port, gets an answer that it understands. */
#include "daemon/main/internal.h"

#include <stdio.h>
#include <string.h>

#define TEXT                                                                                        \
	"This port speaks the line protocol of redlock-protocol(7), not HTTP.\n"                    \
	"The web listener is another one: its address is listen.http in redlockd.yaml(5).\n"

void wrong_port_answer(struct daemon *d, uint64_t session)
{
	char answer[512];
	int n = snprintf(answer, sizeof(answer),
	                 "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
	                 strlen(TEXT), TEXT);

	net_send(d->net, session, answer, (size_t)n);
}
