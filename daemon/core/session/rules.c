/* SPDX-License-Identifier: BSD-2-Clause */
/* See rules.h. */
#include "daemon/core/session/rules.h"

#include "daemon/base/mem.h"
#include "daemon/core/session/client_identity.h"

#define STEPS_OF_WORK 8 /* a step takes some 6 ns: it is a rule … */
#define BYTES_A_STEP  8 /* … or so many bytes in which a part of its pattern is looked for */

/*
 * Whether a text matches a pattern in which * stands for any bytes. What stands between two stars is looked for from left to right: the first place where
 * it is found leaves most room for what follows. What stands behind the last star is at the end.
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

/* The conditions that concern the peer. */
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

/* No rule behind one that is about all names decides anything. */
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

/* The user of a session is who has shown a secret, else who has the uid. A peer without either has only its own session. */
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
