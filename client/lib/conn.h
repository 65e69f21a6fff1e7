/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection and its session: its parts, and what the files that act on it share. For a session with grace a broken connection
 * is one more state of the link. Nothing here waits.
 *
 * Results are those of redlock.h: 0, or a negative errno that has ended the connection and is told again by every later call.
 */
#ifndef CLIENT_CONN_H
#define CLIENT_CONN_H

#include "client/lib/address.h"
#include "client/lib/boottime.h"
#include "client/lib/channel.h"
#include "client/lib/holds.h"
#include "client/lib/pushes.h"

/* --- how a session is opened and resumed: what HELLO asked for, and the id and secret by which RESUME names the session --- */

#define HELLO_BYTES 1200

struct greeting {
	bool resumes; /* the daemon gives grace: the session outlives its connection */
	pid_t owner;  /* the process that said HELLO: its redlock_close says QUIT */
	char session[64], secret[128];
	char hello[HELLO_BYTES]; /* said again when the session is gone */
	size_t bare_n;           /* of hello, without its grace */
	bool graceless;          /* the session was opened again, without grace: the daemon gives less now */
	bool grace;              /* the HELLO in flight asks for it */
};

/* Takes id and secret from an OK to HELLO. */
void greeting_named(struct greeting *g, const struct reply_line *answer);
enum link {
	LINK_UP,
	LINK_DOWN,       /* the next attempt begins at due_us; all states below are given up at due_us */
	LINK_CONNECTING, /* connect(2) has not ended, or the handshake of TLS */
	LINK_SHOWING,    /* AUTH was sent */
	LINK_RESUMING,   /* RESUME was sent */
	LINK_GREETING,   /* the session is gone; HELLO was sent for another */
	LINK_CHECKING,   /* CHECK was sent for a lock of which RESUME has not told */
	LINK_KNOWING,    /* CHECK was sent for a job (holds.h) */
	LINK_RELEASING,  /* UNLOCK was sent for a lock whose LOCK was given up (holds.h) */
	LINK_WATCHING,   /* WATCH or SUBSCRIBE was sent anew (pushes.h) */
};

#define OWNER_BYTES 257 /* with a NUL */
#define PLACE_BYTES 160
#define BROKE_BYTES 256 /* of the reason why a connection broke */

struct redlock {
	int broken; /* 0, or the errno that ended it; the descriptor stays open, because a close frees what the session holds */
	pid_t user; /* the process that made the first request, and alone may make others; 0: there was none */
	int64_t timeout_ms;
	struct channel channel;

	struct pending pending;
	const char *aborted; /* a request ended without an answer, and its caller was not told yet why; the session goes on. NULL: none */
	void (*row)(void *arg, const struct redlock_line *line);
	void *row_arg;

	bool spoken;                         /* the peer has answered once, so it is a daemon, and what else it says is of a later version */
	bool answered;                       /* answer is set */
	int64_t answer_sent_us;              /* sent_us of the request that it answers */
	struct redlock_line answer, passing; /* passing: the line that is being handled */
	struct draft draft; /* of the next request */

	struct pushes pushes;
	struct subscriptions watches;

	char *auth; /* the AUTH that the daemon has accepted: said again on the next connection; NULL: none. Wiped when it is freed */
	char owner[OWNER_BYTES]; /* redlock_set_owner; "": none */

	/* --- of a session with grace --- */
	struct greeting greeting;
	struct holds holds;
	struct unchecked_jobs unchecked;
	struct address address;
	char place[PLACE_BYTES]; /* the same for a person */
	char host[ADDRESS_HOST]; /* inside TLS: that of the address; "": it is plain */
	short shake_wants; /* LINK_CONNECTING, once channel.tls is there: what its handshake waits for */
	unsigned pauses; /* since the last answer, between attempts to connect */
	uint64_t chance; /* of their length */
	enum link link;
	int64_t due_us;
	int64_t again_us;  /* LINK_UP: when the request in flight is sent again; 0: it is not */
	int64_t resume_us; /* read before RESUME was sent, or the CHECK after it */
	char asked[NAME_MAX_BYTES + 1]; /* LINK_CHECKING, LINK_RELEASING: the name for which CHECK or UNLOCK was sent */

	int64_t rows_ttl_ms; /* what the rows of the last LOCKALL told; 0: nothing yet */

	char code[CODE_BYTES];
	char message[MESSAGE_BYTES];
};

/* Writes the message and returns err. */
#define conn_says(c, err, ...) redlock_says((c)->message, sizeof((c)->message), err, __VA_ARGS__)
/* The same, and ends the connection for good. */
#define conn_break(c, err, ...) ((c)->broken = conn_says(c, err, __VA_ARGS__))
/* redlock_sized_copy, of a pointer to a struct; -EINVAL. */
#define conn_take(c, to, from) conn_take_struct(c, to, sizeof(*(to)), from)
int conn_take_struct(struct redlock *c, void *to, size_t n, const void *from) REDLOCK_MUST;
/* -EINVAL: the name has too few or too many bytes. what: it, for a person. */
int conn_name(struct redlock *c, const char *name, size_t most, const char *what) REDLOCK_MUST;
/* 0, or what has ended the connection. In a child of the process that uses it that is -ESTALE: the child holds nothing, and lets go of the descriptor. */
int conn_usable(struct redlock *c) REDLOCK_MUST;
/* Says that the connection broke, and returns err. why: "", or more of it. */
int conn_broke(struct redlock *c, int err, const char *why);
/* The one writer of link. It sets due_us, too. */
void conn_move(struct redlock *c, enum link to);
/*
 * The connection is gone, for the reason that was said: for good with err, or with grace the link is down. Aborts a request that was sent and is not
 * repeated.
 */
int conn_lost(struct redlock *c, int err);

/* Sends what can be sent without waiting. With grace a failure drops what is unsent; reading finds the end. */
int conn_drain(struct redlock *c) REDLOCK_MUST;
/* Sends a line, behind what is unsent. */
int conn_put(struct redlock *c, const char *line, size_t n) REDLOCK_MUST;
/* The same with c->draft. */
int conn_put_draft(struct redlock *c) REDLOCK_MUST;

/* Sends CANCEL for the request in flight, behind it. */
int conn_cancel(struct redlock *c) REDLOCK_MUST;

/* c->passing is the answer to the request in flight. */
void conn_answered(struct redlock *c);
/* Answers a LOCK in flight if that was cancelled: the daemon cannot be asked now. It is undone when the daemon is there again (holds.h). */
int conn_withdraw(struct redlock *c) REDLOCK_MUST;
/* Answers the request in flight without the daemon: its lock is lost. */
int conn_answer_lost(struct redlock *c) REDLOCK_MUST;
/* c->passing is a push that is kept. */
int conn_keep_push(struct redlock *c) REDLOCK_MUST;
/* Makes a push, which the daemon has not sent, of c->draft. */
int conn_tell(struct redlock *c) REDLOCK_MUST;
/* Makes a push for each lock that was found to be lost and not told yet. */
int conn_tell_losses(struct redlock *c) REDLOCK_MUST;

/*
 * Structs of redlock.h that a caller passes begin with their size, as his compiler knew it. Those of an earlier version are shorter: what they lack is zero,
 * which is its default. Of those of a later version what this library does not know must be zero.
 */
/* Copies from, if it is not NULL, into to, a struct of n bytes; the rest of to becomes zero. Returns NULL, or what is wrong. */
const char *redlock_sized_copy(void *to, size_t n, const void *from) REDLOCK_MUST;

#endif
