/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client speaks lines, believes what redlock-protocol(7) lets it believe and no longer, and does the jobs of the plan. It can be stopped, and die. Its belief
 * in a hold lasts until (its BOOTTIME before it sent its last LOCK, EXTEND or CHECK) + the valid_ms of the reply. Pushes only shorten that, and so do an EXTEND
 * with a shorter ttl when it is sent, UNLOCK, closing and dying. A connection that breaks by itself does not.
 */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "daemon/core/event/event.h"
#include "tests/sim/client/permitter.h"
#include "tests/sim/client/repeater.h"
#include "tests/sim/client/worker.h"
#include "tests/sim/plan/plan.h"
#include "tests/sim/world/conn.h"
#include "tests/sim/world/host.h"

enum ask {
	ASK_LOCK,
	ASK_UNLOCK,
	ASK_CHECK,
	ASK_EXTEND,
	ASK_CANCEL,
	ASK_HELLO,
	ASK_RESUME,
	ASK_QUIT,
	ASK_OTHER,
	ASK_STORM,
	ASK_LIST,
	ASK_READ,
	ASK_NEST,
	ASK_RATE,
	ASK_CHORE,
	ASK_BREAK,
	ASK_KILL,
	ASK_PERMIT,
	ASK_REPEAT,
	ASK_WATCH, /* and what undoes it */
	ASK_COMPLETE,
	ASK_RECENT,
};

/* ASK_READ: a request about one of the names r0 … */
enum reader_ask { READ_OTHER, READ_SHARED, READ_ALONE, READ_UNLOCK, READ_ALL, READ_ANY };
#define READ_MOST  4 /* how often a client holds one of them, more or less */

/* One request, seen from both ends. */
struct request_sim {
	TAILQ_ENTRY(request_sim) in_world;
	TAILQ_ENTRY(request_sim) at_daemon; /* in one of the lists sent, queued, running of its conn */
	TAILQ_ENTRY(request_sim) at_client; /* in the list open of its conn */
	TAILQ_ENTRY(request_sim) in_syncs;
	TAILQ_ENTRY(request_sim) in_waiters;   /* LOCKs that the daemon has begun, in order */
	enum ask ask;
	struct conn *conn;
	struct task *task; /* the task that asks; NULL: none */
	unsigned number;   /* tag: t<number> */
	char asked[48];    /* how its line begins, behind the tag */
	bool tagged, ours; /* ours: the task waits for this reply */
	int64_t name, owner, wait_ms, keep_ms, priority;
	int64_t ttl_ms; /* LOCK without ttl=: once it has begun, the lease of its daemon; 0: not known */
	bool sync;
	bool locks, extends;        /* a LOCK, an EXTEND of any name */
	bool beside;                /* ASK_NEST: for a name beside the one that is waited for; it does not wait */
	bool renews, once;          /* LOCK without renew=no; with it */
	int64_t delay_us;           /* ASK_READ, a LOCK: its lock-delay */
	int64_t relied_at_least;    /* ASK_READ, an UNLOCK: in true time, until when its client believed as it was sent */
	bool misowned;              /* ASK_PERMIT: about the permit of this fence in the name of an owner that has not got it */
	bool refused;               /* whatever the state of the world, the answer is ERR ARG */
	bool begins;                /* … the daemon's lines before its OK say that the session held no such name */
	int64_t beat_us;            /* HELLO: heartbeat=; 0: none */
	bool grace;                 /* HELLO: with grace= */
	int64_t listed, list_limit; /* LIST: the last name or session that came; how many rows it wants */
	int64_t cost;               /* ASK_RATE */
	int64_t round;              /* ASK_REPEAT: the number of what it asks, perhaps again */
	enum chore_ask chore;       /* ASK_CHORE; its name is the number of the chore, or, of JOBS, of the first that the queue may have */
	unsigned char chores[CHORES_MAX / 8]; /* JOBS: bits: those in rows */
	bool was_dead;              /* REVIVE: it had failed for good when the daemon began with it */
	enum reader_ask reads;      /* ASK_READ; its name is that of name r0 … */
	unsigned group, told, rows; /* READ_ALL, READ_ANY: bits of the names; those in rows of the daemon; those in rows that the client has read */
	char row[READ_NAMES][160];  /* the latter */
	bool of_job;                /* ASK_REPEAT: it is about jobs, see `chore` */
	const char *prefix;         /* COMPLETE, RECENT: what names must start with */
	bool full;                  /* … all of them are asked for */
	unsigned granted;           /* … bits of the names k0 … that must be told; `told` has those in rows */
	int64_t last;               /* RECENT: which of them must come first; -1: it is not known */
	char at_name[16];           /* COMPLETE: the name of the row before */
	bool of_sessions;           /* LIST sessions */
	bool wrong;                 /* RESUME: with a wrong secret */
	char secret[SECRET_TEXT];   /* RESUME: the secret of the session */
	int64_t fence;              /* UNLOCK: fence=; 0: none */
	int64_t sent_at;            /* true time */
	struct instant anchor;      /* the client's BOOTTIME when it was sent */
	/* at the daemon */
	bool running;
	int64_t begun_at; /* true time when the daemon began it */
	uint64_t begun_step;
	int64_t line_since;         /* ASK_READ: since when somebody waits for that name at its daemon without a gap */
	int64_t due_at;  /* true time by which it must be answered; INT64_MAX: no bound */
	int64_t busy_us; /* so much later if rounds wait for busy stores */
	bool ended;      /* UNLOCK sync=yes: the hold already ended when the stores were asked */
	bool late;       /* UNLOCK sync=yes: the reply comes when the stores have carried it out, perhaps after another grant */
};

