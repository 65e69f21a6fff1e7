/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known about the client of a session, which rule decides what it may do, and its lines of the audit log. */
#ifndef CORE_CLIENT_H
#define CORE_CLIENT_H

#include "daemon/core/session/session.h"

/* The client of a session: what is known of its peer, and how people are told. */

#define WHO_MAX 384 /* bytes of session_who: the longest label, and the peer */

/* Of a session that was just opened. */
void session_set_peer(struct session_table *t, struct session *s, const struct peer *peer);
/* Made if need be. */
struct identity *session_identity(struct session *s);
/* The peer's address; "": it is not known. */
struct span session_address(const struct session *s);
/* Whose clients they are that limits count together, the same at all hosts: "uid 33@host", "10.0.0.5", "2001:db8::/64". Returns the length. */
size_t session_origin(const struct core *core, const struct session *s, char out[PEER_MAX]);
/* It is root, or the user of the daemon: limits of one peer do not bind it. */
bool session_is_owner(const struct core *core, const struct session *s);
/* The subject of the certificate that the peer has shown, as in "CN=db3"; "": none. */
struct span session_subject(const struct session *s);
/* With label_put(): "label pid=1 uid=2", "label 10.0.0.5:51234"; of the previous run "label session=3". Returns the length; out has WHO_MAX bytes. */
size_t session_who(const struct session *s, char *out);
/* Logs that a session did not end by its own wish. */
void session_ended(struct session_table *t, const struct session *s, const char *reason);

/*
 * Who may do what. The rules are in order, and the first whose conditions all hold decides; where none does, the peer has no right. A condition on names
 * holds for no request that names nothing. Without rules everybody may lock and look.
 */

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

/*
 * The audit log: who was granted what, gave it back or lost it, and who took it from others by force. A line is one JSON object, which the outer layer
 * completes with the time. A byte that is not part of well-formed UTF-8 becomes a lone low surrogate, as in redlock --json.
 */

struct audit {
	const char *event;  /* "granted", "released", "lost", "break", "kill" */
	const struct session *session;
	struct span name;   /* n 0: none */
	struct span permit; /* n 0: it is no permit */
	struct span trace;  /* of the request; n 0: none */
	int64_t fence;      /* 0: none */
	int64_t held_us;    /* less than 0: none */
	const char *reason; /* NULL: none */
	uint64_t victim;    /* 0: none; the session that is ended */
};

/* Effect: one line. Only if core_conf.audit. */
void audit_write(struct core *core, const struct audit *a);

#endif
