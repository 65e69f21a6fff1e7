/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libredlock: a small blocking client of redlockd. It needs only libc, and OpenSSL for TLS. See libredlock(3), redlock-protocol(7).
 *
 * Results. 0 is success. A positive enum redlock_outcome is the daemon's answer, and the caller handles it. "All outcomes" marks calls that may
 * return each of them. After -EINVAL, -EMSGSIZE, -EBUSY, -EAGAIN and -ECONNABORTED the connection can still be used. After any other negative errno
 * it has ended: call redlock_close. Until then the daemon keeps what the session holds. So first stop what relies on a lock, then close.
 *
 * The library prints nothing, ends no process, installs no signal handler and raises no SIGPIPE. Its descriptors are close-on-exec.
 *
 * Sessions with grace (redlock_hello) outlive their connection. When it breaks, calls connect again, resume the session by RESUME, and continue. This
 * does not extend the time of a call: if that is too short, the call returns -ECONNABORTED. The library does not repeat some requests, such as those
 * of redlock_request. If it is not known whether the daemon has done such a request, the call also returns -ECONNABORTED. The session lives on, and
 * the next call tries again. If a LOCK returned -ECONNABORTED but the daemon granted it, the library gives the grant back. If an UNLOCK returned
 * -ECONNABORTED, call it again: the two count as one. If a daemon process is stopped but has not ended, its connections stay. Then the library ends
 * the connection. The call that gets no answer in time returns -ECONNABORTED, or -ETIMEDOUT without grace.
 *
 * Time. Durations are milliseconds in int64_t. Moments are microseconds of CLOCK_BOOTTIME, as redlock_now_us() reads it.
 *
 * Threads. One thread at a time uses a connection; connections are independent of each other. A connection belongs to the process that made its first
 * request. After fork(2) the child holds nothing: its calls return -ESTALE, and redlock_left_us is 0 for earlier grants. It may only close the
 * connection. It should do that, because without grace the session ends when both processes have closed it.
 *
 * A connection has one request in flight at a time. getaddrinfo(3) resolves host names; timeouts do not limit it.
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
	REDLOCK_BUSY = 1,    /* it is not free, and the request did not wait */
	REDLOCK_TIMEOUT = 2, /* the request waited, and its time ran out */
	REDLOCK_REFUSED = 3, /* ERR: redlock_code() returns its code */
};

struct redlock;      /* a connection: one session of the daemon */
struct redlock_line; /* one line that the daemon sent; borrowed */

struct redlock_bytes { /* borrowed, not NUL-terminated; p is NULL if there is none */
	const char *p;
	size_t n;
};

/*
 * Each struct that a caller passes begins with its size, sizeof(struct …), because later versions may add fields. Fields that the struct of an older
 * program lacks have their defaults. -EINVAL: size is not set, or a field is set that this library does not know. Structs that the library fills do
 * not grow.
 */

/* Fields that are zero have their defaults: no wait, the lease of the daemon's configuration, renewed by the daemon, no note, the lowest priority. */
struct redlock_options {
	size_t size;
	int64_t wait_ms; /* or REDLOCK_FOREVER */
	int64_t ttl_ms;
	bool no_renew;
	const char *note; /* shown to those who ask about the lock or wait for it */
	int priority;     /* 0 to 9: requests with a higher priority come first in the queue */
	bool shared;      /* hold it with other readers. An exclusive hold of this session becomes shared and keeps its count. Not with no_renew or delay_ms */
	/*
	 * More than 0: the name is a semaphore with that many slots; redlock_lock takes a permit, which is one slot. All sessions must give the same number.
	 * A session has one permit of a name at a time: redlock_check, redlock_extend and redlock_unlock act on it. Not with no_renew, shared or delay_ms.
	 */
	int slots;
	int64_t delay_ms; /* if the hold ends without an unlock, nobody gets the lock for that long afterwards */
	bool cancellable; /* redlock_cancel can withdraw the request while it waits. For redlock_lock_send, redlock_lock_many_send and redlock_take_send */
	const char *trace; /* the traceparent (W3C Trace Context, 55 bytes) of the caller's span, shown to those who do not get the lock or ask about it */
};

