/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libredlock: a small blocking client of redlockd; libc only, but for redlock_use_tls (libredlock(3), redlock-protocol(7)).
 *
 * Results. 0 is success. A positive enum redlock_outcome is the daemon's answer, and the caller handles it. A negative errno has
 * ended the connection: only redlock_close is left. Exceptions are -EINVAL, -EMSGSIZE, -EBUSY, -EAGAIN and -ECONNABORTED, after
 * which the connection goes on. The daemon keeps what the session holds until the connection is closed, so stop what acts under a
 * lock first, and close then. The library prints nothing, ends no process, installs no signal handler and raises no SIGPIPE. Its
 * descriptors are close-on-exec.
 *
 * Sessions with grace (redlock_hello) outlive their connection. When it breaks, each call connects again, resumes the session by
 * RESUME and goes on, within the time that the call may take anyway. It returns -ECONNABORTED when that time does not suffice, or
 * when nobody can tell whether a request of redlock_request or redlock_send was done. The session goes on, and the next call
 * tries again. If a LOCK that ended so was granted all the same, the library gives the grant back. If an UNLOCK ended so, call it
 * again: it counts once. A daemon that is stopped, not gone, breaks no connection: that is -ETIMEDOUT, with grace and without.
 *
 * Time. Durations are milliseconds in int64_t. Moments are microseconds of CLOCK_BOOTTIME, as redlock_now_us() reads it.
 *
 * Threads. One thread at a time uses a connection; connections are independent of each other. After fork(2) one of the two
 * processes may go on using a connection, and the other may only close it; the session ends when both have closed it. With grace
 * the process that called redlock_hello goes on, and its close ends the session. Inside TLS the process that made the
 * first request goes on, and its close ends the session.
 *
 * A connection has one request in flight at a time. getaddrinfo(3) resolves host names, and has no deadline.
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
	REDLOCK_TIMEOUT = 2, /* the request waited, and its time ran out */
	REDLOCK_REFUSED = 3, /* ERR: redlock_code() says which */
};

struct redlock;      /* a connection: one session of the daemon */
struct redlock_line; /* one line that the daemon sent; borrowed */

struct redlock_bytes { /* borrowed, not NUL-terminated; p is NULL when there is none */
	const char *p;
	size_t n;
};

/*
 * Structs that are passed begin with their size, sizeof(struct …), so that they may have more fields in a later version: what an older program's struct lacks
 * has its default. -EINVAL: it is not set, or a field is set that this library does not know. What the library fills does not grow.
 */

/* Zeroes are the defaults: no wait, the lease of the daemon's configuration, renewed by the daemon, no note, the lowest priority. */
struct redlock_options {
	size_t size;
	int64_t wait_ms; /* or REDLOCK_FOREVER */
	int64_t ttl_ms;
	bool no_renew;
	const char *note; /* shown to those who ask about the lock or wait for it */
	int priority;     /* 0 to 9: a higher one stands before lower ones in the queue */
	bool shared;      /* held with other readers; an exclusive hold of the session becomes shared and keeps its count. Not with no_renew or delay_ms */
	/*
	 * More than 0: the name is a semaphore of so many slots, the same number for all, and redlock_lock takes a permit of it, which is one slot. One permit
	 * of a name at a time; check, extend and unlock are about it. Not with no_renew, shared or delay_ms.
	 */
	int slots;
	int64_t delay_ms; /* after an abnormal end of the hold nobody gets the lock for that much longer */
	bool cancellable; /* redlock_cancel can withdraw it while it waits: for redlock_lock_send, redlock_lock_many_send and redlock_take_send */
};

/* Zeroes are the defaults: no label, no grace, no heartbeat. */
struct redlock_session {
	size_t size;
	const char *label; /* shown to others: who holds, who waits */
	int64_t grace_ms;  /* how long the daemon keeps locks and places in queues after the connection broke; about the lease */
	int64_t heartbeat_ms; /* the session counts as dead unless a request arrives that often, so call something, redlock_ping at least; 0: no */
};

/* The caller may believe that it holds the lock until until_us, and not a moment longer. A push LOST ends that earlier. */
struct redlock_grant {
	int64_t fence;    /* grows strictly from grant to grant of one name */
	int64_t ttl_ms;   /* the lease; 0 if the answer did not tell */
	int64_t valid_ms; /* what the answer said was left */
	int64_t count;    /* how often the session holds it; 0 if the answer did not tell, like that to EXTEND */
	int64_t until_us; /* a moment before the request went out + valid_ms */
};

