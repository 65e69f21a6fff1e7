/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client: it speaks lines, believes what redlock-protocol(7) lets it believe and no longer, and does the jobs of the plan. It can be stopped and die.
 * Its belief in a hold lasts until (its BOOTTIME before it sent its last LOCK, EXTEND or CHECK) + the valid_ms of the answer; pushes only shorten that;
 * sending an EXTEND with a shorter ttl does too; so do UNLOCK, closing, dying. The loss of a connection that it did not end itself does not.
 */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "daemon/core/event.h"
#include "tests/sim/world/conn.h"
#include "tests/sim/world/host.h"
#include "tests/sim/plan/plan.h"

enum ask { ASK_LOCK, ASK_UNLOCK, ASK_CHECK, ASK_EXTEND, ASK_CANCEL, ASK_HELLO, ASK_RESUME, ASK_QUIT, ASK_OTHER, ASK_STORM, ASK_LIST };

/* One request, seen from both ends. */
struct request_sim {
	TAILQ_ENTRY(request_sim) in_world;
	TAILQ_ENTRY(request_sim) at_daemon; /* sent, queued or running of its conn */
	TAILQ_ENTRY(request_sim) at_client; /* open of its conn */
	TAILQ_ENTRY(request_sim) in_syncs;
	TAILQ_ENTRY(request_sim) in_line;   /* LOCKs that run at the daemon, in order */
	enum ask ask;
	struct conn *conn;
	struct run *run;   /* whose; NULL */
	unsigned number;   /* tag: t<number> */
	bool tagged, ours; /* ours: run->… waits for this one */
	int64_t name, owner, wait_ms, keep_ms, ttl_ms;
	bool sync;
	bool locks;               /* LOCK */
	bool renews, once;        /* LOCK without renew=no; with it */
	int64_t beat_us;          /* HELLO heartbeat=; 0: none */
	bool grace;               /* HELLO grace= */
	int64_t listed, list_limit; /* LIST in a storm: the last name that was told; how many rows it wants */
	bool wrong;               /* RESUME with a secret that is not that of the session */
	char secret[SECRET_TEXT]; /* RESUME: that of the session */
	int64_t fence;         /* UNLOCK fence=; 0: none */
	int64_t sent_at;       /* true time */
	struct instant anchor; /* the client's BOOTTIME before it was sent */
	/* at the daemon */
	bool running;
	int64_t begun_at; /* true time when it was begun */
	uint64_t begun_step;
	int64_t due_at; /* true time by which it must be answered; INT64_MAX */
	int64_t busy_us; /* so much later where rounds are held back for stores that are busy */
	bool ended;     /* UNLOCK sync=yes: the account was closed when it began */
	bool late;      /* UNLOCK sync=yes: answered when the stores have carried it out, and the name may be another's by then */
};

/* One grant, as the client and the checker see it. */
struct hold {
	TAILQ_ENTRY(hold) in_world;
	struct sim_client *client;
	struct conn *conn;
	int64_t name, owner, fence;
	int64_t count;      /* as answered last; 0: over */
	unsigned unlocking; /* UNLOCKs sent and not answered */
	bool lost;
	bool acting;             /* a job visits the resource with it */
	unsigned uses;           /* jobs and visits that look at it */
	struct instant deadline; /* of belief, on the client's clock; PAST: none */
	unsigned shorter_asked;  /* requests up to this one, by their numbers, are believed … */
	struct instant shorter_end; /* … no longer than that: an EXTEND has asked for no more */
	int64_t until;           /* the same in true time */
	int64_t promised;        /* true time until which no conflicting grant may return (S13) */
};
TAILQ_HEAD(holds, hold);

enum run_state { RUN_IDLE, RUN_ASKING, RUN_HOLDING, RUN_ENDING, RUN_DONE };

/* A job being done. */
struct run {
	struct timer timer;
	struct job job;
	unsigned index;
	enum run_state state;
	struct sim_client *client;
	struct request_sim *lock; /* ASKING */
	struct hold *hold;
	int64_t tick, ticks; /* HOLDING: of its steps */
	int64_t mine;        /* how often it has locked it */
};

enum client_state { CLIENT_RUNNING, CLIENT_STALLED, CLIENT_DEAD, CLIENT_GONE };