/* Fields that are zero have their defaults: no label, no grace, no heartbeat. */
struct redlock_session {
	size_t size;
	const char *label; /* shown to others as the holder or a waiter */
	int64_t grace_ms;  /* how long the daemon keeps locks and places in queues after the connection broke; best about as long as the lease */
	int64_t heartbeat_ms; /* the daemon ends a session that has sent no request for that long; redlock_ping counts as one. 0: no heartbeat */
};

/* The caller may rely on the lock until until_us, and not a moment longer. After a push LOST it may not rely on it any more. */
struct redlock_grant {
	int64_t fence;    /* grows strictly from grant to grant of one name */
	int64_t ttl_ms;   /* the lease; 0 if the answer does not have it */
	int64_t valid_ms; /* the rest of the validity, from the answer */
	int64_t count;    /* how many times the session holds it; 0 if the answer does not have it, like that to EXTEND */
	int64_t until_us; /* a moment before the request was sent, plus valid_ms */
};

/* --- the connection --- */

/*
 * Writes the address that redlock_open uses for NULL into out: $REDLOCK_ADDR, else /run/redlockd/redlockd.sock if it exists, else
 * $XDG_RUNTIME_DIR/redlockd/redlockd.sock if it exists, else 127.0.0.1:7420. -ENAMETOOLONG if it does not fit.
 */
int redlock_address(char *out, size_t size) REDLOCK_MUST;

struct redlock_tls { /* a field that is NULL comes from the environment, or else has its default */
	size_t size;
	const char *ca_file;     /* the authorities that may have signed the certificate of the daemon, in PEM; $REDLOCK_TLS_CA, else those of the system */
	const char *cert_file;   /* the certificate for a daemon that asks for one, with its chain; $REDLOCK_TLS_CERT, else none */
	const char *key_file;    /* the key of that certificate, without a passphrase; $REDLOCK_TLS_KEY */
	const char *server_name; /* the host name in the certificate of the daemon; $REDLOCK_TLS_NAME, else the host of the address */
};

/*
 * Reads these files; NULL: those that the environment names. From then on redlock_open of this process accepts addresses tls://HOST:PORT. A
 * statically linked program that calls this also needs -lssl -lcrypto. Call it while no other thread uses the library; call it again to reload the
 * files. -EINVAL: a file cannot be used. Else the errno of reading it. In both cases the call writes the cause to why, which has room for size bytes,
 * and the files that were read before stay in use.
 */
int redlock_use_tls(const struct redlock_tls *tls, char *why, size_t size) REDLOCK_MUST;

/*
 * Connects to the path of a Unix socket, with a '/' or after "unix:", or to host:port or [v6]:port; the default port is 7420. NULL: the address of
 * redlock_address. tls://host:port is a connection inside TLS; the default port is 7422. timeout_ms is more than 0. It limits the time to connect. It
 * also limits how long each later call waits for an answer, in addition to the wait that the call asks for. For a LOCK without a wait and for an
 * EXTEND the library adds a second. -EINVAL: the timeout or the address is wrong. -EHOSTUNREACH: the host name does not resolve. -EPROTO: the
 * handshake of TLS failed. -EPROTONOSUPPORT: the address needs redlock_use_tls first. Else an errno of connect(2). redlock_errmsg(NULL) says why.
 */
int redlock_open(const char *addr, int64_t timeout_ms, struct redlock **ret_connection) REDLOCK_MUST;
/* Changes timeout_ms for the next calls. -EINVAL: it is not more than 0, or too large to be added to a moment; the old one stays. */
int redlock_set_timeout(struct redlock *c, int64_t timeout_ms);
/*
 * Authenticates the session, if the daemon has users. REDLOCK_REFUSED with "AUTH": the user or the secret is wrong. After the third failure the daemon closes
 * the connection. The library keeps the secret, and authenticates again when it reconnects. If $REDLOCK_USER is set, redlock_open authenticates as that user.
 * The secret is then the first line of the file $REDLOCK_SECRET_FILE, or $REDLOCK_SECRET. redlock_open returns -EACCES if the daemon does not accept it.
 */
int redlock_auth(struct redlock *c, const char *user, const char *secret) REDLOCK_MUST;
/*
 * Ends the session, which frees its locks. Accepts NULL. With grace it sends QUIT, and waits at most a second until the daemon closes the connection.
 * If the daemon is away at that moment, the locks end with the grace or with their leases. So do the locks of a process with grace that ends without
 * this call.
 */
