/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a connection: bytes to lines, one request in flight, pushes kept in their order, and, for a session with grace, what
 * it takes to come back after the connection broke: reconnect.c, what was asked: ask.c, what is held: book.c.
 */
#ifndef CLIENT_CONN_H
#define CLIENT_CONN_H

#include "client/redlock.h"
#include "proto/proto.h"
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/types.h>

#define PUSHES_MAX 4096 /* that nobody asked for: beyond, the oldest risks go; a daemon that tells more losses is not believed any further */
#define US_PER_MS  1000
#define RECONNECT_MS 3000 /* one attempt, one answer: a daemon that restarted takes up to 2 s to confirm what it adopts */

struct redlock_line {
	struct reply_line parsed; /* its spans point into scratch */
	size_t n;
	char *text;    /* as it came */
	char *scratch; /* unquoted in place */
};

struct push {
	STAILQ_ENTRY(push) next;
	struct redlock_line line;
	char bytes[]; /* text, then scratch */
};

struct address { /* where a connection went: found once, so that nothing is resolved when it breaks */
	struct sockaddr_storage to;
	socklen_t n;
};

enum link {
	LINK_UP,
	LINK_DOWN,       /* the next attempt begins at due_us; as in the three below, it is given up then */
	LINK_CONNECTING, /* connect(2) is under way */
	LINK_RESUMING,   /* RESUME was sent */
	LINK_SETTLING,   /* CHECK was sent, or will be at again_us, for a lock of which RESUME did not tell whether it is held */
	LINK_TIDYING,    /* UNLOCK was sent for what its asker had given up */
	LINK_GREETING,   /* the session is gone; HELLO was sent for another */
};

/* How RESUME, or a CHECK behind it, told that the session holds a lock. */
struct row {
	bool told;
	int64_t fence, valid_ms, count;
	int64_t asked_us; /* read before it was asked to tell */
};

/* Whether, and how, a request is repeated over the next connection. */
enum ask_kind {
	ASK_ONCE,  /* nobody can tell whether it was done: its asker is told so */
	ASK_HELLO, /* the same, and its answer opens a session */
	ASK_AGAIN, /* CHECK, EXTEND: twice does no harm */
	ASK_LOCK,
	ASK_UNLOCK,
};

struct ask {
	enum ask_kind kind;
	char name[NAME_MAX_BYTES + 1]; /* "" for the first two */
	char line[LINE_MAX_DEFAULT];
	size_t n;
	size_t wait_at, wait_n;         /* LOCK: where " wait=…" stands in line */
	int64_t wait_until_us;          /* LOCK: 0 does not wait; INT64_MAX for ever */
	int64_t asked_us;               /* by the caller, however often it was sent */
	bool sent;                      /* over some connection: it may have been done */
	bool anchors;                   /* the CHECK behind a LOCK */
	bool fenced;                    /* UNLOCK: line ends in fence=… already */
	struct row row;                 /* of this name, where it is not in the book */
	bool settled;                   /* the session does not hold it, as RESUME or CHECK told */
};

/* A lock that the session holds, as far as its answers told. What a call was told is its caller's; what it gave up, tidy.c settles. */
struct hold {
	LIST_ENTRY(hold) next;
	enum {
		HOLD_ASKED,    /* its LOCK is in flight */
		HOLD_KEPT,     /* it is held */
		HOLD_LOST,     /* RESUME did not bring it back; until an UNLOCK has heard that, or a LOCK takes it anew */
		HOLD_UNWANTED, /* its LOCK was given up while the connection was away; its turn may have come */
		HOLD_FREED,    /* its last UNLOCK was given up, and was done all the same; until an UNLOCK has heard that */
	} state;
	bool seen; /* in the rows of this RESUME, or asked for since */
	bool told; /* LOST: by a push */
	bool given_up;          /* a LOCK was given up that may have counted */
	bool unlocked;          /* an UNLOCK was given up that may have counted, asked for while the lock was believed */
	bool ahead;             /* that UNLOCK has counted; count does not show it, since its caller does not know */
	struct row row;
	int64_t fence, count, until_us; /* count: as often as its caller believes */
	char name[NAME_MAX_BYTES + 1];
};