struct sim_client {
	struct world *world;
	unsigned index;
	struct sim_daemon *daemon;
	bool remote; /* on a host of its own */
	bool is_unix;
	struct host own;
	struct stream stream, chat;
	enum client_state state;
	int64_t thaw_at;
	struct timer timer, thaw, chat_timer; /* timer: reconnects, beats */
	struct conn *conn;        /* NULL: none */
	struct packets inbox;     /* while stalled */
	unsigned requests;
	bool graced;              /* it asks for grace, and comes back to its session */
	int64_t session;          /* that it may resume */
	char secret[SECRET_TEXT]; /* "": none */
};

void client_init(struct sim_client *c, struct world *w, unsigned index);
void client_release(struct sim_client *c);
struct instant client_boot(const struct sim_client *c);
void client_fired(struct sim_client *c);
void client_stall(struct sim_client *c, int64_t for_us);
void client_thaw(struct sim_client *c);
void client_die(struct sim_client *c, int64_t for_us);
/* It ends its connection in order. */
void client_leave(struct sim_client *c, enum leave how);
void client_quit(struct sim_client *c);
void client_retire(struct sim_client *c, bool quit); /* for good */
void client_on_packet(struct packet *p);
/* The client has found out that its connection is no more. */
void client_lost_conn(struct sim_client *c);

/* chatter.c: what they say beside their work, in some worlds. */
void chat_begin(struct sim_client *c);
void chat_fired(struct sim_client *c);

/* request.c: what clients send. */
struct request_sim *client_ask(struct sim_client *c, enum ask ask, struct run *r, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void client_lock(struct run *r, int64_t wait_ms);
void client_check(struct run *r);
void client_extend(struct run *r);
void client_unlock(struct run *r, enum ending how);
/* reply.c: one line of the daemon's. */
void client_hear(struct sim_client *c, struct conn *conn, char *line);

/* resume.c: the client's side */
void resume_greet(struct sim_client *c);
void resume_hello_heard(struct sim_client *c, const struct request_sim *q, struct span line);
/* A LOCK is granted. Where it was asked behind a RESUME whose rows are not here yet, it counts on top of what the session had before. */
void resume_lock_heard(const struct request_sim *q, int64_t fence, int64_t count);
/* It has what it did not know of: it gives it back. */
void resume_turn_heard(const struct request_sim *q, int64_t fence);
void resume_row_heard(struct sim_client *c, const struct request_sim *q, struct span line);
void resume_heard(struct sim_client *c, const struct request_sim *q, bool ok);

/* hold.c */
struct hold *hold_find(struct conn *conn, int64_t name, int64_t owner);
struct hold *hold_granted(struct request_sim *q, int64_t fence, int64_t count, int64_t valid_ms);
void hold_believe(struct hold *h, const struct request_sim *q, int64_t valid_ms);
void hold_shorten(struct hold *h, struct instant deadline);
/* Asked for as long as it believes, or longer: an answer that is under way may speak of a lease that was longer still, and is believed no more than that. */
void hold_outdate(struct hold *h, const struct request_sim *q, struct instant end);
void hold_disclaim(struct hold *h);             /* gives it up: believes no more, and nothing is promised any more */
void hold_give_up(struct hold *h);              /* the same for good: no answer that is under way revives it */
void hold_released(struct world *w, int64_t name, int64_t fence); /* its UNLOCK is OK: what its client held for lost is promised no more */
void client_disclaim_all(struct sim_client *c); /* every hold that it has */
void conn_disclaim_all(struct conn *conn);
/* It ends its session by its own will, and does not come back to it: also to what it had before a RESUME that is not answered yet. */
void session_disclaim_all(struct sim_client *c);
bool hold_is_believed(const struct hold *h); /* by the client's own clock */
bool hold_is_acted_with(const struct hold *h); /* with that grant, in whichever way its owner knows of it: an owner does one thing at a time */

/* job.c */
void run_fired(struct run *r);
void run_answered(struct run *r, const struct request_sim *q, struct hold *h); /* its LOCK; NULL: refused */
void run_checked(struct run *r, const struct request_sim *q, bool held);
void run_over(struct run *r);
void run_end(struct run *r, enum ending how);
struct run *run_add(struct world *w, const struct job *job);

#endif
