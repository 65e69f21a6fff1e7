/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The jobs that sessions of this daemon have taken, and the TAKEs that wait. A job is kept at the home of its queue. A TAKE leases it: until some moment the
 * home stores a value under the job's name. The lease has one vote, that of the home. This file asks no store and sends nothing; job.c and take.c act. See
 * ALGORITHMS.md, Jobs.
 */
#ifndef CORE_JOBS_H
#define CORE_JOBS_H

#include "daemon/core/round/home.h"
#include "daemon/core/session/bid.h"

#define JOB_NONSENSE  SPAN("its answer makes no sense")
#define JOB_OWNER_MAX (4 + NAME_MAX_BYTES + 1 + JOB_ID_MAX) /* see job_owner() */
_Static_assert(JOB_OWNER_MAX <= OWNER_MAX_BYTES, "the session may send it");

/* Who asked the home: the first member of what home_question.about points to. */
enum job_asker { ASKER_GONE, ASKER_JOB, ASKER_QUEUE, ASKER_CLOSED_QUEUE, ASKER_ORDER, ASKER_SURVEY, ASKER_QUEUE_LIST };

enum job_state {
	JOB_HELD,     /* the session has it, and the watchdog renews its lease */
	JOB_ADOPTING, /* a session of the previous run had it: the home is asked whether it still has it */
	JOB_LOST,     /* the session had it. It was not told of the loss yet, or has not acknowledged it */
	JOB_ENDING,   /* done, failed, or given back: the home is still to be asked for that */
};

/* How a job in JOB_ENDING ends. */
enum job_end {
	JOB_DONE,
	JOB_FAILED, /* RETRY, or the end of its session */
	JOB_BACK,   /* there was no attempt: no client was told that it has the job, or its RETRY says failed=no */
};

struct job {
	enum job_asker asker;
	enum job_state state;        /* written by job_set_state() only */
	LIST_ENTRY(job) in_session;
	LIST_ENTRY(job) in_all;      /* request_context.jobs */
	struct session *session;     /* NULL: JOB_ENDING, and no request waits for the answer */
	struct span queue, id, lock; /* owned; lock "": none. id "": of a TAKE to which the home may have given a job, since its answer is not known */
	struct lease_value value;
	struct span former;          /* owned; ADOPTING: the value from the journal */
	unsigned attempt;
	int64_t ttl_us;
	struct instant until;        /* the end of its lease: the vote of the home */
	struct instant renew_at;
	struct instant taken_at;
	struct timer timer;          /* HELD, ADOPTING: to renew it, or to report the loss; ENDING: to ask the home again, or to give up */
	struct home_question *question; /* under way; NULL: none */
	bool at_risk;                /* RISK was sent */
	bool not_notified;           /* LOST: the client does not know it yet */
	bool here;                   /* HELD: the answer to its TAKE was sent over the present connection … */
	bool known;                  /* … or the client has sent a request about it since. If neither, a TAKE after RESUME is answered with it */
	bool unreported;             /* ENDING: its client does not know that it had the job, so no loss is reported */
	bool unsure;                 /* ENDING: an answer is missing, so the home may have ended the job. ADOPTING: the previous run has asked for its end */
	bool superseded;             /* ENDING, LOST: the session has taken it again since. The journal has the newer attempt, not this one */
	enum loss loss;
	enum job_end end;
	int64_t delay_us;            /* FAILED */
	bool wakes;                  /* BACK: other TAKEs may get it at once */
	struct pending *pending;     /* ENDING: the request that is answered then; NULL: none */
};

/* How many TAKEs of one peer wait for jobs of one queue. At least one. */
struct take_share {
	LIST_ENTRY(take_share) of_origin;
	const struct job_queue *queue;
	unsigned n;
};

/* A TAKE that is not answered yet. */
struct take {
	struct bid bid;              /* its timer: patient, the end of the wait */
	TAILQ_ENTRY(take) in_queue, in_ending;
	struct take_share *share;    /* the same for this queue; NULL: its peer has no limit */
	struct job_queue *queue;
	uint64_t place;              /* its place among those that wait: the smallest comes first */
	struct group *group;         /* asks for the lock of the job that it was given. NULL: it was given none, and is in queue.waiting */
	struct job *job;             /* that job, which does not belong to the session yet; NULL: none */
	struct span payload;         /* owned; the payload of that job */
	int64_t due_ms;              /* when that job was due, by the clock of the home … */
	struct instant due_at;       /* … and by our clock, as far as that is known */
	unsigned denied_in;          /* the last pass with a job whose lock the rules deny to its session … */
	unsigned denied_by;          /* … the line of the rule that denies it; 0: no rule allows it */
	unsigned wrong_type_in;      /* … the last pass with a job whose lock is a key of another type */
	bool ends;                   /* it is in queue.ending */
	bool late;                   /* it came after the home was asked: the answer may be too old for it */
};
TAILQ_HEAD(takes, take);

/* NULL: NULL. */
static inline struct take *take_of_bid(struct bid *b)
{
	return b ? container_of(b, struct take, bid) : NULL;
}

static inline struct take *take_first(const struct session *s)
{
	return take_of_bid(TAILQ_FIRST(&s->bids[BID_TAKE]));
}

static inline struct take *take_next(const struct take *take)
{
	return take_of_bid(TAILQ_NEXT(&take->bid, in_session));
}

#define BUSY_LOCKS 16 /* how many a pass remembers */

