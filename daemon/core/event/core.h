/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration, the time of the event, timers, and the effects of the step; alarms, each with its timer. */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include "daemon/base/heap.h"
#include "daemon/base/map.h"
#include "daemon/base/pool.h"
#include "daemon/base/rng.h"
#include "daemon/core/event/event.h"
#include "daemon/core/event/metric.h"

struct alarms;

/*
 * What all parts of the service share: the configuration, the time of the present event, randomness, timers, the effects of the present step, the figures. It
 * gives access to no clock and no I/O.
 */

struct rules;
struct sampler;
struct user_names;

/* What happens to RATE while the home of its limit is lost: it is refused; admitted without being counted; or counted at the next store, from zero. */
enum home_lost { LOST_CLOSED, LOST_OPEN, LOST_NEXT };

/* For a daemon whose store no other daemon shares: its locks exclude nobody on another host. */
#define THIS_HOST_ONLY "this host only: daemons of other hosts grant the same locks"

/* What STATS reports about the daemon around the service: `report` passes the samples of one OUTER figure of metric.def. It must change nothing. */
struct outer {
	void *context;
	void (*report)(void *context, enum metric which, const struct sampler *to);
};

struct core_conf {
	unsigned nodes;               /* 1 .. NODES_MAX */
	const char *label[NODES_MAX]; /* of each node, for people */
	const char *home[NODES_MAX];  /* the name by which all daemons call each node: see home.h. NULL: its label */
	const char *store;            /* "memory", "redis" */
	bool foreign;                 /* clients that poll use the same names: hand-overs leave them a chance to get the name */
	bool shared;                  /* other daemons, and other programs, may write keys to the stores */
	const char *set;              /* name of the node set: enters the configuration hash */
	uint64_t generation;
	const char *host;             /* announced in values */
	uint64_t seed[2];
	unsigned listed;              /* a LIST of more entries is answered in slices, see lists.c; 0: the default */
	unsigned work;                /* most pieces of work of each kind in a step: see core_portion(); 0: the default */
	/* A step serves all lines that were read ahead. The simulator counts a line as served once the line before it is answered. */
	bool serves_all;
	bool asks_daemons;            /* asks other daemons who holds a name, and answers their questions: see remote_holders.h */
	bool trust_first_start;       /* see membership.h */
	bool log_moves;               /* log each change of state of a name, at level debug */
	int64_t timeout_us;           /* of one command on one node */
	unsigned window;              /* most calls without an answer per node, see admission.h; 0: the default */
	int64_t soon_us;              /* how long to wait for a session that is closing, or a store that is about to join; 0: timeout_us */
	enum home_lost home_lost;
	bool audit;                   /* emit EFFECT_AUDIT */
	bool users;                   /* some users can authenticate with AUTH */
	const struct user_names *user_names; /* the users: see client.h; NULL: none */
	const struct rules *rules;    /* see client.h; NULL: none */
	const char *name_groups;      /* in the format of name_groups_new(); NULL: none */
	const struct outer *outer;    /* NULL: those figures are left out */
	int64_t alarm_held_us, alarm_waited_us; /* 0: no such alarm */
	uint64_t alarm_failures;      /* per cent of the last minute's LOCKs; 0: no alarm */
	int64_t slow_wait_us, slow_hold_us, slow_store_us; /* see send.h; 0: not logged */
	int64_t lease_us, min_lease_us, max_lease_us, max_delay_us, max_keep_us;
	int64_t max_grace_us;         /* the longest grace a session may ask for; 0 refuses it */
	bool rebooted;                /* every lease that a store, blank at the start, may have forgotten was granted before this boot */
	int64_t own_uid;              /* of the daemon: neither it nor root is bound by the limits of one peer. 0: root alone is exempt */
	int64_t jobs_keep_us;         /* how long a job that has failed for good is kept */
	int64_t past_lease_us;        /* longest lease that a store may have forgotten, even if max_lease is shorter now */
	int64_t skew_us;              /* how far ahead of a store's clock a join lifts its fence: SKEW_US of members.h */
	int64_t clock_tol_us;         /* how far a store's clock may be off the median of the others; 0: not checked */
	struct {
		uint64_t locks, waiting; /* per session */
		uint64_t jobs;           /* per queue */
		uint64_t renewals;       /* a second, of leases below 10 s: see send.h; 0: no bound */
		uint64_t stored;         /* bytes of jobs and rate limits at a store: see rate.h */
		uint64_t attempts;       /* after this many failed attempts a job is not due any more */
		uint64_t detached;       /* detached sessions; 0: no bound */
		uint64_t name, mistakes, line;
		uint64_t output; /* unsent bytes per session; the rows of one answer fill at most a quarter of it; 0: no bound */
	} limits;
};