/* --- the connection --- */

/*
 * Writes the address that NULL stands for into out: $REDLOCK_ADDR, else /run/redlockd/redlockd.sock if it exists, else
 * $XDG_RUNTIME_DIR/redlockd/redlockd.sock if it exists, else 127.0.0.1:7420. -ENAMETOOLONG if it does not fit.
 */
int redlock_address(char *out, size_t size) REDLOCK_MUST;

struct redlock_tls { /* NULL: what the environment says, or else the default */
	size_t size;
	const char *ca_file;     /* authorities of the daemon, in PEM; $REDLOCK_TLS_CA, else those of the system */
	const char *cert_file;   /* what a daemon gets that asks for a certificate, with its chain; $REDLOCK_TLS_CERT, else none */
	const char *key_file;    /* the key of that certificate, without a passphrase; $REDLOCK_TLS_KEY */
	const char *server_name; /* what the certificate of the daemon must be for; $REDLOCK_TLS_NAME, else the host of the address */
};

/*
 * Reads these files; NULL: those that the environment names. From now on redlock_open of this process takes addresses
 * tls://HOST:PORT. A program that calls this links with OpenSSL: -lredlock -lssl -lcrypto. Call it while no other thread uses the
 * library; again, to read the files again. -EINVAL: a file cannot be used; else the errno of reading it; in both cases why, of
 * size bytes, tells more, and what was in use stays.
 */
int redlock_use_tls(const struct redlock_tls *tls, char *why, size_t size) REDLOCK_MUST;

/*
 * Connects to a Unix socket (addr holds a '/' or no ':'; a prefix "unix:" is allowed) or to host:port, [v6]:port; NULL: see
 * redlock_address. tls://host:port is a connection inside TLS, see redlock_use_tls: without that -EPROTONOSUPPORT. -EPROTO: its
 * handshake failed. timeout_ms, more than 0, bounds connecting. From then on it bounds how long a call waits for an answer, in
 * addition to the wait that the call asked of the daemon; a LOCK without a wait and an EXTEND count a second for that. -EINVAL:
 * a bad timeout_ms or address. -EHOSTUNREACH: a name that does not resolve. Else an errno of connect(2). redlock_errmsg(NULL) says
 * why.
 */
int redlock_open(const char *addr, int64_t timeout_ms, struct redlock **ret_connection) REDLOCK_MUST;
/* Changes timeout_ms from the next call on. -EINVAL if it is not more than 0 or too large to be added to a moment; the old one stays. */
int redlock_set_timeout(struct redlock *c, int64_t timeout_ms);
/*
 * Shows the daemon who this is, where it has users. REDLOCK_REFUSED: redlock_code() is "AUTH"; the third time the daemon hangs up. The library says it again
 * when it connects again. redlock_open does so by itself if $REDLOCK_USER is set; the secret is then the first line of the file $REDLOCK_SECRET_FILE, or
 * $REDLOCK_SECRET. It returns -EACCES if the daemon does not accept it.
 */
int redlock_auth(struct redlock *c, const char *user, const char *secret) REDLOCK_MUST;
/*
 * Ends the session, which frees its locks. Accepts NULL. With grace it sends QUIT, and waits at most a second for the end. When
 * the connection is away at that moment, or when a process ends without this call, the locks end with the grace or with their
 * leases.
 */
void redlock_close(struct redlock *c);

/*
 * Tells the daemon who this is, and asks for grace. Call it before the first lock, and again to change either, or to give grace
 * up. All outcomes. A daemon that gives no grace leaves the session without. With grace the library tracks each lock that
 * redlock_lock, redlock_lock_all, redlock_lock_any, redlock_lock_send and redlock_lock_many_send take. A lock that RESUME does not
 * bring back is lost. The library tells the loss once by a push "! LOST name=… fence=… reason=…": evicted means that somebody else
 * may hold the lock already, expired that it is free when until_us has passed. redlock_check, redlock_extend and redlock_unlock
 * tell it as REDLOCK_REFUSED with "LOST", until an unlock has told it or a lock takes the name anew. A request that waits keeps its
 * places in the queues and its deadline.
 */
int redlock_hello(struct redlock *c, const struct redlock_session *session) REDLOCK_MUST;
/* What RESUME takes; "" if the daemon has not told them. They change when the session was lost and another one opened. */
const char *redlock_session_id(const struct redlock *c);
const char *redlock_session_secret(const struct redlock *c);
/* Whether the connection broke and the session is not resumed yet. */
bool redlock_away(const struct redlock *c);

