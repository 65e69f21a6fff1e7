/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libredlock: a small blocking client of redlockd; libc only (libredlock(3), redlock-protocol(7)).
 *
 * Results. 0 is done. A positive enum redlock_outcome is the daemon's answer and must be handled. A negative errno means that
 * nothing more can be said over this connection: close it. What the session holds stays held until then, so whoever acts under
 * a lock stops first and closes afterwards. Only -EINVAL, -EMSGSIZE, -EBUSY, -EAGAIN and -ECONNABORTED leave the connection usable.
 * Nothing here prints, exits, installs signal handlers or raises SIGPIPE; descriptors are close-on-exec.
 *
 * Sessions with grace (redlock_hello) outlive their connection: when it breaks, calls come back by RESUME and go on, each within the
 * time that it may take anyway. They end with -ECONNABORTED when that does not suffice, or when nobody can tell whether a request
 * of redlock_request or redlock_send was done; the session goes on, and the next call tries again. What a LOCK that ended so was granted is
 * given back; an UNLOCK that ended so is to be called again, and counts once. A daemon that is stopped, not gone, breaks no connection:
 * that is -ETIMEDOUT, as without grace.
 *
 * Time. Durations are milliseconds in int64_t. Moments are microseconds of CLOCK_BOOTTIME, as redlock_now_us() reads it.
 *
 * Threads. One connection belongs to one thread at a time; connections are independent of each other. After fork(2) one of the
 * two processes may go on using a connection, the other may only close it; the session ends when both have. With grace it is the one
 * that said redlock_hello that goes on, and its close ends the session.
 *
 * A connection has one request in flight at a time. Host names are resolved by getaddrinfo(3), which has no deadline.
 */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REDLOCK_MUST    __attribute__((warn_unused_result))
#define REDLOCK_FOREVER (-1)

enum redlock_outcome {
	REDLOCK_OK = 0,
	REDLOCK_BUSY = 1,    /* somebody else holds it, and the request would not wait */
	REDLOCK_TIMEOUT = 2, /* it waited, and the time ran out */
	REDLOCK_REFUSED = 3, /* ERR: redlock_code() says which */
};

struct redlock;      /* a connection: one session of the daemon */
struct redlock_line; /* one line that the daemon sent; borrowed */

struct redlock_bytes { /* borrowed, not NUL-terminated; p is NULL when there is none */
	const char *p;
	size_t n;
};

/* Zeroes are the defaults: do not wait, the daemon's lease, renewed by the daemon, no note. */
struct redlock_options {
	int64_t wait_ms; /* or REDLOCK_FOREVER */
	int64_t ttl_ms;
	bool no_renew;
	const char *note; /* shown to whoever asks or waits */
};

/* Zeroes are the defaults: no label, no grace. */
struct redlock_session {
	const char *label; /* shown to others: who holds, who waits */
	int64_t grace_ms;  /* how long the daemon keeps locks and places in line for a connection that broke; about the lease */
};

/* The lock may be believed to be held until until_us and not a moment longer. A push about it only shortens that. */
struct redlock_grant {
	int64_t fence;    /* grows strictly from grant to grant of one name */
	int64_t ttl_ms;   /* the lease; 0 if the answer did not tell */
	int64_t valid_ms; /* what the answer said was left */
	int64_t count;    /* how often the session holds it; 0 if the answer did not tell, as that to EXTEND */
	int64_t until_us; /* a moment before the request went out + valid_ms */
};

/* --- the connection --- */

/*
 * The address that NULL stands for, into out: $REDLOCK_ADDR, else /run/redlockd/redlockd.sock if it exists, else
 * $XDG_RUNTIME_DIR/redlockd/redlockd.sock if it exists, else 127.0.0.1:7420. -ENAMETOOLONG if it does not fit.
 */
int redlock_address(char *out, size_t size) REDLOCK_MUST;

/*
 * Connects to a Unix socket (addr holds a '/' or no ':'; a prefix "unix:" is allowed) or to host:port, [v6]:port; NULL: see
 * redlock_address. timeout_ms bounds connecting and, from then on, how long a call waits for an answer beyond what it asked the
 * daemon to wait; a LOCK that does not wait asks it for up to a second.
 * -EINVAL: an address without sense. -EHOSTUNREACH: a name that does not resolve. Else what connect(2) says. redlock_errmsg(NULL) says why.
 */
int redlock_open(const char *addr, int64_t timeout_ms, struct redlock **ret_connection) REDLOCK_MUST;
/* Changes it from the next call on. -EINVAL, and it stays as it was: not more than 0, or too large to be added to a moment. */
int redlock_set_timeout(struct redlock *c, int64_t timeout_ms);
/*
 * Ends the session: its locks are free. Accepts NULL. With grace it says QUIT, and waits for the end at most a second; while the
 * connection is away, locks end with the grace or with their leases. A process that ends without this call leaves them so, too.
 */
void redlock_close(struct redlock *c);

/*
 * Says who this is, and asks for grace; before the first lock, and again to change either, or to give grace up. All outcomes. A daemon that gives no
 * grace leaves the session without. Locks that are taken by redlock_lock or redlock_lock_send are then kept book of: what a RESUME
 * does not bring back is told once by a push "! LOST name=… fence=… reason=…", made here (evicted: somebody else may have it
 * already; expired: it is free when until_us has passed), and by redlock_check, redlock_extend and redlock_unlock as
 * REDLOCK_REFUSED with "LOST" until an unlock has heard it or a lock takes it anew. A lock that waits keeps its place and its end.
 */