/* One grant, as the client and the checker see it. */
struct hold {
	TAILQ_ENTRY(hold) in_world;
	struct sim_client *client;
	struct conn *conn;
	int64_t name, owner, fence;
	int64_t count;      /* as last answered; 0: the hold is over */
	unsigned unlocking; /* UNLOCKs that are not answered yet */
	bool lost;
	bool acting;                /* a task uses the resource with it */
	unsigned uses;              /* tasks and accesses that refer to it */
	struct instant deadline;    /* end of the belief, by the client's clock; PAST: no belief */
	int64_t until;              /* end of the belief in true time */
	int64_t promised;           /* true time until which no other grant may return (S13) */
};
TAILQ_HEAD(holds, hold);

enum task_state { TASK_IDLE, TASK_ASKING, TASK_HOLDING, TASK_ENDING, TASK_DONE };

/* A job of the plan that is being done. */
struct task {
	struct timer timer;
	struct job job;
	unsigned index;
	enum task_state state;
	struct sim_client *client;
	struct request_sim *lock; /* ASKING */
	struct hold *hold;
	int64_t tick, ticks; /* HOLDING: steps done, steps in all */
	int64_t mine;        /* how often it has locked the name */
};

/* A client that locks several of the names n0 …, one after the other. */
struct nest {
	struct timer timer;
	struct stream stream;
	struct conn *conn;  /* over which it asks */
	int64_t order[NEST_NAMES], want, have; /* it wants the first `want` of them, and has the first `have` */
	bool asks;          /* its LOCK is not answered */
	int64_t beside;     /* one more than the number of a name that it also has, and that is none of these; 0: none */
	bool asks_beside;   /* its request for that is not answered */
	/* check/nests.c */
	bool stuck;         /* in the last look … */
	int64_t stuck_at;   /* … and true time of the last one in which it was */
};

/* What a client believes of one of the names r0 … */
struct reading {
	bool shared;
	int64_t count, fence;    /* as last answered, less what it has released since */
	struct instant deadline; /* by the client's clock; PAST: no belief */
	int64_t until;           /* in true time */
	struct instant most;     /* with renew=no: by the client's clock, its own end as far as it has asked; NEVER: that is not known, or it is renewed */
	int64_t delay_us;        /* the lock-delay that it asked for; 0: that is not known */
};

enum client_state { CLIENT_RUNNING, CLIENT_STALLED, CLIENT_DEAD, CLIENT_GONE };