enum timer_kind {
	TIMER_CONTENDER,
	TIMER_LEASE,
	TIMER_CLAIM,
	TIMER_ROUND,
	TIMER_RELEASE,
	TIMER_MEMBER,
	TIMER_ADMISSION,
	TIMER_BACK,
	TIMER_SESSION,
	TIMER_GRACE,
	TIMER_HANDED,
	TIMER_LISTS,
	TIMER_WAITS,
	TIMER_HOME,
	TIMER_LAPSE,
	TIMER_HISTORY,
	TIMER_AGAIN,
	TIMER_ASK_DAEMON,
	TIMER_AUTH,
	TIMER_PERMIT,
	TIMER_JOB,
	TIMER_QUEUE,
	TIMER_TAKE,
	TIMER_ORDER,
	TIMER_RATE_LINE,
	TIMER_RATE_TURN,
	TIMER_DRAIN,
	TIMER_ALARM,
	TIMER_FAILURES,
};

/* Log lines that come once per session or per lock: each kind has its own limit. */
enum burst_kind { BURST_LOST, BURST_HANGUP, BURST_REASSERTED, BURST_ALARM, BURST_SLOW, BURST_AUTH, BURST_JOB, BURST_N };

#define DAEMON_ID_MAX 64 /* bytes of the id of a daemon, including a NUL */

struct core {
	struct core_conf conf;
	struct instant now;
	struct instant asked_at; /* when the request that is being served came: now, or before a restart */
	int64_t wall_us;
	struct rng rng;
	struct heap timers;
	struct effects *out; /* only while a step runs */
	bool late;           /* some due timers wait for the next steps, or did in the last step: see service.c; or votes fell: see hold.c */
	bool journal_off;    /* EFFECT_JOURNAL cannot be carried out */
	struct metrics metrics;
	struct name_groups *name_groups; /* NULL: none */
	enum verb serving;   /* the request that is being served, for the figures */
	enum verb answers;   /* the kind of request that the next answer is to: see core_answers */
	struct alarms *alarms; /* NULL: no alarm is configured */
	struct burst {
		struct instant until; /* end of the present second */
		unsigned logged, left_out;
	} burst[BURST_N];
	char daemon_id[DAEMON_ID_MAX]; /* "<16 hex>.<host>": random at the first start, later read from the journal; contains no ':' */
	uint64_t run;        /* how many runs with this id came before, as the journal says */
	/* The same id and ':', right-aligned in these bytes: values begin with it, see value.h. */
	char value_head[DAEMON_ID_MAX];
	uint8_t value_head_n;
};

/* Copies the values that may change at run time. */
void core_conf_take_live(struct core_conf *to, const struct core_conf *from);
/* Whether the settings of the alarms or of the slow log differ. */
bool core_conf_alarms_differ(const struct core_conf *a, const struct core_conf *b);

/* The name of the store in the configuration. */
static inline const char *core_calls(const struct core *c, unsigned node)
{
	return c->conf.home[node] ? c->conf.home[node] : c->conf.label[node];
}

