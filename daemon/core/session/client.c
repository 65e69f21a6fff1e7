/* SPDX-License-Identifier: BSD-2-Clause */
/* See client.h. */
#include "daemon/core/session/client.h"

#include "daemon/base/mem.h"
#include "daemon/core/lock/claim.h"
#include "proto/decimal.h"
#include "proto/json.h"

#include <inttypes.h>
#include <stdio.h>

/* Returns one copy of both texts, the second after the first. */
static char *texts_copy(const char *first, const char *second)
{
	size_t n = strlen(first) + 1, more = strlen(second) + 1;
	char *copy = mem_alloc(n + more);

	memcpy(copy, first, n);
	memcpy(copy + n, second, more);
	return copy;
}

/* For a session without identity: copies the groups of its peer, if there are some. */
static void session_set_groups(struct session *s, const struct peer *peer)
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

/* Written without a format because it runs for each row, refusal and loss with a holder. */
size_t session_who(const struct session *s, char *out)
{
	const struct session *whose = s->principal ? s->principal : s;
	struct span address = session_address(whose);
	char *at = out;

	_Static_assert(256 + 2 + 1 + 2 * (5 + DECIMAL_MAX) <= WHO_MAX, "there is room for the longest label and two numbers; an address is no longer");
	if (whose->label) {
		at = label_put(at, span_of(whose->label));
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

#define STEPS_OF_WORK 8 /* a step takes about 6 ns: it is a rule … */
#define BYTES_A_STEP  8 /* … or so many bytes that are searched for a part of its pattern */

/*
 * Whether a text matches a pattern in which * stands for any bytes. Each part between two stars is searched from left to right: its first match leaves most
 * room for the rest. The part after the last star must be at the end.
 */
static bool pattern_matches(const char *pattern, struct span text, unsigned *steps)
{
	const char *star = strchrnul(pattern, '*'), *next, *at;
	size_t n = (size_t)(star - pattern);

	if (text.n < n || memcmp(text.p, pattern, n) != 0)
		return false;
	if (!*star)
		return text.n == n;
	for (at = text.p + n; *(next = strchrnul(star + 1, '*')); at += n, star = next) {
		n = (size_t)(next - star) - 1;
		*steps += (unsigned)(text.n / BYTES_A_STEP);
		at = memmem(at, (size_t)(text.p + text.n - at), star + 1, n);
		if (!at)
			return false;
	}
	n = (size_t)(next - star) - 1;
	return (size_t)(text.p + text.n - at) >= n && memcmp(text.p + text.n - n, star + 1, n) == 0;
}

static bool group_holds(const struct session *s, int64_t group)
{
	for (unsigned i = 0; s->identity && i < s->identity->groups_n; i++)
		if (s->identity->groups[i] == group)
			return true;
	return false;
}

static bool text_holds(const char *wanted, const char *is)
{
	return !wanted || (is && strcmp(wanted, is) == 0);
}

/* The conditions on the peer. */
static bool rule_is_for(const struct rule *r, const struct session *s)
{
	const struct identity *who = s->identity;

	if (r->uid >= 0 && !(s->is_unix && s->uid == r->uid))
		return false;
	if (r->group >= 0 && !(s->is_unix && group_holds(s, r->group)))
		return false;
	return text_holds(r->user, who ? who->user : NULL) && text_holds(r->cert, s->has_subject ? session_subject(s).p : NULL);
}

static const struct rule *rules_seek(const struct rules *rules, const struct session *s, const struct span *name, unsigned *steps)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct rule *r = &rules->rule[i];

		++*steps;
		if (rule_is_for(r, s) && (!r->names || (name && pattern_matches(r->names, *name, steps))))
			return r;
	}
	return NULL;
}

const struct rule *rules_decide(const struct rules *rules, const struct session *s, const struct span *name)
{
	unsigned steps = 0;

	return rules_seek(rules, s, name, &steps);
}

/* A rule about all names decides, so the rules after it never apply. */
bool rules_allow_some(const struct rules *rules, const struct session *s, unsigned rights)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct rule *r = &rules->rule[i];

		if (!rule_is_for(r, s))
			continue;
		if (r->allow & rights)
			return true;
		if (!r->names)
			return false;
	}
	return false;
}

bool session_may_lock(const struct core *c, const struct session *s, struct span name, unsigned *ret_line)
{
	const struct rule *r = c->conf.rules ? rules_decide(c->conf.rules, s, &name) : NULL;

	*ret_line = r ? r->line : 0;
	return !c->conf.rules || (r && r->allow & RIGHT_LOCK);
}

bool session_may_look(const struct core *c, const struct session *s, struct span name)
{
	unsigned work = 0;

	return session_may_look_at(c, s, name, &work);
}