void redlock_close(struct redlock *c);

/*
 * Sends the label to the daemon, and asks for grace. Call it before the first lock. Call it again to change the label or the grace. All outcomes. If
 * the daemon gives no grace, the session has none. With grace the library tracks each lock that redlock_lock, redlock_lock_all, redlock_lock_any,
 * redlock_lock_send and redlock_lock_many_send take. A waiting request keeps its places in the queues and its deadline. A lock that RESUME does not
 * restore is lost. The library reports the loss once, by a push "! LOST name=… fence=… reason=…". The reason is evicted if somebody else may hold
 * the lock already. It is expired if the lock is free when until_us has passed. redlock_check, redlock_extend and redlock_unlock return
 * REDLOCK_REFUSED with "LOST", until redlock_unlock has returned it or a call takes the lock again.
 */
int redlock_hello(struct redlock *c, const struct redlock_session *session) REDLOCK_MUST;
/* The arguments of RESUME; "" before the daemon has sent them. They change if the session was lost and the library has opened a new one. */
const char *redlock_session_id(const struct redlock *c);
const char *redlock_session_secret(const struct redlock *c);
/* Whether the connection broke and the library has not resumed the session yet. */
bool redlock_away(const struct redlock *c);

int64_t redlock_now_us(void);

/*
 * A printable line for people about the last result that was not 0; never NULL; valid until the next call. With NULL as the connection, it says why
 * the last redlock_open of this thread failed.
 */
const char *redlock_errmsg(const struct redlock *c);
/* The code of the last answer if that was ERR, else "". */
const char *redlock_code(const struct redlock *c);

/* --- locks; name is 1 to 512 bytes --- */

/* Takes a lock, and gets the grant by CHECK, because LOCK may have waited for long. All outcomes. Only 0 sets *ret_grant. */
int redlock_lock(struct redlock *c, const char *name, const struct redlock_options *options,
		 struct redlock_grant *ret_grant) REDLOCK_MUST;
/*
 * Takes all of these 1 to 64 locks, or none of them, and gets each grant by CHECK. All outcomes. ret_grants has room for n; only 0 sets it. Check, extend and
 * release each lock separately.
 */
int redlock_lock_all(struct redlock *c, const char *const *names, size_t n, const struct redlock_options *options,
		     struct redlock_grant *ret_grants) REDLOCK_MUST;
/* Takes one of these 1 to 64 locks, the first that is free. Its name is names[*ret_which]. All outcomes. */
int redlock_lock_any(struct redlock *c, const char *const *names, size_t n, const struct redlock_options *options, size_t *ret_which,
		     struct redlock_grant *ret_grant) REDLOCK_MUST;
/*
 * Frees the lock. keep_ms > 0: nobody gets it for that long. REDLOCK_REFUSED with "LOST" or "NOTHELD": the session did not hold it any more. With
 * "LIMIT": keep_ms is longer than max_keep of the daemon, and the session still holds it.
 */
int redlock_unlock(struct redlock *c, const char *name, int64_t keep_ms) REDLOCK_MUST;

/* Fields that are zero have their defaults. */
struct redlock_unlocking {
	size_t size;
	int64_t keep_ms; /* see redlock_unlock */
	bool sync;       /* answer once a quorum of the stores has freed it. "QUORUM": it is not known whether it has; the session does not hold it any more */
};
/* The same with options; NULL: the defaults. */
int redlock_unlock_with(struct redlock *c, const char *name, const struct redlock_unlocking *options) REDLOCK_MUST;
/*
 * Renews the lease now. ttl_ms > 0 sets the length of the lease from now on. If you make it shorter, do not rely on the lock for
 * longer than ttl_ms, even if the call fails.
 */