void core_init(struct core *c, const struct core_conf *conf);
/* Takes the id of the previous run, of 1 to DAEMON_ID_MAX - 1 bytes. Must precede the first value that this daemon makes. */
void core_go_on_as(struct core *c, struct span daemon_id);
void core_release(struct core *c);
/* Takes the groups of names of the present configuration. */
void core_group_names(struct core *c);
/* Effect: one log line. A value that may contain blanks must go through core_quoted. */
void core_log(struct core *c, enum log_level level, const char *event, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Whether one more line of this kind may be logged now: at most 20 a second. A later line says how many were left out. */
bool core_may_log(struct core *c, enum burst_kind kind);
/* The value quoted for a log line, in memory of the effects. */
const char *core_quoted(struct core *c, struct span value);
/* Effect: a call. The caller fills it in before any other effect; its spans must stay valid until the effects are carried out. */
static inline struct call *core_call(struct core *c)
{
	metric_add(&c->metrics, METRIC_CALLS, 1);
	return &effects_add(c->out, EFFECT_CALL)->call;
}

/* A request for the name was answered with this result, after this time. */
static inline void core_name_waited(struct core *c, struct span name, enum result result, int64_t us)
{
	if (__builtin_expect(c->name_groups != NULL, false))
		name_groups_waited(c->name_groups, name, result, us);
}

/* A hold of the name has ended, after this time. */
static inline void core_name_held(struct core *c, struct span name, int64_t us)
{
	if (__builtin_expect(c->name_groups != NULL, false))
		name_groups_held(c->name_groups, name, us);
}

static inline void core_name_lost(struct core *c, struct span name)
{
	if (c->name_groups)
		name_groups_lost(c->name_groups, name);
}

/*
 * The next answer is not to the line that is being served, but to an earlier request of this kind. When the session sends that answer, it counts it for this
 * kind. The answer after it is to the line again.
 */
static inline void core_answers(struct core *c, enum verb verb)
{
	c->answers = verb;
}

/* Copies `from` to `to`, cut to `size` bytes with the NUL that ends it. The two may overlap. */
void core_keep(char *to, size_t size, struct span from);

/* How many items of a kind that clients can make numerous one step serves; the rest follow in the next steps. The simulator uses smaller portions. */
static inline unsigned core_portion(const struct core *c, unsigned most)
{
	return c->conf.work ? c->conf.work : most;
}

static inline int64_t core_soon_us(const struct core *c)
{
	return c->conf.soon_us ? c->conf.soon_us : c->conf.timeout_us;
}

/*
 * Alarms: one for each hold, and one for each waiting request, as long as the configuration asks for that kind. Each has its own timer, so nobody walks
 * through all locks. Without a configured alarm there is nothing here, and a lock costs nothing. alarm.c reports the alarms that are due.
 */

enum alarm_kind { ALARM_HELD, ALARM_WAITED };

/* What it is about. Its address is the key. */
enum alarm_of {
	ALARM_OF_CLAIM,  /* struct claim, of a client */
	ALARM_OF_PERMIT, /* struct permit */
	ALARM_OF_GROUP,  /* struct session, the agent of a group that waits: a group waits for one name after the other, and is reported once */
};

struct alarm {
	struct map_node node;
	struct timer timer; /* set until it is reported */
	const void *about;
	enum alarm_of of;
	enum alarm_kind kind;
	bool reported;
};

#define ALARM_SECONDS 60 /* the period over which failed LOCKs are counted */

struct alarms {
	struct map map;
	struct pool pool;
	/* METRIC_FAILURES, and the number of answered LOCKs, at the end of each of the last seconds. */
	struct {
		struct timer timer; /* each second, if alarm.failures is set */
		int64_t failed[ALARM_SECONDS], answered[ALARM_SECONDS];
		unsigned next;      /* the oldest */
		bool reported;      /* the share is above the bound, and was reported */
	} failures;
};

/* Makes core.alarms if the configuration asks for any, and frees it if not. */
void alarms_configure(struct core *c);
void alarms_free(struct core *c);

/* It holds, or waits, since this moment. Replaces an alarm of the other kind. An alarm that was reported is not reported again. */
void alarms_set(struct core *c, enum alarm_of of, const void *about, enum alarm_kind kind, struct instant since);
/* The hold or the request is gone. */
void alarms_drop(struct core *c, const void *about);
/* After how long the alarm is reported; 0: never. */
int64_t alarms_after_us(const struct core *c, enum alarm_kind kind);
bool alarms_reported(const struct core *c, const void *about, enum alarm_kind kind);

static inline void alarms_forget(struct core *c, const void *about)
{
	if (c->alarms)
		alarms_drop(c, about);
}

#endif