struct book {
	LIST_HEAD(, hold) holds;
	void *by_name; /* the same as a tree of tsearch(3) */
};

struct redlock {
	int fd;
	int broken; /* 0, or the negative errno that ended it */
	int64_t timeout_ms;

	char in[2 * REPLY_MAX];
	size_t in_at, in_n; /* in[in_at .. in_n) was read and not yet taken */
	char out[LINE_MAX_DEFAULT];
	size_t out_at, out_n;

	bool in_flight;
	bool aborted;    /* the ASK_ONCE in flight went with its connection, and nobody was told yet */
	int64_t sent_us; /* read before the request in flight, or last answered, was sent */
	struct ask ask;  /* in flight, or last answered */
	void (*row)(void *arg, const struct redlock_line *line);
	void *row_arg;

	bool answered;          /* answer is set: */
	int64_t answer_sent_us; /* read before what it answers was sent */
	struct redlock_line answer, passing;
	char answer_text[REPLY_MAX], answer_scratch[REPLY_MAX];
	char passing_text[REPLY_MAX], passing_scratch[REPLY_MAX];

	STAILQ_HEAD(, push) pushes; /* arrived, not yet asked for */
	size_t pushes_n;
	struct push *shown; /* what redlock_next_push returned last */

	/* --- of a session with grace --- */
	bool resumes;
	pid_t owner; /* said HELLO: the process whose redlock_close says QUIT */
	char session[64], secret[128];
	char hello[1200];
	size_t hello_bare_n; /* of hello, without its grace */
	bool graceless;      /* the session was opened without grace: the daemon gives less by now */
	bool grace; /* of the HELLO in flight */
	enum link link;
	int64_t resumed_us; /* read before RESUME was sent */
	struct address address;
	int64_t due_us;
	int64_t again_us; /* LINK_UP: when what was put off is sent again; LINK_SETTLING: the next CHECK; 0: none is due */
	int64_t open;     /* how many locks RESUME left undecided */
	int64_t more;     /* how many it left out */
	char settled[NAME_MAX_BYTES + 1]; /* what CHECK, or the UNLOCK of LINK_TIDYING, was sent for */
	bool untidy;      /* an answer told of a LOCK that was given up, and counted */
	bool deaf;        /* what is sent gets nowhere; what had come is still read */
	unsigned attempts;
	uint64_t chance;
	struct book book;

	char code[32];
	char message[1024];
};

/* --- address.c --- */

/* A connected, non-blocking, close-on-exec descriptor, or a negative errno. */
int address_connect(const char *addr, int64_t timeout_ms, struct address *ret_address) REDLOCK_MUST;
/* The same again without waiting: *ret_pending: poll it for POLLOUT, then read SO_ERROR. */
int address_again(const struct address *address, bool *ret_pending) REDLOCK_MUST;
/* Why an address has no sense, for a person; NULL: it has. */
const char *address_flaw(const char *addr);

/* --- conn.c --- */

/* Writes the message and returns err. */
int conn_says(struct redlock *c, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));
int conn_break(struct redlock *c, int err, const char *why);
/* Sends c->ask when it can be sent. */
int conn_ask(struct redlock *c) REDLOCK_MUST;
/* Sends what can be sent without waiting. */
int conn_drain(struct redlock *c) REDLOCK_MUST;
/* Sends a line instead of whatever is unsent. */
int conn_say(struct redlock *c, const char *line, size_t n) REDLOCK_MUST;
/* Keeps a push for redlock_next_push, unless it tells a loss again. */
int conn_push(struct redlock *c, const char *from, size_t n) REDLOCK_MUST;
/* As if the daemon had answered this. */
int conn_answer(struct redlock *c, const char *line, size_t n) REDLOCK_MUST;
/* The moment so many milliseconds from now; INT64_MAX for REDLOCK_FOREVER. */
int64_t conn_until(int64_t wait_ms);
/* Waits for the answer, wait_ms longer than the timeout; an answer that is not there by then breaks the connection. */
int conn_await(struct redlock *c, int64_t wait_ms) REDLOCK_MUST;

/* --- line.c --- */

/* The outcome of the answer, told in the message. */
int conn_outcome(struct redlock *c);
/* Puts text, escaped for a person, into out and returns out; cut where it is long. */
#define SHOWN_BYTES 200
const char *conn_shown(struct span text, char out[SHOWN_BYTES]);

