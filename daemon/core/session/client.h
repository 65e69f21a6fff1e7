/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known about the client of a session, which rule decides what it may do, and its lines of the audit log. */
#ifndef CORE_CLIENT_H
#define CORE_CLIENT_H

#include "daemon/core/session/session.h"

/* The client of a session: what is known about its peer, and how the log describes it. */

#define WHO_MAX 384 /* bytes of session_who: the longest label, and the peer */

/* Copies what the peer has shown into a session that was just opened. */
void session_set_peer(struct session_table *t, struct session *s, const struct peer *peer);
/* Allocates it if need be. */
struct identity *session_identity(struct session *s);
/* Returns the peer's address; "": it is not known. */
struct span session_address(const struct session *s);
/*
 * Writes the id of the peer for limits, which is the same at all hosts: "uid 33@host", "10.0.0.5", "2001:db8::/64". Limits count all clients of one id
 * together. Returns the length.
 */
size_t session_origin(const struct core *core, const struct session *s, char out[PEER_MAX]);
/* The peer is root, or the user of the daemon: limits of one peer do not apply to it. */
bool session_is_owner(const struct core *core, const struct session *s);
/* Returns the subject of the certificate that the peer has shown, as in "CN=db3"; "": none. */
struct span session_subject(const struct session *s);
/*
 * Writes the client for the log, with label_put(): "label pid=1 uid=2", "label 10.0.0.5:51234"; of the previous run "label session=3". Returns the length; out
 * has WHO_MAX bytes.
 */
size_t session_who(const struct session *s, char *out);
/* Logs that a session ended against its will. */
void session_ended(struct session_table *t, const struct session *s, const char *reason);

/*
 * Who may do what. The rules are in order, and the first whose conditions all hold decides. If there is none, the peer has no right. A condition on names is
 * never true for a request without names. Without rules everybody may lock and look.
 */

/* The same bits as in conf.h. */
enum right { RIGHT_LOCK = 1, RIGHT_LOOK = 2, RIGHT_ADMIN = 4 };

struct rule {
	unsigned line;        /* the line in the configuration, for messages */
	int64_t uid, group;   /* -1: no such condition */
	const char *user, *cert, *names; /* NULL: no such condition. In names, * stands for any bytes */
	unsigned allow;       /* enum right */
};

struct rules {
	size_t count;
	struct rule rule[];
};

/* The users who exist, for AUTH, sorted by name. */
struct user_names {
	size_t count;
	struct span name[];
};

/* Returns the rule that decides about a name, or about a request without names (name NULL). NULL: no rule does. */
const struct rule *rules_decide(const struct rules *rules, const struct session *s, const struct span *name);
/* Whether there may be a name for which the session has this right. */
bool rules_allow_some(const struct rules *rules, const struct session *s, unsigned rights);

/* Whether the session may lock the name. *ret_line: the line of the rule that decides; 0: there is none. */
bool session_may_lock(const struct core *c, const struct session *s, struct span name, unsigned *ret_line);
/* Whether the session may look at the name: a filter for rows and pushes. */
bool session_may_look(const struct core *c, const struct session *s, struct span name);
/* The same. Adds to *work the cost of checking the rules, in units of about 50 ns, so that a walk through many names can be bounded. */
bool session_may_look_at(const struct core *c, const struct session *s, struct span name, unsigned *work);
/* Whether the session holds the name, waits for it, or has lost it. */
bool session_has_claim(const struct session *s, struct span name);
/* Whether the session may look at the name, or has a claim on it. */
bool session_knows(const struct core *c, const struct session *s, struct span name);
/* Whether a peer without a session may look at what has no name. some: whether it may look at anything at all. */
bool peer_may_look(const struct core *c, const struct peer *peer, bool some);
/* Whether s may see the other session in LIST: it is of the same user, or s may see all. */
bool session_may_see(const struct core *c, const struct session *s, const struct session *other);

/*
 * The audit log: who was granted what, who gave it back or lost it, and who took it from others by force. A line is one JSON object, to which the outer layer
 * adds the time. A byte that is not part of well-formed UTF-8 becomes a lone low surrogate, as in redlock --json.
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
	uint64_t victim;    /* the session that is ended; 0: none */
};

/* Writes one line, as an effect, if core_conf.audit is set. */
void audit_write(struct core *core, const struct audit *a);

#endif
