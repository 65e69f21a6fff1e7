/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The jobs that sessions of this daemon have taken, and the TAKEs that wait. A job is kept at the home of its queue; a TAKE leases it: a value stands there in
 * its name until a moment, and one vote, that of the home, vouches for it. A value machine: it asks no store and tells nobody; job.c and take.c act.
 * See ALGORITHMS.md, Jobs.
 */
#ifndef CORE_JOBS_H
#define CORE_JOBS_H

#include "daemon/core/round/home.h"
#include "daemon/core/session/request_context.h"

#define JOB_NONSENSE  SPAN("its answer makes no sense")
#define JOB_OWNER_MAX (4 + NAME_MAX_BYTES + 1 + JOB_ID_MAX) /* see job_owner() */
_Static_assert(JOB_OWNER_MAX <= OWNER_MAX_BYTES, "the session may send it");

/* Who asked the home. The first member of what home_question.about points to. */
enum job_asker { ASKER_GONE, ASKER_JOB, ASKER_QUEUE, ASKER_CLOSED_QUEUE, ASKER_ORDER, ASKER_SURVEY, ASKER_QUEUE_LIST };

enum job_state {
	JOB_HELD,     /* the session has it, and the watchdog renews its lease */
	JOB_ADOPTING, /* the session of a previous run had it: the home is asked whether that still stands */
	JOB_LOST,     /* the session had it, and has not heard, or not said, that it knows of the loss */
	JOB_ENDING,   /* done, failed, or given back: the home is to be told */
};

/* What becomes of a job in JOB_ENDING. */
enum job_end {
	JOB_DONE,
	JOB_FAILED, /* RETRY, or the end of its session */
	JOB_BACK,   /* there was no attempt: nobody was told that he has it, or his RETRY says failed=no */
};

struct job {
	enum job_asker asker;
	enum job_state state;        /* job_set_state() alone writes it */
	LIST_ENTRY(job) in_session;
	LIST_ENTRY(job) in_all;      /* request_context.jobs */
	struct session *session;     /* NULL: JOB_ENDING, and nobody is to be answered */
	struct span queue, id, lock; /* owned; lock "": none. id "": of a TAKE whose answer is not known */
	struct lease_value value;
	struct span former;          /* owned; ADOPTING: the value as the journal has it */
	unsigned attempt;
	int64_t ttl_us;
	struct instant until;        /* D: the vote of the home */
	struct instant renew_at;
	struct instant taken_at;
	struct timer timer;          /* HELD, ADOPTING: to be renewed, or told lost; ENDING: to be told again, or given up */
	struct home_question *question; /* the one under way; NULL: none */
	bool at_risk;                /* RISK was told */
	bool not_notified;           /* LOST: the client was not told */
	bool here;                   /* HELD: the answer to its TAKE was sent over the present connection … */
	bool known;                  /* … or the client has said something about it since: else TAKE after RESUME answers with it */
	bool unreported;             /* ENDING: its client does not know that it had the job, so no loss is reported */
	bool unsure;                 /* ENDING: an answer stayed out, so it may have been carried out. ADOPTING: the previous run has asked for its end */
	bool superseded;             /* ENDING, LOST: the session has taken it again since, and what the journal says is about that */
	enum loss loss;
	enum job_end end;
	int64_t delay_us;            /* FAILED */
	bool wakes;                  /* BACK: others may have it at once */
	struct pending *pending;     /* ENDING: the request; NULL: none */
};

/* How many TAKEs of one peer wait for the jobs of one queue: one at least. */
struct take_share {
	LIST_ENTRY(take_share) of_origin;
	const struct job_queue *queue;
	unsigned n;
};

/* A TAKE that is not answered yet. */
struct take {
	LIST_ENTRY(take) in_session;
	TAILQ_ENTRY(take) in_queue, in_ending;
	struct session *session;
	struct origin *origin;       /* in whose crowd it counts */
	struct take_share *share;    /* likewise, of this queue; NULL: its peer has no bound */
	struct job_queue *queue;
	uint64_t place;              /* among those that wait: a smaller one stands before */
	struct group *group;         /* asks for the lock of the job that it was given; NULL: it was given none, and is among queue.waiting */
	struct job *job;             /* that job, which is not the session's yet; NULL: none */
	struct span payload;         /* owned; of that job */
	int64_t due_ms;              /* likewise, by the clock of the home … */
	struct instant due_at;       /* … and by ours, as far as that is known */
	struct instant asked_at, wait_until;
	struct timer timer;          /* patient: the end of the wait */
	int64_t ttl_us;
	bool patient;
	unsigned denied_in;          /* the last pass with a job whose lock its session may not have … */
	unsigned denied_by;          /* … by the rule in this line; 0: no rule gives it */
	unsigned wrong_type_in;      /* … or whose lock is a key of another type */
	bool ends;                   /* it is in queue.ending */
	bool late;                   /* it came when the home had been asked already: what that says may be old */
	char tag[TAG_MAX + 1];
};
TAILQ_HEAD(takes, take);

#define BUSY_LOCKS 16 /* that a pass remembers */