int redlock_extend(struct redlock *c, const char *name, int64_t ttl_ms, struct redlock_grant *ret_grant) REDLOCK_MUST;
/* Asks the daemon whether the session holds the lock. The daemon answers from memory. Call it right before a side effect. */
int redlock_check(struct redlock *c, const char *name, struct redlock_grant *ret_grant) REDLOCK_MUST;
/*
 * Sets the owner of all later requests that take, check, extend or unlock locks. Threads that share a connection are owners with names of 1 to 256 bytes; NULL
 * is the session itself. Owners exclude each other like sessions. A push LOST has the field "owner". -EINVAL: the name is not possible, or the session has
 * grace. A session with grace has no owners: while an owner is set, redlock_hello with grace returns -EINVAL.
 */
int redlock_set_owner(struct redlock *c, const char *owner) REDLOCK_MUST;
/* The time that is left of a grant by the local clock, at least 0. It is 0 in a forked child of the process that got the grant. Does not ask the daemon. */
int64_t redlock_left_us(const struct redlock_grant *grant);

/* --- deferred work. When the connection breaks, the library repeats only redlock_take; the other calls return -ECONNABORTED --- */

#define REDLOCK_JOB_BYTES  65  /* the id of a job, and a NUL */
#define REDLOCK_NAME_BYTES 513 /* a name, and a NUL */

struct redlock_deferral {
	size_t size;
	int64_t delay_ms; /* the job is due after this time */
	const char *lock; /* the session that takes the job gets this lock with it; NULL: none */
	const char *id;   /* while a job with this id is due or taken, no second one is added, so the request may be repeated; NULL: the daemon chooses an id */
};

/* A job that the session has taken. The session may act on it until until_us, or the later time of redlock_check_job, and not after a push LOST. */
struct redlock_job {
	char id[REDLOCK_JOB_BYTES], lock[REDLOCK_NAME_BYTES]; /* lock: "" if it has none */
	int64_t attempt;  /* 1, 2 … */
	int64_t fence;    /* fencing token of the lock; 0: it has none */
	int64_t ttl_ms, until_us;
	char *payload;    /* payload_n bytes and a NUL; the caller frees it */
	size_t payload_n;
};

/* Puts a job into a queue. All outcomes. 0: the store that keeps the queue has stored the job. ret_id has room for REDLOCK_JOB_BYTES, or is NULL. */
int redlock_defer(struct redlock *c, const char *queue, struct redlock_bytes payload, const struct redlock_deferral *options, char *ret_id) REDLOCK_MUST;
/* Takes the first job that is due. Of the options it uses wait_ms and ttl_ms. All outcomes. Only 0 sets *ret_job. */
int redlock_take(struct redlock *c, const char *queue, const struct redlock_options *options, struct redlock_job *ret_job) REDLOCK_MUST;
/* Asks whether the session still has the job, and until when. */
int redlock_check_job(struct redlock *c, const char *queue, const char *id, struct redlock_grant *ret_grant) REDLOCK_MUST;
/* The job is done: the daemon removes it, and frees its lock. REDLOCK_REFUSED with "LOST" or "NOTHELD": the job may run again. */
int redlock_done(struct redlock *c, const char *queue, const char *id) REDLOCK_MUST;
/* The job has failed: it is due again after delay_ms, unless it has failed too often. */
int redlock_retry(struct redlock *c, const char *queue, const char *id, int64_t delay_ms) REDLOCK_MUST;
/* Removes a job that no session has taken. REDLOCK_REFUSED with "NOTHELD": a session has taken it; with "NOTFOUND": there is no such job. */
int redlock_drop(struct redlock *c, const char *queue, const char *id) REDLOCK_MUST;

/* --- once in a while, over all hosts --- */

struct redlock_run { /* the result of a run, here or on another host, of redlock_once, of another client or of redlock(1) */
	bool ran;        /* redlock_once: it has run now; redlock_once_status: a run is known. Else the other fields may be zero */
	int status;      /* the result of the function; 0: success */
	int64_t took_ms; /* how long it lasted */
	int64_t next_ms; /* how long until it may begin again */
	char host[65];
	char began[32];  /* "2026-11-30T03:00:00Z" */
};

/*
 * Calls run under the lock of that name, which has 1 to 507 bytes. Does not call it if it is running now, or has begun within every_ms, on any host.
 * run may use the connection. ret_run->ran is whether run was called. The run counts if the result is 0, even if run has failed. It does not count
 * after any other result, like REDLOCK_REFUSED with "LOST" or "NOTHELD" when the lock was lost.
 */