/* A queue in which a TAKE waits here. */
struct job_queue {
	enum job_asker asker;
	LIST_ENTRY(job_queue) in_all; /* request_context.queues */
	struct span name;            /* owned */
	struct origin *origin;       /* the peer for whose number of queues it counts; NULL: none */
	struct takes waiting;        /* first come, first served */
	struct takes ending;         /* those of them that end with the pass: they do not wait, or no longer wait */
	unsigned patient;            /* how many in `waiting` are patient */
	unsigned pass;               /* the number of the pass */
	unsigned takes;              /* how many TAKEs wait, … */
	unsigned asking;             /* … and how many of them ask for the lock of a job */
	struct home_question *question; /* under way, for the first TAKE; NULL: none */
	struct lease_value value;    /* the value that it asks for … */
	int64_t ttl_us;              /* … and the ttl */
	struct timer timer;          /* when to look again: something is due, or a message may have been lost */
	bool again;                  /* something may have become due since the pass began */
	bool woken;                  /* the home has reported that since: see takes_wake() */
	bool home_knows;             /* the home knows that this daemon waits … */
	bool waits_on;               /* … and still will when it has given a job, because other TAKEs wait */
	bool trouble;                /* the home did not answer the last time */
	char why[128];               /* trouble: the reason, for messages */
	/* The pass: jobs whose locks others hold are left out, until nothing more is due. */
	unsigned refused;            /* how many jobs it has given back */
	bool whole;                  /* the home had nothing more: the next pass begins at the first job that is due */
	struct span busy[BUSY_LOCKS]; /* owned: the locks that were refused last */
	int64_t after_ms;            /* asks only for jobs after this one … */
	struct span after_id;        /* … owned; "": all */
};

/* The session relies on the job, or may rely on it. */
static inline bool job_is_had(const struct job *job)
{
	return job->state == JOB_HELD || job->state == JOB_ADOPTING;
}

/* Creates a job of this queue. It belongs to no session yet. */
struct job *job_new(struct request_context *x, struct span queue, struct span id, struct span lock);
void job_free(struct request_context *x, struct job *job);
void job_set_state(struct request_context *x, struct job *job, enum job_state to);
/* The job belongs to this session from now on; NULL: to none. */
void job_set_session(struct job *job, struct session *s);
/*
 * Finds a job of the session by its id, if it is not ending. queue "": in any queue. In one queue, a lost one is found only if there is no other. *ret_more:
 * other queues have one of that id as well. NULL: it has none.
 */
struct job *job_find(const struct session *s, struct span queue, struct span id, bool *ret_more);
/* Finds a job of that id that is ending, and for whose end no request waits: its client was cut off, or asked the previous run. NULL: it has none. */
struct job *job_find_ending(const struct session *s, struct span queue, struct span id);
/* Each queue that a TAKE waits for is a key at its home. It counts for the peer that has waited there longest. NULL: for none. */
void job_queue_count_for(struct job_queue *queue, struct origin *o);
struct job_queue *job_queue_new(struct request_context *x, struct span name);
/* Nobody waits in it. Its question, if one is under way, has no asker any longer. */
void job_queue_free(struct request_context *x, struct job_queue *queue);
/* Finds the queue in which a TAKE waits here; NULL: there is none. */
struct job_queue *job_queue_find(const struct request_context *x, struct span name);
/* Something may be due in this queue: TAKEs look before the step ends. */
void job_queue_note(struct request_context *x, struct span name);
/* Returns the claim of its session on its lock; NULL: it has none. */
struct claim *job_claim(const struct request_context *x, const struct job *job);
/* Writes the owner of its lock into out, which has JOB_OWNER_MAX bytes: "job:<queue>/<id>". */
struct span job_owner(const struct job *job, char *out);
/* Another job of its session has the same lock, with the same owner. */
bool job_shares_lock(const struct job *job);
/* Returns when a loss is reported. */
struct instant job_loss_due(const struct job *job);
/* The session can be sent something now. */
static inline bool session_reachable(const struct session *s)
{
	return s && !s->over && !s->detached && (!s->resuming || s->returns);
}

/* Finds that of a peer; NULL: none of its TAKEs waits there. */
struct take_share *take_share_find(const struct origin *o, const struct job_queue *queue);
void take_share_join(struct take *take); /* counts one more */
void take_share_leave(struct take *take);

/* Puts it into its queue, in front of `before`; NULL: at the end. */
void take_join_line(struct request_context *x, struct take *take, struct take *before);
void take_leave_line(struct request_context *x, struct take *take);
/* It is in the queue: it ends when nothing is left to take. */
void take_end_with_pass(struct take *take);
/* It was patient. From now on it is answered as if it had never waited. */
void take_wait_no_more(struct request_context *x, struct take *take);
/* What a home reports of a job that it has leased. The texts point into the answer. */
struct job_leased {
	struct span id, lock, payload;
	unsigned attempt;
	int64_t due_ms; /* by the clock of the home */
};
bool job_read(struct span *text, struct job_leased *ret_job); /* reads one, and removes it from *text */
/* A home has reported which jobs have failed for good: logs and counts them. ids: the words of its answer. */
void jobs_note_failed(struct request_context *x, struct span queue, struct span ids);

extern const char job_is_adopted_text[]; /* ERR UNAVAILABLE: why the daemon does not know yet whether the session has it */

/* Returns how much validity may be reported to a client. */
int64_t job_valid_us(const struct job *job, struct instant now);

#endif
