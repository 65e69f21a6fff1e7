/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Computes until when a process may rely on the locks that it holds for a command or a script. It reads pushes, sends CHECK, and watches the clock.
 * Moments are those of redlock.h.
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
		grant;      /* of the last answer; if that has no ttl_ms, ttl_ms is of an earlier one */
	int64_t longest_us; /* the longest validity in any answer, at most the ttl; the margins are shares of it */
	int64_t check_at;   /* when the next CHECK is sent */
	int64_t term_at;    /* when the command is stopped if no answer came: a fifth of the validity is left */
	int64_t awake_us;   /* when this process last ran, or was due to run */
	int64_t paused_us;  /* for how long this process was paused since the last answer in time; 0: it was not */
	int64_t late_until; /* after a pause: until then CHECK is sent although the validity is over */
};

/* Stores the grant of an answer. */
void validity_set(struct validity *b, const struct redlock_grant *grant);
/* Call it when CHECK is sent. If this process is late, it postpones term_at, so that the answer has time to come. */
void validity_asked(struct validity *b, int64_t now);
/*
 * Call validity_awake when this process runs, and validity_sleeps before it sleeps until due. If it runs later than due, it was paused, like a paused
 * container. The daemon kept the lock while the connection lived. So CHECK is sent before the command is stopped, and its answer has time to come.
 */
void validity_awake(struct validity *b, int64_t now);
void validity_sleeps(struct validity *b, int64_t due);
/* Writes "; this process was paused for 41s", or "". */
const char *validity_still(const struct validity *b, char out[STILL_BYTES]);
/* Whether a CHECK is useful now. After the end of the validity it is not: the process has relied on the lock for too long. */
bool validity_may_ask(const struct validity *b, int64_t now);
/* The daemon did not know: CHECK is sent again soon. */
void validity_unknown(struct validity *b, int64_t now);
/* When the command is killed: a tenth of the validity is left. */
int64_t validity_kill_at(const struct validity *b);

/* --- the daemon --- */

#define LEASE_MORE 4

struct lease { /* first member of the struct of its owner, which sets the first two fields */
	struct keeper_task *task;
	void (*lost)(struct lease *l, int64_t kill_by, const char *name, const char *why); /* the lock is lost: what it protects must end by kill_by */
	struct validity validity;
	bool deaf;           /* the owner needs no more news of the lock */
	bool unreported;     /* it counts as lost although no one reported that: the session may still hold it */
	int children, timer; /* a signalfd for SIGCHLD; a timerfd of CLOCK_BOOTTIME, which runs during a suspend */
	short ready;         /* poll events of the connection, after lease_sleep */
	unsigned asked;      /* the index of the name that CHECK asks about */
	char name[SHOWN_BYTES], one[SHOWN_BYTES]; /* for people: all names, and one of them */
};

/*
 * Call it when the session has got locks with this lease. Makes the grace as long as the lease. Sets task->grant by CHECK, because the LOCK may have
 * waited for long. 0, or w->exit after a complaint: code, or the exit code for a session that cannot be used.
 */
int lease_confirm(struct keeper_task *task, struct waiting *w, int64_t ttl_ms, int code) REDLOCK_MUST;
/* task holds the locks of task->grants. 0 or a negative errno. Call lease_process next. */
int lease_begin(struct lease *l);
/* Returns one of the names, for people; valid until the next call. */
const char *lease_name(struct lease *l, unsigned i);
/* Sends CHECK for each name, one after the other. */
void lease_ask(struct lease *l, int64_t now);
/* Sends CHECK when it is time. Calls lost when the lock may not be relied on any longer. */
void lease_decide(struct lease *l, int64_t now);
/* Returns the next moment with something to do. unanswered: until when to wait for an answer. */
int64_t lease_due_us(const struct lease *l, int64_t unanswered);
/*
 * Sleeps until that moment, or until a child has ended, the daemon has sent something, or one of the n descriptors is ready. False: the sleep was
 * interrupted. Afterwards call lease_process, which handles what the daemon has sent.
 */
bool lease_sleep(struct lease *l, int64_t due_us, struct pollfd *more, unsigned n);
void lease_process(struct lease *l);
/* Waits for the answer to a CHECK in flight, so that the locks can be unlocked. 0, or the errno that prevents it. */
int lease_finish_check(const struct lease *l);

/* --- the end of the session while the daemon is away: a process stays in the background for it --- */

/* Whether QUIT cannot be sent now. If a name must be kept: whether UNLOCK cannot, because another request is in flight. */
bool late_quit_must(const struct keeper_task *task);
/* Closes all descriptors except asker and that of the connection. Waits until the daemon is back, at most two leases, and ends the session. */
void late_quit(const struct keeper_task *task, int asker);

#endif