/* --- reconnect.c --- */

/* The connection is gone; attempts to come back begin. */
void reconnect_begin(struct redlock *c);
/* Does what is due. True: there is a descriptor to speak over. */
bool reconnect_ready(struct redlock *c);
/* After all that had come was read: an attempt that takes too long is followed by the next. */
void reconnect_late(struct redlock *c);
/* The moment at which reconnect_ready must be called at the latest; INT64_MAX: none. */
int64_t reconnect_due(const struct redlock *c);
/* Takes the answer to HELLO. */
void reconnect_hello(struct redlock *c);
/* Takes c->passing, which answers what this file said. */
int reconnect_hear(struct redlock *c) REDLOCK_MUST;
/* Says QUIT, and waits briefly for the end. */
void reconnect_quit(struct redlock *c);

/* The link is up: what is in flight is sent. */
int reconnect_up(struct redlock *c) REDLOCK_MUST;

/* --- settle.c --- */

/* RESUME left locks undecided: asks for the next of them; behind the last the link is up. */
int settle(struct redlock *c) REDLOCK_MUST;
int settle_hear(struct redlock *c, const struct reply_line *line) REDLOCK_MUST;

/* --- tidy.c --- */

/* Gives back what its asker had given up; then the link is up. */
int tidy(struct redlock *c) REDLOCK_MUST;
int tidy_hear(struct redlock *c, const struct reply_line *line) REDLOCK_MUST;
/* The same over a connection that is up. */
int tidy_now(struct redlock *c) REDLOCK_MUST;
/* The LOCK or UNLOCK in flight is given up, and may have been done. */
void tidy_given_up(struct redlock *c);
/* The UNLOCK in flight was given up before, and nobody has said yet whether it counted: CHECK is to tell. */
bool tidy_doubts(struct redlock *c);
/* A LOCK was granted, and its caller hears that it was not. */
int tidy_refuse(struct redlock *c, const char *name) REDLOCK_MUST;
/* An answer tells how often h is held, where its caller expects another number. Returns the number that is its caller's. */
int64_t tidy_count(struct redlock *c, struct hold *h, int64_t told, int64_t expected);

/* --- ask.c --- */

/* Sends what is in flight again over a new connection, or answers it from what RESUME told. */
int ask_repeat(struct redlock *c) REDLOCK_MUST;
/* Of a lock that RESUME did not bring back, or an UNLOCK that was done already: it is answered here. True: it was, with *ret_error. */
bool ask_settle_known(struct redlock *c, int *ret_error);
/*
 * Whether c->passing, which answers the request in flight, is put off: the daemon is leaving, and another may come; or it does not know yet
 * whether the lock that it granted is still held.
 */
bool ask_puts_off(struct redlock *c);
/* The call has waited long enough while the connection was away. Returns -ECONNABORTED. */
int ask_give_up(struct redlock *c);

/* --- book.c --- */

void book_release(struct book *b);
struct hold *book_find(const struct book *b, const char *name);
/* Before a LOCK: a grant is never lost to a lack of memory. -ENOMEM. */
int book_reserve(struct book *b, const char *name) REDLOCK_MUST;
void book_forget(struct book *b, struct hold *h);
/* ERR LOST, ERR NOTHELD. */
bool book_code_is_lost(const struct reply_line *line);
/* Whether a push tells a loss that was told already. */
bool book_told(const struct redlock *c, const struct reply_line *push);
/* After an answer to c->ask, and after a push. */
void book_hear_answer(struct redlock *c);
void book_hear_push(struct redlock *c, const struct reply_line *push);
/* Before RESUME; a row of its answer; its end; or all is gone. The last two tell each loss by a push. */
void book_open(struct redlock *c);
void book_row(struct redlock *c, const struct reply_line *row);
int book_close(struct redlock *c, const char *reason) REDLOCK_MUST;
/*
 * Instead of the end, where RESUME left some undecided, or out: the next that is to be asked for; NULL: none. Then what the daemon said
 * of it.
 */
struct hold *book_undecided(const struct redlock *c);
int book_settle(struct redlock *c, const char *name, const struct reply_line *line) REDLOCK_MUST;

#endif