int redlock_hello(struct redlock *c, const struct redlock_session *session) REDLOCK_MUST;
/* For RESUME by somebody else; "" if not told. They change when a session was lost. */
const char *redlock_session_id(const struct redlock *c);
const char *redlock_session_secret(const struct redlock *c);
/* The connection broke, and was not resumed yet. */
bool redlock_away(const struct redlock *c);

int64_t redlock_now_us(void);

/*
 * One line for a person about the last result that was not 0; never NULL; valid until the next call. Printable. NULL instead of a
 * connection: why the last redlock_open of this thread failed.
 */
const char *redlock_errmsg(const struct redlock *c);
/* The code word of the last ERR answer, "" if it was none. */
const char *redlock_code(const struct redlock *c);

/* --- locks; name is 1 to 512 bytes --- */

/* Takes a lock; the grant is anchored by a CHECK after it. All outcomes. *ret_grant is untouched unless 0 is returned. */
int redlock_lock(struct redlock *c, const char *name, const struct redlock_options *options,
		 struct redlock_grant *ret_grant) REDLOCK_MUST;
/* keep_ms > 0 leaves the name that long without a holder. REDLOCK_REFUSED with "LOST" or "NOTHELD": it was not held any more. */
int redlock_unlock(struct redlock *c, const char *name, int64_t keep_ms) REDLOCK_MUST;
/* Renews now; ttl_ms > 0 sets the lease from now on. If it is shorter, believe in no more than that even when this fails. */
int redlock_extend(struct redlock *c, const char *name, int64_t ttl_ms, struct redlock_grant *ret_grant) REDLOCK_MUST;
/* Asks the daemon's memory: right before a side effect. */
int redlock_check(struct redlock *c, const char *name, struct redlock_grant *ret_grant) REDLOCK_MUST;
/* What is left of a grant by the local clock, at least 0; asks nobody. */
int64_t redlock_left_us(const struct redlock_grant *grant);

/* --- any request --- */

/*
 * Sends one line of redlock-protocol(7), without LF, and waits for its answer. Each row is handed to row (NULL: dropped), valid
 * during that call, which must not use the connection. wait_ms: how long the daemon may take beyond the timeout of the
 * connection, or REDLOCK_FOREVER. -EINVAL: a line that is never answered (empty, a comment) or holds an LF.
 */
int redlock_request(struct redlock *c, const char *line, int64_t wait_ms, void (*row)(void *arg, const struct redlock_line *line),
		    void *arg) REDLOCK_MUST;

/* The last answer (its first word is OK, BUSY, TIMEOUT or ERR); NULL before the first; valid until the next request. */
const struct redlock_line *redlock_answer(const struct redlock *c);

/*
 * Quotes text as the protocol does, NUL-terminated, so that it can stand as a word or a value of a line. 0 or -EMSGSIZE; 4 bytes
 * for each of text and 3 more always suffice.
 */
int redlock_quote(struct redlock_bytes text, char *out, size_t size) REDLOCK_MUST;

/* --- lines --- */

struct redlock_bytes redlock_line_text(const struct redlock_line *line);   /* as it came, without LF */
struct redlock_bytes redlock_line_word(const struct redlock_line *line);   /* "OK", "BUSY", "TIMEOUT", "ERR", "*" or "!" */
struct redlock_bytes redlock_line_code(const struct redlock_line *line);   /* of ERR and of a push: "QUORUM", "LOST" … */
struct redlock_bytes redlock_line_reason(const struct redlock_line *line); /* of ERR: the text for a person */
size_t redlock_line_fields(const struct redlock_line *line);
struct redlock_bytes redlock_line_name(const struct redlock_line *line, size_t i);
struct redlock_bytes redlock_line_value(const struct redlock_line *line, size_t i);
struct redlock_bytes redlock_line_find(const struct redlock_line *line, const char *field);
int64_t redlock_line_number(const struct redlock_line *line, const char *field, int64_t otherwise);

/* --- pushes, and waiting by a poll loop of one's own --- */

/* The oldest push that has arrived and was not yet returned, or NULL; valid until the next call of this function. */
const struct redlock_line *redlock_next_push(struct redlock *c);

int redlock_fd(const struct redlock *c);       /* poll it for redlock_events(); with grace it changes, and may be -1 */
short redlock_events(const struct redlock *c); /* POLLIN, and POLLOUT while something is unsent */
/* With grace: when redlock_process must be called although nothing came; INT64_MAX: no such moment. */
int64_t redlock_due_us(const struct redlock *c);
/* Sends and reads what can be without waiting; keeps pushes and a complete answer. 0 or a negative errno. */
int redlock_process(struct redlock *c) REDLOCK_MUST;

/* Sends without waiting for the answer; -EBUSY while another request is in flight. */
int redlock_send(struct redlock *c, const char *line) REDLOCK_MUST;
int redlock_lock_send(struct redlock *c, const char *name, const struct redlock_options *options) REDLOCK_MUST;
int redlock_check_send(struct redlock *c, const char *name) REDLOCK_MUST;
bool redlock_in_flight(const struct redlock *c);
/* The outcome of what was sent: waits for it at most timeout_ms (REDLOCK_FOREVER: without end), then -EAGAIN. */
int redlock_finish(struct redlock *c, int64_t timeout_ms) REDLOCK_MUST;
/* The grant of the last answer, if that was OK to LOCK, EXTEND or CHECK; -EINVAL otherwise. */
int redlock_grant(const struct redlock *c, struct redlock_grant *ret_grant) REDLOCK_MUST;

#ifdef __cplusplus
}
#endif

#endif
