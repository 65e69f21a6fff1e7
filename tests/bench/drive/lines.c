/* SPDX-License-Identifier: BSD-2-Clause */
/* The line protocol: a session for each client, which waits in the queue of the daemon. */
#include "tests/bench/drive/clients.h"
#include "daemon/base/mem.h"

#include <err.h>
#include <string.h>

static struct peer *peer; /* by client */
static const struct options *options;

static void line_heard(struct peer *p, char *line, size_t n)
{
	struct client *c = client_at(p->number);

	(void)n;
	if (strncmp(line, "! LOST", 6) == 0)
		errx(1, "client %u: %s", p->number, line);
	if (line[0] == '!')
		return;
	if (strncmp(line, "OK ", 3) != 0)
		errx(1, "client %u was answered: %s", p->number, line);
	if (c->state == CLIENT_ASKING)
		client_granted(c);
	else
		client_released(c);
}

static void line_ended(struct peer *p)
{
	errx(1, "client %u was closed", p->number);
}

static const struct peer_kind kind = {.line = line_heard, .ended = line_ended};

static void lines_open(const struct options *o)
{
	options = o;
	peer = mem_alloc(o->clients * sizeof(*peer));
	for (unsigned i = 0; i < o->clients; i++)
		peer_dial(&peer[i], &kind, i);
}

static void lines_ask(struct client *c)
{
	peer_printf(&peer[c->number], "LOCK %s%u wait=60s\n", options->prefix, c->name);
	peer_flush(&peer[c->number]);
}

static void lines_release(struct client *c)
{
	peer_printf(&peer[c->number], "UNLOCK %s%u\n", options->prefix, c->name);
	peer_flush(&peer[c->number]);
}

static void lines_leave(struct client *c)
{
	peer_close(&peer[c->number]);
	peer_dial(&peer[c->number], &kind, c->number);
}

const struct driver lines_driver = {lines_open, lines_ask, lines_release, lines_leave};