int redlock_once(struct redlock *c, const char *name, int64_t every_ms, int (*run)(void *arg), void *arg, struct redlock_run *ret_run) REDLOCK_MUST;
/* The result of the last run. */
int redlock_once_status(struct redlock *c, const char *name, struct redlock_run *ret_run) REDLOCK_MUST;

/* --- rate limits; name is 1 to 512 bytes --- */

struct redlock_rate {
	int64_t left;     /* how many more uses are possible now */
	int64_t reset_ms; /* OK: the time until all uses are available again; else 0 */
	int64_t retry_ms; /* BUSY: the time until this cost may be possible; else 0 */
	bool unmetered;   /* OK, but not counted, because the store that keeps the limit cannot be used and rate.home_lost is open */
};

/*
 * Counts `cost` uses of the name, unless that makes more than `limit` in the last per_ms. REDLOCK_BUSY: it would be more, and nothing was counted. 0
 * and REDLOCK_BUSY set *ret_rate. A cost of 0 only asks. REDLOCK_REFUSED with "UNAVAILABLE": the store that keeps the limit cannot be used.
 * -ECONNABORTED: it is not known whether the uses were counted.
 */
int redlock_rate(struct redlock *c, const char *name, int64_t limit, int64_t per_ms, int64_t cost, struct redlock_rate *ret_rate) REDLOCK_MUST;
/* The same, but waits in the queue until the use is possible, for up to wait_ms or REDLOCK_FOREVER. REDLOCK_TIMEOUT: it was not, and nothing was counted. */
int redlock_rate_wait(struct redlock *c, const char *name, int64_t limit, int64_t per_ms, int64_t cost, int64_t wait_ms,
		      struct redlock_rate *ret_rate) REDLOCK_MUST;

/* --- state of the daemon. Each call passes its rows to row; redlock-protocol(7) lists their fields. Then redlock_answer returns the last line --- */

/*
 * If the connection breaks before the first row, these calls ask again over the next connection. If it breaks later, they return -ECONNABORTED. All
 * except redlock_ping add a second to the timeout of the connection, because daemons and stores may be busy.
 */
struct redlock_view {
	size_t size;
	bool all;    /* also ask the stores, for a holder on another host and for the host that is next */
	bool former; /* also list former holders */
};
/* Shows the holder and the waiters of one lock. view: NULL: the defaults. If the answer has known=no, it is not known whether the lock is free. */
int redlock_show(struct redlock *c, const char *name, const struct redlock_view *view, void (*row)(void *arg, const struct redlock_line *line),
		 void *arg) REDLOCK_MUST;

enum redlock_listing {
	REDLOCK_LOCKS,
	REDLOCK_SESSIONS,
	REDLOCK_NODES, /* the stores */
	REDLOCK_QUEUES,
	REDLOCK_JOBS,
};
/* Fields that are zero ask for the first page of all. */
struct redlock_page {
	size_t size;
	const char *prefix; /* only names, or labels of sessions, that start with it. For REDLOCK_JOBS: the queue. NULL: all */
	int64_t limit;      /* at most that many rows; 0: 1000 */
	int64_t more;       /* set only on 0: how many rows follow; 1 for any number of jobs. If it is not 0, the same call asks for the next page */
	size_t after_n;
	char after[REDLOCK_NAME_BYTES]; /* where this page ended */
};
/* Lists one page. page: NULL: the first page of everything. */
int redlock_list(struct redlock *c, enum redlock_listing what, struct redlock_page *page, void (*row)(void *arg, const struct redlock_line *line),
		 void *arg) REDLOCK_MUST;
int redlock_stats(struct redlock *c, void (*row)(void *arg, const struct redlock_line *line), void *arg) REDLOCK_MUST;
/* Whether the daemon answers. */
int redlock_ping(struct redlock *c) REDLOCK_MUST;

/*
 * List names that were locked through this daemon; each row has "name". redlock_complete sorts them. redlock_recent lists those that this user locked
 * last, the newest first. prefix: NULL: all names. limit: 0 means 10, and for redlock_recent 100.
 */
int redlock_complete(struct redlock *c, const char *prefix, int64_t limit, void (*row)(void *arg, const struct redlock_line *line), void *arg) REDLOCK_MUST;
int redlock_recent(struct redlock *c, const char *prefix, int64_t limit, void (*row)(void *arg, const struct redlock_line *line), void *arg) REDLOCK_MUST;