bool session_may_look_at(const struct core *c, const struct session *s, struct span name, unsigned *work)
{
	const struct rule *r;
	unsigned steps = 0;

	if (!c->conf.rules)
		return true;
	r = rules_seek(c->conf.rules, s, &name, &steps);
	*work += steps / STEPS_OF_WORK;
	return r && r->allow & RIGHT_LOOK;
}

bool session_has_claim(const struct session *s, struct span name)
{
	const struct claim *own;

	TAILQ_FOREACH(own, &s->claims, in_session)
		if (span_equal(lock_name(own->lock), name))
			return true;
	return false;
}

bool session_knows(const struct core *c, const struct session *s, struct span name)
{
	return session_may_look(c, s, name) || session_has_claim(s, name);
}

bool peer_may_look(const struct core *c, const struct peer *peer, bool some)
{
	struct session s = {.is_unix = peer->is_unix, .uid = peer->uid};
	const struct rule *r;
	bool may;

	if (!c->conf.rules)
		return true;
	session_set_groups(&s, peer);
	r = some ? NULL : rules_decide(c->conf.rules, &s, NULL);
	may = some ? rules_allow_some(c->conf.rules, &s, RIGHT_LOOK) : r && r->allow & RIGHT_LOOK;
	mem_free(s.identity);
	return may;
}

/* The user of a session is the user whose secret it has shown. Without one it is the uid. A peer with neither sees only its own session. */
static bool session_is_of_same_user(const struct session *a, const struct session *b)
{
	const char *x = a->identity ? a->identity->user : NULL, *y = b->identity ? b->identity->user : NULL;

	if (x || y)
		return x && y && strcmp(x, y) == 0;
	return a->is_unix && b->is_unix && a->uid == b->uid;
}

bool session_may_see(const struct core *c, const struct session *s, const struct session *other)
{
	const struct rule *r;

	if (!c->conf.rules || s == other || session_is_of_same_user(s, other))
		return true;
	r = rules_decide(c->conf.rules, s, NULL);
	return r && r->allow & RIGHT_ADMIN;
}

#define TEXT_MOST 512 /* bytes of a text that are written; names are not longer */
#define TEXTS     7   /* name, permit, label, user, cert, address, trace */
#define LINE_ROOM (TEXTS * (JSON_TEXT_MAX(TEXT_MOST) + 16) + 400)

static void put_bytes(void *to, const char *p, size_t n)
{
	char **at = to;

	memcpy(*at, p, n);
	*at += n;
}

static char *put(char *at, const char *text)
{
	put_bytes(&at, text, strlen(text));
	return at;
}

static char *put_text(char *at, const char *field, struct span text)
{
	if (text.n > TEXT_MOST)
		text.n = TEXT_MOST;
	at = put(at, ",");
	json_member(put_bytes, &at, span_of(field), text);
	return at;
}

static char *put_int(char *at, const char *field, int64_t n)
{
	return at + sprintf(at, ",\"%s\":%" PRId64, field, n);
}

static struct span text_of(const char *text)
{
	return text ? span_of(text) : SPAN("");
}

static char *put_peer(char *at, const struct session *s)
{
	struct span address;

	s = s->principal ? s->principal : s;
	address = s->at_unix ? SPAN("unix") : text_of(s->address);
	at = put_int(at, "session", (int64_t)s->serial);
	if (s->label)
		at = put_text(at, "label", span_of(s->label));
	if (s->is_unix) {
		at = put_int(at, "uid", s->uid);
		at = put_int(at, "pid", s->pid);
	}
	if (s->identity && s->identity->user)
		at = put_text(at, "user", span_of(s->identity->user));
	if (s->has_subject)
		at = put_text(at, "cert", session_subject(s));
	if (address.n > 0)
		at = put_text(at, "address", address);
	return at;
}

void audit_write(struct core *core, const struct audit *a)
{
	char *line = arena_reserve(&core->out->arena, LINE_ROOM), *at = line;
	struct effect *effect;

	at = put(at, ",\"event\":\"");
	at = put(put(at, a->event), "\"");
	if (a->name.n > 0)
		at = put_text(at, "name", a->name);
	if (a->permit.n > 0)
		at = put_text(at, "permit", a->permit);
	if (a->fence > 0)
		at = put_int(at, "fence", a->fence);
	if (a->victim > 0)
		at = put_int(at, "killed", (int64_t)a->victim);
	at = put_peer(at, a->session);
	if (a->held_us >= 0)
		at = put_int(at, "held_ms", a->held_us / MSEC);
	if (a->reason)
		at = put_text(at, "reason", span_of(a->reason));
	if (a->trace.n > 0)
		at = put_text(at, "trace", a->trace);
	at = put(at, "}\n");
	arena_commit(&core->out->arena, (size_t)(at - line));
	effect = effects_add(core->out, EFFECT_AUDIT);
	effect->audit.text = (struct span){line, (size_t)(at - line)};
}
