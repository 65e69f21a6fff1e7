/* SPDX-License-Identifier: BSD-2-Clause */
/* See admission.h. */
#include "daemon/net/admission.h"

#include "daemon/net/address.h"
#include "daemon/net/closing.h"
#include "daemon/net/conn.h"
#include "daemon/net/output.h"
#include "daemon/net/secure.h"

#include <stdio.h>
#include <stdlib.h>

#define REFUSED_MAX 64u /* refused connections that are closing at a time */

void admission_refuse(struct hub *h, int fd, struct ssl_st *tls, const char *line, size_t n)
{
	struct conn *c;

	if (h->refused_n >= REFUSED_MAX || hub_is_full(h)) {
		closing_send(fd, tls, line, n);
		return;
	}
	c = secure_conn_new(h, fd, tls);
	c->is_refused = true;
	conn_add_output(c, line, n);
	closing_enter(c, "refused");
	conn_flush(c);
}

static unsigned sessions_most(const struct hub *h)
{
	return h->conf.sessions_max < h->conf.connections_max ? h->conf.sessions_max : h->conf.connections_max;
}

static size_t refusal_line(const struct hub *h, enum share_left why, const struct peer *peer, char *room, size_t size)
{
	unsigned most = sessions_most(h);
	int n;

	if (why == SHARE_USED_UP)
		n = snprintf(room, size,
			     "ERR LIMIT peer=%u this peer has as many connections as it may have (limits.peer, and 15 sixteenths of limits.clients)\n",
			     shares_most(&h->shares, peer, most, h->conf.peer_max));
	else if (why == SHARE_KEPT)
		n = snprintf(room, size, "ERR LIMIT clients=%u too many connections; kept for root and the user of the daemon: %u\n", most, shares_kept(most));
	else
		n = snprintf(room, size, "ERR LIMIT clients=%u too many connections\n", most);
	return (size_t)n;
}

static void refuse_session(struct hub *h, int fd, struct ssl_st *tls, enum share_left why, const struct peer *peer)
{
	char line[160];

	h->counts.refused++;
	admission_refuse(h, fd, tls, line, refusal_line(h, why, peer, line, sizeof(line)));
}

void admission_take(struct hub *h, int fd, const struct peer *peer, struct ssl_st *tls)
{
	enum share_left left = shares_ask(&h->shares, peer, h->slots.live, sessions_most(h), h->conf.peer_max);
	struct peer known = *peer;
	uint32_t *groups = NULL;

	if (left != SHARE_LEFT) {
		refuse_session(h, fd, tls, left, peer);
		return;
	}
	if (h->conf.groups)
		known.groups = groups = admin_groups_of(fd, peer, &known.groups_n);
	conn_open(h, fd, &known, tls);
	free(groups);
}