/* --- events, which arrive as pushes (below) --- */

/*
 * Asks for a push EVENT whenever a lock whose name starts with prefix is granted, released, lost or waited for. NULL: all names. A session may have up to 64
 * prefixes. With grace the library sets the watch again after the connection broke. The push "! MISSED" says that the events in between are lost: take all
 * pushes that have arrived, and then ask redlock_list for what is held. It also comes when too many events wait for redlock_next_push. The push "! UNWATCHED
 * prefix=… code=…" says that the daemon has refused to watch this prefix again.
 */
int redlock_watch(struct redlock *c, const char *prefix) REDLOCK_MUST;
/* Ends the watch with the same prefix. */
int redlock_unwatch(struct redlock *c, const char *prefix) REDLOCK_MUST;
/*
 * Asks for the push CONTENDED when others wait for what the session holds, and for DRAIN when the daemon grants nothing new and will stop. With grace the
 * library asks again after the connection broke, and nothing is missed.
 */
int redlock_subscribe(struct redlock *c) REDLOCK_MUST;
int redlock_unsubscribe(struct redlock *c) REDLOCK_MUST;

/* --- for administrators. Others get REDLOCK_REFUSED with "DENIED". After -ECONNABORTED check whether it was done: a second call may hit another session --- */

/* Takes a lock from its holder. *ret_free_in_ms, unless NULL: it is free after that time at the latest. -1: not before its holder has acknowledged the loss. */
int redlock_break(struct redlock *c, const char *name, int64_t *ret_free_in_ms) REDLOCK_MUST;
/* Ends a session, by its number from REDLOCK_SESSIONS. *ret_held, unless NULL: how many locks, permits and jobs it held. */
int redlock_kill(struct redlock *c, int64_t session, int64_t *ret_held) REDLOCK_MUST;
/*
 * The daemon grants nothing new. It stops when nobody holds anything, or after in_ms; REDLOCK_FOREVER sets no limit. *ret_held, unless NULL: how many locks
 * and slots are held.
 */
int redlock_drain(struct redlock *c, int64_t in_ms, int64_t *ret_held) REDLOCK_MUST;

/* --- any request --- */

/*
 * Sends one line of redlock-protocol(7), without LF, and waits for its answer. Calls row for each row of the answer; NULL drops the
 * rows. A row is valid during that call, which must not use the connection. wait_ms: how long the daemon may take in addition to
 * the timeout of the connection, or REDLOCK_FOREVER. -EINVAL: the line has an LF, or is empty or a comment, which the daemon never
 * answers.
 */
int redlock_request(struct redlock *c, const char *line, int64_t wait_ms, void (*row)(void *arg, const struct redlock_line *line),
		    void *arg) REDLOCK_MUST;

/* The last answer; its first word is OK, BUSY, TIMEOUT or ERR. NULL before the first answer. Valid until the next request. */
const struct redlock_line *redlock_answer(const struct redlock *c);

/*
 * Quotes text as the protocol does, so that it can be a word or a value of a line. Writes it to out, NUL-terminated. -EMSGSIZE: out
 * is too small; 4 bytes for each byte of text and 3 more always suffice.
 */
int redlock_quote(struct redlock_bytes text, char *out, size_t size) REDLOCK_MUST;

/* --- lines --- */

struct redlock_bytes redlock_line_text(const struct redlock_line *line);   /* the whole line, without LF */
struct redlock_bytes redlock_line_word(const struct redlock_line *line);   /* "OK", "BUSY", "TIMEOUT", "ERR", "*" or "!" */
struct redlock_bytes redlock_line_code(const struct redlock_line *line);   /* the code of ERR or of a push: "QUORUM", "LOST" … */
bool redlock_line_is(const struct redlock_line *line, const char *code);    /* whether the code is this one */
struct redlock_bytes redlock_line_reason(const struct redlock_line *line); /* the text of ERR, for people */
size_t redlock_line_fields(const struct redlock_line *line);
struct redlock_bytes redlock_line_name(const struct redlock_line *line, size_t i);
struct redlock_bytes redlock_line_value(const struct redlock_line *line, size_t i);
struct redlock_bytes redlock_line_find(const struct redlock_line *line, const char *field);
int64_t redlock_line_number(const struct redlock_line *line, const char *field, int64_t otherwise);