struct sim_client {
	struct world *world;
	unsigned index;
	struct sim_daemon *daemon;
	bool remote; /* it runs on a host of its own */
	bool is_unix;
	struct host own;
	struct stream stream, side, reads, read_terms, read_fields, read_stays, read_silences, breaks;
	bool read_priorities; /* LOCKs of the names r0 … have priorities in this world */
	struct timer reader_timer;
	struct reading reading[READ_NAMES];
	struct nest nest;
	struct stream rates, rate_waits;
	struct timer rate_timer;
	struct permitting permits;
	struct work work;
	struct repeating repeats;
	enum client_state state;
	int64_t thaw_at;
	struct timer timer, thaw, side_timer; /* timer: connects again, sends heartbeats */
	struct conn *conn;                    /* NULL: none */
	struct packets inbox;                 /* while stalled */
	unsigned requests;
	bool graced;              /* it asks for grace, and resumes its session */
	int64_t session;          /* the session that it may resume */
	char secret[SECRET_TEXT]; /* "": none */
};

void client_init(struct sim_client *c, struct world *w, unsigned index);
void client_release(struct sim_client *c);
struct instant client_boot(const struct sim_client *c);
void client_fired(struct sim_client *c);
bool client_host_is_halted(const struct sim_client *c); /* all processes of its host stand still */
void client_stall(struct sim_client *c, int64_t for_us);
void client_thaw(struct sim_client *c);
void client_die(struct sim_client *c, int64_t for_us);
/* The client closes its connection, or its sending side. */
void client_leave(struct sim_client *c, enum leave how);
void client_quit(struct sim_client *c);
void client_retire(struct sim_client *c, bool quit); /* for good */
void client_on_packet(struct packet *p);
/* The client has noticed that its connection is gone. */
void client_lost_conn(struct sim_client *c);

/* side_requests.c: what clients ask beside their jobs, in some worlds. */
void side_requests_begin(struct sim_client *c);
void side_requests_fired(struct sim_client *c);

/* reader.c: readers and writers, in some worlds. */
void reader_begin(struct sim_client *c);
void reader_fired(struct sim_client *c);
int64_t reader_name(struct span line); /* the number of its name=; -1: no such name */
void reader_heard(struct sim_client *c, const struct request_sim *q, struct span line, bool ok);
void reader_pushed(struct sim_client *c, struct span line);
void reader_disclaim_all(struct sim_client *c);

/* nester.c: clients that hold some names and wait for more, in some worlds. */
void nester_begin(struct sim_client *c);
void nester_fired(struct sim_client *c);
int64_t nest_limit(const struct world *w, int64_t name); /* how many permits the semaphore has; 0: the name is one of a lock */
int64_t nest_name(struct span line); /* the number of its name=; -1: no such name */
void nester_heard(struct sim_client *c, const struct request_sim *q, bool ok);
unsigned reader_asks(const struct sim_client *c, int64_t name, enum reader_ask what); /* how many such requests are not answered */
struct request_sim *reader_say(struct sim_client *c, int64_t name, enum reader_ask what, const char *verb, const char *fields);
void reader_believe(struct sim_client *c, const struct request_sim *q, int64_t name, struct span line);
/* gatherer.c: LOCKALL and LOCKANY of these names, in some worlds. */
void gatherer_ask(struct sim_client *c);
void gatherer_row(struct request_sim *q, struct span line);
void gatherer_heard(struct sim_client *c, const struct request_sim *q, struct span line);

/* rater.c: rate limits, in some worlds. */
struct rate_terms {
	int64_t limit, per_ms;
};
struct rate_terms rate_terms(const struct plan *p, int64_t name); /* of the name m0 … */
int64_t rate_name(struct span name); /* its number; -1: another name */
void rater_begin(struct sim_client *c);
void rater_fired(struct sim_client *c);
/* repeater.c, repeat_answer.c: requests that are repeated because their answers are lost, in some worlds. */
void repeater_begin(struct sim_client *c);
void repeater_fired(struct sim_client *c);
void repeater_disclaim(struct sim_client *c);
void repeater_heard(struct sim_client *c, const struct request_sim *q, struct span line, bool ok);
void repeater_row(struct sim_client *c, const struct request_sim *q, struct span line);
void repeater_resumes(struct sim_client *c);  /* RESUME is sent; rows of one before it, whose connection was cut, do not count */
void repeater_resumed(struct sim_client *c); /* all rows are read */
void repeater_pushed(struct sim_client *c, struct span line);
int64_t repeat_name(struct span line); /* the number of its name=; -1: no such name */
/* repeat_jobs.c */
struct repeat_ask *repeat_new(struct sim_client *c, enum repeat what, unsigned owner, unsigned group); /* of repeater.c */
void repeat_ask_job(struct sim_client *c);
void repeat_job_bound(const struct repeat_ask *a, struct request_sim *q);
void repeat_job_row(struct sim_client *c, const struct request_sim *q, struct span line);
void repeat_job_pushed(struct sim_client *c, struct span line);
void repeat_job_answered(struct sim_client *c, const struct request_sim *q, struct span line, bool ok);
void repeat_hold_ends(struct repeat_hold *h);
void repeat_permit_ends(struct repeat_permit *p);