int64_t redlock_now_us(void);

/*
 * One printable line for a person about the last result that was not 0; never NULL; valid until the next call. With NULL for the
 * connection: why the last redlock_open of this thread failed.
 */
const char *redlock_errmsg(const struct redlock *c);
/* The code word of the last answer if that was ERR, else "". */
const char *redlock_code(const struct redlock *c);

/* --- locks; name is 1 to 512 bytes --- */

/* Takes a lock, and asks CHECK for the grant: a LOCK may have waited for long. All outcomes. *ret_grant is set by 0 alone. */
int redlock_lock(struct redlock *c, const char *name, const struct redlock_options *options,
		 struct redlock_grant *ret_grant) REDLOCK_MUST;
/*
 * Takes all of these 1 to 64 locks, or none of them, and asks CHECK for each grant. All outcomes. ret_grants has room for n, and is set by 0 alone. Each lock
 * is released by itself.
 */
int redlock_lock_all(struct redlock *c, const char *const *names, size_t n, const struct redlock_options *options,
		     struct redlock_grant *ret_grants) REDLOCK_MUST;
/* Takes one of these 1 to 64 locks, the first that is free: names[*ret_which]. All outcomes. */
int redlock_lock_any(struct redlock *c, const char *const *names, size_t n, const struct redlock_options *options, size_t *ret_which,
		     struct redlock_grant *ret_grant) REDLOCK_MUST;
/*
 * keep_ms > 0: nobody gets the lock for that long. REDLOCK_REFUSED with "LOST" or "NOTHELD": the session did not hold it any
 * more.
 */
int redlock_unlock(struct redlock *c, const char *name, int64_t keep_ms) REDLOCK_MUST;

/* Zeroes are the defaults. */
struct redlock_unlocking {
	size_t size;
	int64_t keep_ms; /* see redlock_unlock */
	bool sync;       /* the answer comes once a quorum of the stores has freed it; "QUORUM": nobody knows, and the session holds it no more all the same */
};
/* The same with options; NULL is zeroes. */
int redlock_unlock_with(struct redlock *c, const char *name, const struct redlock_unlocking *options) REDLOCK_MUST;
/*
 * Renews the lease now; ttl_ms > 0 sets its length from now on. If that is shorter than before, rely on no more than ttl_ms,
 * even when the call fails.
 */
int redlock_extend(struct redlock *c, const char *name, int64_t ttl_ms, struct redlock_grant *ret_grant) REDLOCK_MUST;
/* Asks the daemon, which answers from its memory. For use right before a side effect. */
int redlock_check(struct redlock *c, const char *name, struct redlock_grant *ret_grant) REDLOCK_MUST;
/*
 * Who speaks from now on in what takes, checks, extends and unlocks locks: for threads that take turns at one connection, each with a name of its own (1 to 256
 * bytes; NULL: the session itself). What one owner holds others wait for. -EINVAL: such a name is not possible, or the session has grace: the library tracks
 * no owners, so redlock_hello with grace is -EINVAL as well while there is one. A push LOST tells "owner".
 */
int redlock_set_owner(struct redlock *c, const char *owner) REDLOCK_MUST;
/* How much of a grant is left by the local clock, at least 0; asks nobody. */
int64_t redlock_left_us(const struct redlock_grant *grant);

/* --- deferred work; when the connection breaks the library repeats redlock_take alone: the others return -ECONNABORTED then --- */

#define REDLOCK_JOB_BYTES  65  /* an id of a job, and a NUL */
#define REDLOCK_NAME_BYTES 513 /* likewise a name */

struct redlock_deferral {
	size_t size;
	int64_t delay_ms; /* the job is due so much later */
	const char *lock; /* granted together with the job; NULL: none */
	const char *id;   /* while a job of this id is due or taken, it is the same job, so the request may be repeated; NULL: the daemon makes one */
};

/* A job that the session has. It may act on it until until_us, as CHECK told it last, and not after a push LOST. */
struct redlock_job {
	char id[REDLOCK_JOB_BYTES], lock[REDLOCK_NAME_BYTES]; /* lock: "" if it has none */
	int64_t attempt;  /* 1, 2 … */
	int64_t fence;    /* of the lock; 0: it has none */
	int64_t ttl_ms, until_us;
	char *payload;    /* payload_n bytes and a NUL; the caller frees it */
	size_t payload_n;
};

