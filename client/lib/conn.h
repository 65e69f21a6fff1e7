/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection and its session, and the functions that the files about them share. For a session with grace, a broken connection is one more state of
 * the link. Nothing here waits.
 *
 * Results are those of redlock.h: 0, or a negative errno that has ended the connection. Every later call returns that errno again.
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
	pid_t owner;  /* the process that sent HELLO; only its redlock_close sends QUIT */
	char session[64], secret[128];
	char hello[HELLO_BYTES]; /* sent again when the session is gone */
	size_t bare_n;           /* bytes of hello without its last field, the grace */
	bool graceless;          /* the session was opened again without grace, because the daemon now allows less */
	bool grace;              /* the HELLO in flight asks for it */
};

/* Takes id and secret from an OK to HELLO. */
void greeting_named(struct greeting *g, const struct reply_line *answer);
enum link {
	LINK_UP,
	LINK_DOWN,       /* the next attempt begins at due_us; all states below are given up at due_us */
	LINK_CONNECTING, /* connect(2) or the handshake of TLS has not ended */
	LINK_SHOWING,    /* AUTH was sent */
	LINK_RESUMING,   /* RESUME was sent */
	LINK_GREETING,   /* the session is gone; HELLO was sent to open another */
	LINK_CHECKING,   /* CHECK was sent for a lock that had no row in the answer to RESUME */
	LINK_KNOWING,    /* CHECK was sent for a job (holds.h) */
	LINK_RELEASING,  /* UNLOCK was sent for a lock whose LOCK was given up (holds.h) */
	LINK_WATCHING,   /* WATCH or SUBSCRIBE was sent again (pushes.h) */
};

#define OWNER_BYTES 257 /* with a NUL */
#define PLACE_BYTES 160
#define BROKE_BYTES 256 /* of the reason why a connection broke */

struct redlock {
	int broken; /* 0, or the errno that ended it; the descriptor stays open, because a close frees what the session holds */
	pid_t user; /* the process that made the first request; only it may make requests. 0: there was none */
	int64_t timeout_ms;
	struct channel channel;

	struct pending pending;
	const char *aborted; /* why a request ended without an answer, until its caller learns it; the session continues. NULL: there is no such request */
	void (*row)(void *arg, const struct redlock_line *line);
	void *row_arg;

	bool spoken;                         /* the peer has answered once, so it is a daemon. Lines that this library does not know are of a later version */
	bool answered;                       /* answer is set */
	int64_t answer_sent_us;              /* sent_us of the request that it answers */
	struct redlock_line answer, passing; /* passing: the line that is being handled */
	struct draft draft; /* for the next request */

	struct pushes pushes;
	struct subscriptions watches;

	char *auth; /* the AUTH that the daemon has accepted, sent again over the next connection; NULL: none. It is wiped when it is freed */
	char owner[OWNER_BYTES]; /* redlock_set_owner; "": none */

	/* --- for a session with grace --- */
	struct greeting greeting;
	struct holds holds;
	struct unchecked_jobs unchecked;
	struct address address;
	char place[PLACE_BYTES]; /* the address, for people */
	char host[ADDRESS_HOST]; /* inside TLS: the host of the address; "": without TLS */
	short shake_wants; /* in LINK_CONNECTING, when channel.tls is set: the poll events that the handshake waits for */
	unsigned pauses; /* pauses between attempts to connect, since the last answer */
	uint64_t chance; /* the state of the random numbers for their length */
	enum link link;
	int64_t due_us;
	int64_t again_us;  /* in LINK_UP: when the request in flight is sent again; 0: it is not */
	int64_t resume_us; /* the moment before RESUME, or the CHECK after it, was sent */
	char asked[NAME_MAX_BYTES + 1]; /* in LINK_CHECKING and LINK_RELEASING: the name for which CHECK or UNLOCK was sent */

	int64_t rows_ttl_ms; /* the lease in the rows of the last LOCKALL; 0: no row has come yet */

	char code[CODE_BYTES];
	char message[MESSAGE_BYTES];
};

/* Writes the message and returns err. */
#define conn_error(c, err, ...) redlock_error_set((c)->message, sizeof((c)->message), err, __VA_ARGS__)
/* The same, and ends the connection for good. */
#define conn_break(c, err, ...) ((c)->broken = conn_error(c, err, __VA_ARGS__))
/* Calls redlock_sized_copy for a pointer to a struct. -EINVAL. */
#define conn_take(c, to, from) conn_take_struct(c, to, sizeof(*(to)), from)
int conn_take_struct(struct redlock *c, void *to, size_t n, const void *from) REDLOCK_MUST;
/* -EINVAL: the name has too few or too many bytes. what: what is named, for people. */
int conn_name(struct redlock *c, const char *name, size_t most, const char *what) REDLOCK_MUST;
/* 0, or the errno that has ended the connection. In a forked child that is -ESTALE: the child holds nothing. This call closes its copy of the descriptor. */
int conn_usable(struct redlock *c) REDLOCK_MUST;
/* Writes the message that the connection broke, and returns err. why: "", or text to append. */
int conn_broke(struct redlock *c, int err, const char *why);
/* Sets link, which nothing else does, and due_us. */
void conn_move(struct redlock *c, enum link to);
/*
 * The connection is gone; the message already says why. Without grace it has ended with err; with grace the link is now down. Aborts a request that
 * was sent and is not repeated.
 */
int conn_lost(struct redlock *c, int err);

/* Sends as much as it can without waiting. With grace a failure drops the unsent bytes; reading then reports the end. */
int conn_drain(struct redlock *c) REDLOCK_MUST;
/* Sends a line, after the bytes that are unsent. */
int conn_put(struct redlock *c, const char *line, size_t n) REDLOCK_MUST;
/* The same with c->draft. */
int conn_put_draft(struct redlock *c) REDLOCK_MUST;

/* Sends CANCEL for the request in flight. */
int conn_cancel(struct redlock *c) REDLOCK_MUST;

/* c->passing is the answer to the request in flight. */
void conn_answered(struct redlock *c);
/* If the LOCK in flight was cancelled, answers it now, because the daemon cannot be asked. It is undone once the link is up again (holds.h). */
int conn_withdraw(struct redlock *c) REDLOCK_MUST;
/* Answers the request in flight without asking the daemon: its lock is lost. */
int conn_answer_lost(struct redlock *c) REDLOCK_MUST;
/* Keeps c->passing, which is a push. */
int conn_keep_push(struct redlock *c) REDLOCK_MUST;
/* Makes a push of c->draft, which the daemon has not sent. */
int conn_make_push(struct redlock *c) REDLOCK_MUST;
/* Makes a push for each lock that was found to be lost, unless its loss was reported already. */
int conn_push_losses(struct redlock *c) REDLOCK_MUST;

/*
 * Structs of redlock.h that a caller passes begin with their size, as the compiler of the program saw it. The struct of an earlier version is
 * shorter: the fields that it lacks are zero, which is their default. In the struct of a later version, the fields that this library does not know
 * must be zero.
 */
/* Copies `from`, unless it is NULL, to the struct `to` of n bytes, and sets the rest of it to zero. Returns NULL, or what is wrong. */
const char *redlock_sized_copy(void *to, size_t n, const void *from) REDLOCK_MUST;

#endif