/* roll.c: LIST sessions, in some worlds. */
void roll_begin(struct sim_client *c);
void roll_fired(struct sim_client *c);
void roll_ask(struct sim_client *c);
void list_heard(struct request_sim *q, struct span line, bool row); /* any LIST, at the daemon: a row, or the reply */

/* breaker.c: BREAK, KILL and WATCH, in some worlds. */
void breaker_begin(struct sim_client *c);
void breaker_fired(struct sim_client *c);

/* namer.c: COMPLETE and RECENT, in some worlds. */
void namer_begin(struct sim_client *c);
void namer_fired(struct sim_client *c);

/* request.c: the requests of jobs. */
struct request_sim *client_ask(struct sim_client *c, enum ask ask, struct task *t, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void client_lock(struct task *t, int64_t wait_ms);
void client_check(struct task *t);
int64_t job_ttl_ms(const struct task *t); /* of the job, or that of the plan */
void client_extend(struct task *t);
void client_unlock(struct task *t, enum ending how);
/* reply.c: a line from the daemon. */
void client_hear(struct sim_client *c, struct conn *conn, char *line);

/* resume.c: how clients return to their sessions. */
void resume_greet(struct sim_client *c);
void resume_hello_heard(struct sim_client *c, const struct request_sim *q, struct span line);
/* A LOCK is granted. When it was asked behind a RESUME whose rows have not arrived, its count includes what the session held before. */
void resume_lock_heard(const struct request_sim *q, int64_t fence, int64_t count);
/* The client holds what it did not know of: it releases that. */
void resume_turn_heard(const struct request_sim *q, int64_t fence);
void resume_row_heard(struct sim_client *c, const struct request_sim *q, struct span line);
void resume_heard(struct sim_client *c, const struct request_sim *q, bool ok);

/* hold.c: what a client believes. */
struct hold *hold_find(struct conn *conn, int64_t name, int64_t owner);
struct hold *hold_granted(struct request_sim *q, int64_t fence, int64_t count, int64_t valid_ms);
void hold_believe(struct hold *h, const struct request_sim *q, int64_t valid_ms);
void hold_shorten(struct hold *h, struct instant deadline);
/*
 * How long a lease may be relied on since this EXTEND was sent: with a shorter ttl it may end that early, whether a reply comes or not. See
 * redlock-protocol(7).
 */
struct instant extend_end(const struct request_sim *q);
void hold_disclaim(struct hold *h);                               /* the client stops believing, and nothing is promised to it any more */
void hold_give_up(struct hold *h);                                /* the same for good: no reply on its way revives the belief */
void hold_released(struct world *w, int64_t name, int64_t fence); /* its UNLOCK is OK: nothing is promised any more of a hold that its client took for lost */
void client_disclaim_all(struct sim_client *c);                   /* all holds of the client */
void conn_disclaim_all(struct conn *conn);
/* The client ends its session itself and will not resume it: this includes holds from before a RESUME that is not answered yet. */
void session_disclaim_all(struct sim_client *c);
bool hold_is_believed(const struct hold *h); /* by the client's own clock */
bool hold_is_acted_with(const struct hold *h); /* by any of the client's holds of that grant: an owner does one thing at a time */

/* task.c: how a client does its jobs. */
void task_fired(struct task *t);
void task_answered(struct task *t, const struct request_sim *q, struct hold *h); /* its LOCK is answered; h NULL: refused */
void task_checked(struct task *t, const struct request_sim *q, bool held);
void task_over(struct task *t);
void task_end(struct task *t, enum ending how);
struct task *task_add(struct world *w, const struct job *job);

#endif