/* Puts a job into a queue. All outcomes; with 0 its home has stored it. ret_id has room for REDLOCK_JOB_BYTES, or is NULL. */
int redlock_defer(struct redlock *c, const char *queue, struct redlock_bytes payload, const struct redlock_deferral *options, char *ret_id) REDLOCK_MUST;
/* Takes the first job that is due: wait_ms and ttl_ms of the options. All outcomes. *ret_job is set by 0 alone. */
int redlock_take(struct redlock *c, const char *queue, const struct redlock_options *options, struct redlock_job *ret_job) REDLOCK_MUST;
/* Whether the session still has it, and until when. */
int redlock_check_job(struct redlock *c, const char *queue, const char *id, struct redlock_grant *ret_grant) REDLOCK_MUST;
/* The job is done: it is gone, and its lock is free. REDLOCK_REFUSED with "LOST" or "NOTHELD": it may be run again. */
int redlock_done(struct redlock *c, const char *queue, const char *id) REDLOCK_MUST;
/* It has failed: it is due again after delay_ms, unless it has failed too often. */
int redlock_retry(struct redlock *c, const char *queue, const char *id, int64_t delay_ms) REDLOCK_MUST;
/* Removes a job that nobody has: it is due, delayed, or has failed for good. REDLOCK_REFUSED with "NOTHELD": a session has it; with "NOTFOUND". */
int redlock_drop(struct redlock *c, const char *queue, const char *id) REDLOCK_MUST;

/* --- rate limits; name is 1 to 512 bytes --- */

struct redlock_rate {
	int64_t left;     /* how many more uses would be admitted now */
	int64_t reset_ms; /* OK: in how long all are available again; else 0 */
	int64_t retry_ms; /* BUSY: in how long this cost would be admitted; else 0 */
	bool unmetered;   /* OK, but not counted: the store that keeps the limit cannot be used, and rate.home_lost is open */
};

/*
 * Counts `cost` uses of the name, if that makes no more than `limit` in the last per_ms. REDLOCK_BUSY: it would, and nothing was counted. Both set
 * *ret_rate. A cost of 0 only asks. REDLOCK_REFUSED with "UNAVAILABLE": the store that keeps the limit cannot be used. -ECONNABORTED: nobody
 * can tell whether it was counted.
 */
int redlock_rate(struct redlock *c, const char *name, int64_t limit, int64_t per_ms, int64_t cost, struct redlock_rate *ret_rate) REDLOCK_MUST;
/* The same, and waits in turn for up to wait_ms until it is admitted. REDLOCK_TIMEOUT: it was not, and nothing was counted. */
int redlock_rate_wait(struct redlock *c, const char *name, int64_t limit, int64_t per_ms, int64_t cost, int64_t wait_ms,
		      struct redlock_rate *ret_rate) REDLOCK_MUST;

/* --- what the daemon knows; rows are those of redlock_request, in the words of redlock-protocol(7), and redlock_answer tells what stands behind them --- */

/*
 * When the connection breaks before the first row these ask again over the next one, and else they return -ECONNABORTED. They wait a second longer than the
 * timeout of the connection for daemons and stores that are busy; redlock_ping does not.
 */
struct redlock_view {
	size_t size;
	bool all;    /* ask the stores, too: who holds it elsewhere, which daemon is the next */
	bool former; /* who held it before */
};
/* Holder and waiters of one lock. view: NULL is zeroes. "known" is "no" in the answer: nobody can tell whether it is free. */
int redlock_show(struct redlock *c, const char *name, const struct redlock_view *view, void (*row)(void *arg, const struct redlock_line *line),
		 void *arg) REDLOCK_MUST;

enum redlock_listing {
	REDLOCK_LOCKS,
	REDLOCK_SESSIONS,
	REDLOCK_NODES, /* the stores */
	REDLOCK_QUEUES,
	REDLOCK_JOBS,
};
/* Zeroes are the first page of all. */
struct redlock_page {
	size_t size;
	const char *prefix; /* only names, or labels of sessions, that start so; of jobs it is the queue; NULL: all */
	int64_t limit;      /* rows at most; 0: 1000 */
	int64_t more;       /* set by 0 alone: how many rows this page has left out; if there are any, the next call asks for the next page */
	size_t after_n;
	char after[REDLOCK_NAME_BYTES]; /* where this page has ended */
};
/* One page of what this daemon has. page: NULL is the first of all. */
int redlock_list(struct redlock *c, enum redlock_listing what, struct redlock_page *page, void (*row)(void *arg, const struct redlock_line *line),
		 void *arg) REDLOCK_MUST;