/* A queue for which a TAKE waits here. */
struct job_queue {
	enum job_asker asker;
	LIST_ENTRY(job_queue) in_all; /* request_context.queues */
	struct span name;            /* owned */
	struct origin *origin;       /* among whose queues it counts; NULL: nobody's */
	struct takes waiting;        /* first come first served */
	struct takes ending;         /* those of them that end with the pass: they do not wait, or no longer */
	unsigned patient;            /* how many of those in waiting wait */
	unsigned pass;               /* its number */
	unsigned takes;              /* how many TAKEs wait, … */
	unsigned asking;             /* … and how many of them ask for the lock of a job */
	struct home_question *question; /* under way, for the first one; NULL: none */
	struct lease_value value;    /* that it asks for … */
	int64_t ttl_us;              /* … and for how long */
	struct timer timer;          /* when to look again: something is due, or a message may have been lost */
	bool again;                  /* something may be due since the pass began */
	bool woken;                  /* the home has said so since: see takes_wake() */
	bool told;                   /* the home knows that this daemon waits … */
	bool stays;                  /* … and if it gives a job, others wait still */
	bool trouble;                /* the home did not answer the last time */
	char why[128];               /* trouble: for people */
	/* The pass: jobs whose locks others hold are left out, until nothing more is due. */
	unsigned refused;            /* how many it has given back */
	bool whole;                  /* the home had nothing more: the next pass begins at the first that is due */
	struct span busy[BUSY_LOCKS]; /* owned: locks that were refused last */
	int64_t after_ms;            /* only jobs behind this one … */
	struct span after_id;        /* … owned; "": all */
};

/* Its session believes, or may believe, that it has the job. */
static inline bool job_is_had(const struct job *job)
{
	return job->state == JOB_HELD || job->state == JOB_ADOPTING;
}

/* Texts of jobs may be any bytes. An owned text is a copy of its own; "" is none. */
struct span job_text_keep(struct span text);
void job_text_free(struct span *text);
void job_text_set(struct span *text, struct span to);

/* A job of this queue. It is in no session. */
struct job *job_new(struct request_context *x, struct span queue, struct span id, struct span lock);
void job_free(struct request_context *x, struct job *job);
void job_set_state(struct request_context *x, struct job *job, enum job_state to);
/* The session gets the job, or no longer has it; NULL: nobody has it. */
void job_set_session(struct job *job, struct session *s);
/*
 * Any session's job of that id that is not ending; queue "" is any queue. Of one queue a lost one is found only if there is no other. *ret_more: there are
 * others in other queues. NULL: it has none.
 */
struct job *job_find(const struct session *s, struct span queue, struct span id, bool *ret_more);
/* Its job of that id that is ending, and whose end no request waits for: its client was cut off, or asked the previous run. NULL: it has none. */
struct job *job_find_ending(const struct session *s, struct span queue, struct span id);
/* Each queue that a TAKE waits for is a key at its home. It counts for whoever waits there longest. NULL: for nobody. */
void job_queue_count_for(struct job_queue *queue, struct origin *o);
/* The queue for which a TAKE waits here; NULL: none does. */
struct job_queue *job_queue_find(const struct request_context *x, struct span name);
/* Something may be due there: TAKEs look before the step ends. */
void job_queue_note(struct request_context *x, struct span name);
/* The claim of its session on its lock; NULL: it has none. */
struct claim *job_claim(const struct request_context *x, const struct job *job);
/* The owner of its lock: "job:<queue>/<id>", written into JOB_OWNER_MAX bytes. */
struct span job_owner(const struct job *job, char *out);
/* The lock of this job is also that of another job of its session: both have the same owner. */
bool job_shares_lock(const struct job *job);
/* When a loss is told. */
struct instant job_tell_at(const struct job *job);
/* The session can be told now. */
static inline bool session_hears(const struct session *s)
{
	return s && !s->over && !s->detached && (!s->resuming || s->returns);
}

/* That of a peer; NULL: none of its TAKEs waits there. */
struct take_share *take_share_find(const struct origin *o, const struct job_queue *queue);
void take_share_join(struct take *take); /* one more of it */
void take_share_leave(struct take *take);

/* Among those that wait in its queue, in front of this one; NULL: at the end. */
void take_join_line(struct request_context *x, struct take *take, struct take *before);
void take_leave_line(struct request_context *x, struct take *take);
/* Of one that is in the line: it ends when nothing is left to take. */
void take_end_with_pass(struct take *take);
/* It was patient: from now on it is answered as if it had never waited. */
void take_wait_no_more(struct request_context *x, struct take *take);
/* What a home says of a job that it has leased. The texts are those of the answer. */
struct job_leased {
	struct span id, lock, payload;
	unsigned attempt;
	int64_t due_ms; /* by the clock of the home */
};
bool job_read(struct span *text, struct job_leased *ret_job); /* *text: what is behind it */
/* A home has said which jobs have failed for good: the log and the figures are told. ids: the words of its answer. */
void jobs_note_failed(struct request_context *x, struct span queue, struct span ids);

extern const char job_is_adopted_text[]; /* ERR UNAVAILABLE: why it cannot be said whether the session has it */

/* How much validity a client may be told. */
int64_t job_valid_us(const struct job *job, struct instant now);

#endif
