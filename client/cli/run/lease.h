/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a process that holds locks for a command or a script knows until when it may rely on them: it listens to the daemon, asks CHECK, and counts. Moments are
 * those of redlock.h.
 */
#ifndef CLIENT_LEASE_H
#define CLIENT_LEASE_H

#include "client/cli/io/output.h"
#include "client/cli/run/task.h"
#include "client/cli/run/waiting.h"

#include <poll.h>

#define STILL_BYTES 80

struct validity {
	struct redlock_grant
		grant;      /* of the last answer; ttl_ms is that of an earlier answer where the last one does not tell it */
	int64_t longest_us; /* the longest validity that was told, at most the ttl; the margins are shares of it */
	int64_t check_at;   /* when CHECK is to be asked */
	int64_t term_at;    /* when the command is stopped if no answer came: a fifth of the validity is left */
	int64_t awake_us;   /* when this process last ran, or was to run */
	int64_t stood_us;   /* for how long this process stood still since the last validity that was not over; 0: it did not */
	int64_t late_until; /* after that: until then CHECK is asked although the validity is over */
};

/* Takes over the grant that an answer told. */
void validity_set(struct validity *b, const struct redlock_grant *grant);
/* CHECK is sent now. Postpones term_at if this process is late, so that the answer has a moment to come. */
void validity_asked(struct validity *b, int64_t now);
/*
 * validity_awake: this process runs. If it was to run sooner, it stood still, as in a paused container. The daemon has kept the lock for as long as it saw the
 * connection, so CHECK is asked before the command is stopped, and its answer has a moment to come. validity_sleeps: the process is to run again at due.
 */
void validity_awake(struct validity *b, int64_t now);
void validity_sleeps(struct validity *b, int64_t due);
/* "; this process was paused for 41s", or "". */
const char *validity_still(const struct validity *b, char out[STILL_BYTES]);
/* Whether it is of use to ask CHECK now. Behind the validity it is not: the lock was relied on for too long. */
bool validity_may_ask(const struct validity *b, int64_t now);
/* The daemon could not tell: CHECK is asked again soon. */
void validity_untold(struct validity *b, int64_t now);
/* When the command is killed: a tenth of the validity is left. */
int64_t validity_kill_at(const struct validity *b);

/* --- the daemon --- */

#define LEASE_MORE 4

struct lease { /* the first member of its owner, who sets the first two fields */
	struct keeper_task *task;
	void (*lost)(struct lease *l, int64_t kill_by, const char *name, const char *why); /* the lock is lost: what it protects must end by that moment */
	struct validity validity;
	bool deaf;           /* the owner does not want to hear of the lock any more */
	bool unsaid;         /* it is lost although nobody said so: the session may still hold it */
	int children, timer; /* signalfd of SIGCHLD; timerfd of CLOCK_BOOTTIME, which a suspend does not stop */
	short ready;         /* of the connection, after lease_sleep */
	unsigned asked;      /* the name that CHECK is asked about */
	char name[SHOWN_BYTES], one[SHOWN_BYTES]; /* for a person: all names, and one of them */
};

/*
 * The locks were granted to the session with this lease: the grace becomes as long, and CHECK tells task->grant, because the LOCK may have waited for long. 0,
 * or what w->exit is after a complaint: code, or that of a session that cannot be used.
 */
int lease_confirm(struct keeper_task *task, struct waiting *w, int64_t ttl_ms, int code) REDLOCK_MUST;
/* task holds the locks of task->grants. 0, or a negative errno; lease_hear comes next. */
int lease_begin(struct lease *l);
/* One of the names, for a person; valid until the next call. */
const char *lease_name(struct lease *l, unsigned i);
/* Asks CHECK for each name, one after the other. */
void lease_ask(struct lease *l, int64_t now);
/* Asks when it is time; and says when the lock may not be relied on any longer. */
void lease_decide(struct lease *l, int64_t now);
/* When the daemon is heard or asked next, if an answer is waited for until that moment. */
int64_t lease_due_us(const struct lease *l, int64_t unanswered);
/*
 * Sleeps until that moment, or until a child has ended, the daemon says something, or one of the n descriptors is ready. False: the sleep was interrupted. Then
 * lease_hear hears what the daemon has said, if anything.
 */
bool lease_sleep(struct lease *l, int64_t due_us, struct pollfd *more, unsigned n);
void lease_hear(struct lease *l);
/* Waits for the answer to a CHECK in flight, so that the locks can be unlocked. 0, or why they cannot be. */
int lease_settle(const struct lease *l);

/* --- the end of the session, in a process that stays in the background for it since the daemon is away --- */

/* Whether QUIT cannot be sent now; or, if a name is to be kept, UNLOCK, since another request is in flight. */
bool late_quit_must(const struct keeper_task *task);
/* Closes all descriptors but that of the connection and asker, waits until the daemon is back, two leases at most, and ends the session. */
void late_quit(const struct keeper_task *task, int asker);

#endif