int redlock_stats(struct redlock *c, void (*row)(void *arg, const struct redlock_line *line), void *arg) REDLOCK_MUST;
/* Whether the daemon answers. */
int redlock_ping(struct redlock *c) REDLOCK_MUST;

/*
 * Names that were locked through this daemon, with "name" in each row: in their order, or the last ones of this user. prefix: NULL is all; limit: 0 is 10, or
 * 100.
 */
int redlock_complete(struct redlock *c, const char *prefix, int64_t limit, void (*row)(void *arg, const struct redlock_line *line), void *arg) REDLOCK_MUST;
int redlock_recent(struct redlock *c, const char *prefix, int64_t limit, void (*row)(void *arg, const struct redlock_line *line), void *arg) REDLOCK_MUST;

/* --- what happens, told by pushes (below) --- */

/*
 * EVENT of locks whose names start so; NULL: of all. Up to 64 of them. With grace the library asks anew when the connection broke, and tells by a push
 * "! MISSED" that events in between are never told: take all pushes that have arrived, and then ask redlock_list what is held. Likewise when too many events
 * wait for redlock_next_push. What the daemon refuses anew is told by "! UNWATCHED prefix=… code=…".
 */
int redlock_watch(struct redlock *c, const char *prefix) REDLOCK_MUST;
/* prefix: that of redlock_watch. */
int redlock_unwatch(struct redlock *c, const char *prefix) REDLOCK_MUST;
/* CONTENDED when others wait for what the session holds, and DRAIN when the daemon is to stop. Asked for anew likewise, and nothing is missed. */
int redlock_subscribe(struct redlock *c) REDLOCK_MUST;
int redlock_unsubscribe(struct redlock *c) REDLOCK_MUST;

/* --- for administrators; REDLOCK_REFUSED with "DENIED" for others. -ECONNABORTED: look whether it was done, since again it could hit somebody else --- */

/* Takes a lock from its holder. *ret_free_in_ms, unless NULL: when it is free at the latest; -1: when the holder has acknowledged the loss. */
int redlock_break(struct redlock *c, const char *name, int64_t *ret_free_in_ms) REDLOCK_MUST;
/* Ends a session, by its number among REDLOCK_SESSIONS. *ret_held, unless NULL: how much it held. */
int redlock_kill(struct redlock *c, int64_t session, int64_t *ret_held) REDLOCK_MUST;
/* The daemon grants nothing new, and stops when nobody holds anything, or after in_ms (REDLOCK_FOREVER: not before). *ret_held, unless NULL: what is held. */
int redlock_drain(struct redlock *c, int64_t in_ms, int64_t *ret_held) REDLOCK_MUST;

/* --- any request --- */

/*
 * Sends one line of redlock-protocol(7), without LF, and waits for its answer. Calls row for each row of the answer (NULL drops
 * them); a row is valid during that call, which must not use the connection. wait_ms: how long the daemon may take in addition to
 * the timeout of the connection, or REDLOCK_FOREVER. -EINVAL: the daemon never answers such a line (empty, a comment), or it
 * holds an LF.
 */
int redlock_request(struct redlock *c, const char *line, int64_t wait_ms, void (*row)(void *arg, const struct redlock_line *line),
		    void *arg) REDLOCK_MUST;

/* The last answer (its first word is OK, BUSY, TIMEOUT or ERR); NULL before the first; valid until the next request. */
const struct redlock_line *redlock_answer(const struct redlock *c);

/*
 * Quotes text as the protocol does, NUL-terminated, so that it can stand as a word or a value of a line. 0 or -EMSGSIZE; 4 bytes
 * for each byte of text and 3 more always suffice.
 */
int redlock_quote(struct redlock_bytes text, char *out, size_t size) REDLOCK_MUST;

/* --- lines --- */

