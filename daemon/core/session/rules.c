/* SPDX-License-Identifier: BSD-2-Clause */
/* See rules.h. */
#include "daemon/core/session/rules.h"

#include "daemon/base/mem.h"
#include "daemon/core/session/client_identity.h"

/*
 * Whether a text matches a pattern in which * stands for any bytes. On a mismatch only the last star takes one byte more: an earlier one need not, because
 * what follows it was found as soon as possible.
 */
static bool pattern_matches(const char *pattern, struct span text)
{
	const char *star = NULL;
	size_t i = 0, again = 0;

	while (i < text.n) {
		if (*pattern == '*') {
			star = ++pattern;
			again = i;
		} else if (*pattern && *pattern == text.p[i]) {
			pattern++;
			i++;
		} else if (star) {
			pattern = star;
			i = ++again;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
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

const struct rule *rules_decide(const struct rules *rules, const struct session *s, const struct span *name)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct rule *r = &rules->rule[i];

		if (rule_is_for(r, s) && (!r->names || (name && pattern_matches(r->names, *name))))
			return r;
	}
	return NULL;
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
	const struct rule *r;

	if (!c->conf.rules)
		return true;
	r = rules_decide(c->conf.rules, s, &name);
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
