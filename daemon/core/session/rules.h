/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may do what. The rules are in order, and the first whose conditions all hold decides; where none does, the peer has no right. A condition on names
 * holds for no request that names nothing. Without rules everybody may lock and look.
 */
#ifndef CORE_RULES_H
#define CORE_RULES_H

#include "daemon/core/session/session.h"

/* The same bits as in conf.h. */
enum right { RIGHT_LOCK = 1, RIGHT_LOOK = 2, RIGHT_ADMIN = 4 };

struct rule {
	unsigned line;        /* where it is written, for people */
	int64_t uid, group;   /* -1: no such condition */
	const char *user, *cert, *names; /* NULL: no such condition. In names, * stands for any bytes */
	unsigned allow;       /* enum right */
};

struct rules {
	size_t count;
	struct rule rule[];
};

/* The users who exist, for AUTH, in the order of their names. */
struct user_names {
	size_t count;
	struct span name[];
};

/* The rule that decides about a name, or about a request that names nothing (name NULL). NULL: none. */
const struct rule *rules_decide(const struct rules *rules, const struct session *s, const struct span *name);
/* Whether there may be a name for which the session has this right. */
bool rules_allow_some(const struct rules *rules, const struct session *s, unsigned rights);

/* Whether the session may lock the name. *ret_line: of the rule that decides; 0: there is none. */
bool session_may_lock(const struct core *c, const struct session *s, struct span name, unsigned *ret_line);
/* Whether the session may look at the name: a filter for rows and pushes. */
bool session_may_look(const struct core *c, const struct session *s, struct span name);
/* The same. *work grows by what it takes to go through the rules, in units of some 50 ns: a walk through many names bounds that. */
bool session_may_look_at(const struct core *c, const struct session *s, struct span name, unsigned *work);
/* Whether it has the name, waits for it, or has lost it. */
bool session_has_claim(const struct session *s, struct span name);
/* Whether it may look at the name, or one of its own claims is of it. */
bool session_knows(const struct core *c, const struct session *s, struct span name);
/* Whether a peer without a session may look at what has no name; some: at anything at all. */
bool peer_may_look(const struct core *c, const struct peer *peer, bool some);
/* Whether s may see the other session in LIST: one of its own, or all. */
bool session_may_see(const struct core *c, const struct session *s, const struct session *other);

#endif