struct redlock_bytes redlock_line_text(const struct redlock_line *line);   /* as it came, without LF */
struct redlock_bytes redlock_line_word(const struct redlock_line *line);   /* "OK", "BUSY", "TIMEOUT", "ERR", "*" or "!" */
struct redlock_bytes redlock_line_code(const struct redlock_line *line);   /* of ERR and of a push: "QUORUM", "LOST" … */
bool redlock_line_is(const struct redlock_line *line, const char *code);    /* whether that is the code */
struct redlock_bytes redlock_line_reason(const struct redlock_line *line); /* of ERR: the text for a person */
size_t redlock_line_fields(const struct redlock_line *line);
struct redlock_bytes redlock_line_name(const struct redlock_line *line, size_t i);
struct redlock_bytes redlock_line_value(const struct redlock_line *line, size_t i);
struct redlock_bytes redlock_line_find(const struct redlock_line *line, const char *field);
int64_t redlock_line_number(const struct redlock_line *line, const char *field, int64_t otherwise);

/* --- pushes, and waiting by a poll loop of one's own --- */

/* The oldest push that has arrived and was not returned yet, or NULL; valid until the next call of this function. */
const struct redlock_line *redlock_next_push(struct redlock *c);
/* The same, but waits for it, timeout_ms at most (REDLOCK_FOREVER: without end); -EAGAIN: none came. A daemon that is stopped goes unnoticed. */
int redlock_wait_push(struct redlock *c, int64_t timeout_ms, const struct redlock_line **ret_push) REDLOCK_MUST;

int redlock_fd(const struct redlock
		       *c); /* poll it for redlock_events(); with grace it changes, and is -1 while there is no connection */
short redlock_events(const struct redlock *c); /* POLLIN, and POLLOUT while something is unsent */
/* With grace: the moment at which redlock_process must be called although nothing came; INT64_MAX: none. */
int64_t redlock_due_us(const struct redlock *c);
/* Sends and reads what can be sent and read without waiting; keeps pushes and a complete answer. 0 or a negative errno. */
int redlock_process(struct redlock *c) REDLOCK_MUST;

/* These send and do not wait for the answer; -EBUSY while another request is in flight. */
int redlock_send(struct redlock *c, const char *line) REDLOCK_MUST;
int redlock_lock_send(struct redlock *c, const char *name, const struct redlock_options *options) REDLOCK_MUST;
/* LOCKALL, or LOCKANY. The answer does not tell what is left of a lock that was waited for: ask CHECK for each. */
int redlock_lock_many_send(struct redlock *c, bool any, const char *const *names, size_t n, const struct redlock_options *options) REDLOCK_MUST;
/* The lease that the rows of the last LOCKALL told; 0: there were none yet. */
int64_t redlock_many_ttl_ms(const struct redlock *c);
int redlock_check_send(struct redlock *c, const char *name) REDLOCK_MUST;
int redlock_extend_send(struct redlock *c, const char *name, int64_t ttl_ms) REDLOCK_MUST;
int redlock_unlock_send(struct redlock *c, const char *name, const struct redlock_unlocking *options) REDLOCK_MUST;
int redlock_take_send(struct redlock *c, const char *queue, const struct redlock_options *options) REDLOCK_MUST;
int redlock_check_job_send(struct redlock *c, const char *queue, const char *id) REDLOCK_MUST;
/*
 * Withdraws the LOCK or TAKE in flight that is cancellable, and does not wait. redlock_finish tells what became of it: REDLOCK_REFUSED with "CANCELLED", or
 * its own answer if that was quicker. With grace, while there is no connection, a LOCK is cancelled at once, and undone when the daemon is there again.
 * -EINVAL: there is none.
 */
int redlock_cancel(struct redlock *c) REDLOCK_MUST;
bool redlock_in_flight(const struct redlock *c);
/*
 * The outcome of what was sent. Waits at most timeout_ms (REDLOCK_FOREVER: without end), and returns -EAGAIN if no answer came.
 */
int redlock_finish(struct redlock *c, int64_t timeout_ms) REDLOCK_MUST;
/* The grant of the last answer, if that was OK to LOCK, EXTEND or CHECK; -EINVAL otherwise. */
int redlock_grant(const struct redlock *c, struct redlock_grant *ret_grant) REDLOCK_MUST;
/* The job of the last answer, if that was OK to TAKE; -EINVAL otherwise. Its until_us is 0: ask CHECK. */
int redlock_taken(struct redlock *c, struct redlock_job *ret_job) REDLOCK_MUST;
/* Like redlock_grant, of an OK to CHECK of a job. */
int redlock_job_grant(const struct redlock *c, struct redlock_grant *ret_grant) REDLOCK_MUST;

#ifdef __cplusplus
}
#endif

#endif