/* --- pushes, and requests in your own poll loop --- */

/* The oldest push that has arrived and was not returned yet, or NULL. Valid until the next call of this function. */
const struct redlock_line *redlock_next_push(struct redlock *c);
/*
 * The same, but waits for a push, for at most timeout_ms or REDLOCK_FOREVER. -EAGAIN: none has come. During the wait you do not notice that the
 * daemon is stopped.
 */
int redlock_wait_push(struct redlock *c, int64_t timeout_ms, const struct redlock_line **ret_push) REDLOCK_MUST;

/* Poll it for redlock_events(). With grace it may change, and is -1 while there is no connection. */
int redlock_fd(const struct redlock *c);
short redlock_events(const struct redlock *c); /* POLLIN; also POLLOUT while something is unsent */
/*
 * Call redlock_process at this moment, even if the descriptor is not ready. Then the time of a request is over, or with grace the next attempt to
 * connect is due. INT64_MAX: there is no such moment.
 */
int64_t redlock_due_us(const struct redlock *c);
/* Sends and reads without waiting, and keeps the pushes and a complete answer. 0 or a negative errno. */
int redlock_process(struct redlock *c) REDLOCK_MUST;

/*
 * These calls send a request and do not wait for the answer. Its time is that of the call that waits; redlock_send has no limit. -EBUSY: another
 * request is in flight.
 */
int redlock_send(struct redlock *c, const char *line) REDLOCK_MUST;
int redlock_lock_send(struct redlock *c, const char *name, const struct redlock_options *options) REDLOCK_MUST;
/* Sends LOCKALL or LOCKANY. After a wait the answer does not say how much of a lease is left: call redlock_check for each lock. */
int redlock_lock_many_send(struct redlock *c, bool any, const char *const *names, size_t n, const struct redlock_options *options) REDLOCK_MUST;
/* The lease in the rows of the last LOCKALL; 0: no row has come yet. */
int64_t redlock_many_ttl_ms(const struct redlock *c);
int redlock_check_send(struct redlock *c, const char *name) REDLOCK_MUST;
int redlock_extend_send(struct redlock *c, const char *name, int64_t ttl_ms) REDLOCK_MUST;
int redlock_unlock_send(struct redlock *c, const char *name, const struct redlock_unlocking *options) REDLOCK_MUST;
int redlock_take_send(struct redlock *c, const char *queue, const struct redlock_options *options) REDLOCK_MUST;
int redlock_check_job_send(struct redlock *c, const char *queue, const char *id) REDLOCK_MUST;
/*
 * Withdraws the LOCK or TAKE in flight, if it was sent with cancellable, and does not wait. Then redlock_finish returns the outcome: REDLOCK_REFUSED
 * with "CANCELLED", or the answer to the request if that came first. With grace, while there is no connection, a LOCK ends at once. If the daemon has
 * granted the lock, the library gives it back once it is connected again. -EINVAL: no such request is in flight.
 */
int redlock_cancel(struct redlock *c) REDLOCK_MUST;
bool redlock_in_flight(const struct redlock *c);
/* Returns the outcome of the request that was sent. Waits for at most timeout_ms or REDLOCK_FOREVER. -EAGAIN: no answer has come. */
int redlock_finish(struct redlock *c, int64_t timeout_ms) REDLOCK_MUST;
/* The grant in the last answer, if that was OK to LOCK, EXTEND or CHECK; else -EINVAL. */
int redlock_grant(const struct redlock *c, struct redlock_grant *ret_grant) REDLOCK_MUST;
/* The job in the last answer, if that was OK to TAKE; else -EINVAL. Its until_us is 0: call redlock_check_job_send. */
int redlock_taken(struct redlock *c, struct redlock_job *ret_job) REDLOCK_MUST;
/* Like redlock_grant, for the answer to redlock_check_job_send. */
int redlock_job_grant(const struct redlock *c, struct redlock_grant *ret_grant) REDLOCK_MUST;

#ifdef __cplusplus
}
#endif

#endif
