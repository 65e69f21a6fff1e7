/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/session/client_identity.h"

#include "daemon/base/mem.h"
#include "proto/decimal.h"

#include <inttypes.h>
#include <stdio.h>

/* Both, one behind the other. */
static char *texts_copy(const char *first, const char *second)
{
	size_t n = strlen(first) + 1, more = strlen(second) + 1;
	char *copy = mem_alloc(n + more);

	memcpy(copy, first, n);
	memcpy(copy + n, second, more);
	return copy;
}

void session_set_groups(struct session *s, const struct peer *peer)
{
	struct identity *who;

	if (!peer->groups_n)
		return;
	who = s->identity = mem_alloc(sizeof(*who) + peer->groups_n * sizeof(who->groups[0]));
	who->groups_n = peer->groups_n;
	memcpy(who->groups, peer->groups, peer->groups_n * sizeof(who->groups[0]));
}

struct identity *session_identity(struct session *s)
{
	if (!s->identity)
		s->identity = mem_alloc(sizeof(*s->identity));
	return s->identity;
}

void session_set_peer(struct session_table *t, struct session *s, const struct peer *peer)
{
	char origin[PEER_MAX];

	s->is_unix = peer->is_unix;
	s->is_local = peer->is_local;
	s->is_admin = peer->is_admin;
	s->pid = peer->pid;
	s->uid = peer->uid;
	s->resumed_heartbeat_us = peer->heartbeat_us;
	s->at_unix = strcmp(peer->address, UNIX_ADDRESS) == 0;
	session_set_groups(s, peer);
	s->has_subject = peer->subject != NULL;
	if (s->has_subject)
		s->address = texts_copy(peer->address, peer->subject);
	else if (peer->address[0] && !s->at_unix)
		s->address = mem_copy(peer->address, strlen(peer->address));
	s->origin = origin_join(&t->origins, (struct span){origin, session_origin(t->core, s, origin)});
	s->origin->is_owner = session_is_owner(t->core, s);
}

struct span session_address(const struct session *s)
{
	return s->at_unix ? SPAN(UNIX_ADDRESS) : span_of(s->address ? s->address : "");
}

size_t session_origin(const struct core *core, const struct session *s, char out[PEER_MAX])
{
	struct span address = session_address(s);
	size_t n = peer_origin(s->is_unix, s->uid, address.p, address.n, out);

	_Static_assert(PEER_ORIGIN_MAX + 1 + DAEMON_ID_MAX <= PEER_MAX, "there is room for an origin and a host");
	if (s->is_local)
		n += (size_t)snprintf(out + n, PEER_MAX - n, "@%s", core->conf.host);
	return n < PEER_MAX ? n : PEER_MAX - 1;
}

bool session_is_owner(const struct core *core, const struct session *s)
{
	return s->is_unix && (s->uid == 0 || s->uid == core->conf.own_uid);
}

struct span session_subject(const struct session *s)
{
	return span_of(s->has_subject ? s->address + strlen(s->address) + 1 : "");
}

static char *client_identity_text(char *at, struct span text)
{
	memcpy(at, text.p, text.n);
	return at + text.n;
}

static char *client_identity_number(char *at, struct span word, int64_t number)
{
	char digits[DECIMAL_MAX], *end = digits + DECIMAL_MAX, *first = decimal_write_signed(end, number);

	at = client_identity_text(at, word);
	return client_identity_text(at, (struct span){first, (size_t)(end - first)});
}

/* Each refusal, row and loss shows the holder, so this is written by hand. */
size_t session_who(const struct session *s, char *out)
{
	const struct session *whose = s->principal ? s->principal : s;
	struct span address = session_address(whose);
	char *at = out;

	_Static_assert(256 + 1 + 2 * (5 + DECIMAL_MAX) <= WHO_MAX, "there is room for the longest label and two numbers; an address is no longer");
	if (whose->label) {
		at = client_identity_text(at, span_of(whose->label));
		*at++ = ' ';
	}
	if (whose->is_unix) {
		at = client_identity_number(at, SPAN("pid="), whose->pid);
		at = client_identity_number(at, SPAN(" uid="), whose->uid);
	} else if (address.n == 0) {
		at = client_identity_number(at, SPAN("session="), (int64_t)whose->serial);
	} else {
		at = client_identity_text(at, address);
	}
	return (size_t)(at - out);
}

void session_ended(struct session_table *t, const struct session *s, const char *reason)
{
	char who[WHO_MAX];

	if (core_may_log(t->core, BURST_HANGUP))
		core_log(t->core, LOG_INFO, "hang-up", "peer=%s session=%" PRIu64 " reason=%s held=%u waiting=%u",
		         core_quoted(t->core, (struct span){who, session_who(s, who)}), s->serial, reason, s->held, s->waiting);
}
