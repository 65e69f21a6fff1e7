/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that serve sessions share. Requests become calls of the engine, and notices become lines. */
#ifndef CORE_REQUEST_CONTEXT_H
#define CORE_REQUEST_CONTEXT_H

#include "daemon/core/round/engine_data.h"
#include "daemon/core/session/client.h"
#include "daemon/core/session/session.h"

/* A walk through all sessions: where it is, and how much it may still do in this step. */
struct walk_step {
	struct request_context *x;
	int64_t left;
};

struct request_context {
	struct core *core;
	struct engine *engine;
	struct session_table *sessions;
	struct request request;  /* the request that is being served: large, so not on the stack */
	struct parse_error parse_error;
	struct {
		struct turns waiting;  /* the first unanswered LIST of each session, if it has no page yet */
		TAILQ_HEAD(, listing) pages; /* those that have a page … */
		struct turns running;  /* … and look for rows, or send them */
		struct timer timer;
		struct instant next_at; /* the next slice of a LIST comes no earlier */
	} lists;
	struct deadlocks *deadlocks; /* NULL: nobody waits while it holds something, see deadlock.h */
	struct name_history *history;         /* NULL: nothing was granted yet, see history.h */
	struct formers *formers;     /* NULL: no long hold has ended yet, see history.h */
	struct auths *auths;         /* NULL: nobody has sent AUTH yet, see auth.c */
	struct remote_holders *remote_holders; /* NULL: nobody has asked about a holder elsewhere yet, see remote_holders.h */
	unsigned due;            /* how many groups and permits are due */
	struct bids bids_due[BID_KINDS]; /* groups and permits to be looked at before the step ends: see groups.c, permit_step.c */
	struct map semaphores;   /* those of which a session here has or wants a permit: see semaphore.h */
	struct bids bids_later;  /* the permits that are the first in their lines: they ask for more slots in the next step */
	bool step_again;         /* groups or permits have asked for names, or given some back, since the engine has settled */
	struct watchings watchings; /* sessions that watch */
	unsigned prefixes;          /* how many prefixes they watch */
	struct {
		TAILQ_HEAD(, event_kept) kept; /* events to send in the next steps … */
		size_t kept_bytes;
		uint64_t number;               /* the number of the last event */
		bool missed;                   /* `kept` was full: events are only counted */
		unsigned cost;                 /* the cost of what was sent in this step */
	} news;                     /* see watch.h */
	LIST_HEAD(, job) jobs;   /* those of sessions, and those whose end the home does not know yet */
	unsigned jobs_at_stake;  /* how many of them are not lost */
	LIST_HEAD(, job_queue) queues; /* those in which a TAKE waits … */
	unsigned queues_n;       /* … and how many they are */
	LIST_HEAD(, job_order) all_orders; /* DEFERs that are not answered yet */
	LIST_HEAD(, job_list) surveys; /* LIST jobs that are not answered yet */
	struct map rate_lines;   /* by name, the lines in which a RATE waits: see rate.h */
	uint64_t places;         /* the number of the last place that a TAKE got */
	bool queue_due;          /* something may be due in one of them: they are looked at before the step ends */
	struct {
		struct timer timer; /* set: when the drain ends even if something is held */
		bool over;          /* the timer has fired: the drain ends even if something is held */
		/* Refusing: the sessions of all slots, then those without a connection, slice by slice. It begins again if a hold has ended meanwhile. */
		bool more, again;
		struct session_walk walk;
		/* Looking: no session in the slots before this one has an unanswered request. */
		uint32_t look, looked;
	} drain;                 /* engine.draining: see admin.h */
	struct {
		uint32_t rules;     /* how many times new rules came: sessions are checked against the last ones … */
		bool more;          /* … but not all of them yet */
		struct session_walk walk;
	} revoke;                /* see admin.h */
	unsigned served;         /* lines read ahead that were served in this step */
	unsigned rates_failed;   /* RATEs in a line that failed, in this step or before, since a line last went on: see rate.c */
	unsigned slots_asked;    /* in this step, by permits that are first in line */
	struct timer again;      /* set: the step had no time for everything, and the next one follows at once */
	bool attends;            /* alarms or the slow log need grants and waits: see admin.h. It counts as a session in engine.watched */
	struct {
		LIST_HEAD(, session) sessions; /* those with short leases, as counted last */
		unsigned recounts;     /* how many times all of them were counted */
#define RENEWALS_SUMS 64
		struct renewals_sum {
			uint64_t origin;       /* origin_id() of the peer; 0: all peers */
			struct instant until;  /* the sum is made anew then */
			int64_t milli;
		} sum[RENEWALS_SUMS];
	} renewals;              /* see send.h */
	uint64_t orders;         /* the number in the last nonce of a DEFER */
	bool named;              /* the journal has the id of the daemon */
	bool snapshot;           /* a snapshot for the journal is being written … */
	struct map_walk snapshot_at; /* … as far as this */
	struct span hands_over;  /* the next process is being sent everything; these are the stores. "": it is not. See resume.h */
	struct handed *handed;   /* what the process before this one has handed over, and what is not served again yet; NULL: nothing. See resume.h */
	bool more;               /* the records that are being written are of one LOCKALL, and more of them follow */
	struct session *torn;    /* restoring: the last records are of a LOCKALL of that session, and more should follow; NULL: they are not */
	unsigned torn_count;     /* number of those records */
	bool distrusts;          /* the journal of the previous run cannot be read: nothing in it is used */
};

/* --- the request that is being served --- */

static inline struct span request_owner(const struct request *q)
{
	return request_has(q, FIELD_OWNER) ? q->field[FIELD_OWNER].text : SPAN("");
}

static inline struct remark request_remark(const struct request *q)
{
	return (struct remark){request_has(q, FIELD_NOTE) ? q->field[FIELD_NOTE].text : SPAN(""),
	                       request_has(q, FIELD_TRACE) ? q->field[FIELD_TRACE].text : SPAN("")};
}

static inline unsigned request_priority(const struct request *q)
{
	return request_has(q, FIELD_PRIORITY) ? (unsigned)q->field[FIELD_PRIORITY].number : 0;
}

static inline bool request_is_shared(const struct request *q)
{
	return request_has(q, FIELD_MODE) && q->field[FIELD_MODE].number == MODE_SHARED;
}

static inline bool request_is_renewed(const struct request *q)
{
	return !request_has(q, FIELD_RENEW) || q->field[FIELD_RENEW].number;
}

/* Returns count=; 0: the request has none, or count=0. */
static inline unsigned request_count(const struct request *q)
{
	return request_has(q, FIELD_COUNT) ? (unsigned)q->field[FIELD_COUNT].number : 0;
}

/* out has room for TAG_MAX + 1 bytes. */
static inline void request_keep_tag(const struct request *q, char *out)
{
	memcpy(out, q->tag.p, q->tag.n);
	out[q->tag.n] = '\0';
}

static inline void request_context_again(struct request_context *x)
{
	if (!timer_is_set(&x->again))
		heap_set(&x->core->timers, &x->again, x->core->now);
}

/* A hold of this session has ended. In a drain, what it asked for as a holder is refused in the next steps. */
static inline void request_context_let_go(struct request_context *x, struct session *s)
{
	if (!x->engine->draining || s->waiting == 0)
		return;
	s->refused = false;
	x->drain.more = x->drain.again = true;
	request_context_again(x);
}

#endif
