/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watches a world from outside and says which invariant it broke. It sees true time, every line, every call, every change of a key; it never
 * changes anything. Votes and counts are reckoned a second time here, from what crosses the seam.
 */
#ifndef SIM_CHECKER_H
#define SIM_CHECKER_H

#include "daemon/core/journal.h"
#include "tests/sim/client/client.h"
#include "tests/sim/world/link.h"

enum invariant {
	INVARIANT_NONE,
#define INVARIANT(id, ...) INVARIANT_##id,
#include "tests/sim/check/invariant.def"
#undef INVARIANT
	INVARIANT_N
};

struct invariant_row {
	const char *word;
	enum fault_class class;
	bool checked;
	const char *what;
};
extern const struct invariant_row invariant_table[INVARIANT_N];

struct violation {
	enum invariant what; /* NONE: all is well */
	int64_t at, name;    /* name: -1 if it concerns none */
	char text[400];
};

/* The lease of a name at a daemon, reckoned from its calls and their answers. */
struct lease {
	uint64_t ticket;
	struct instant until[NODES_MAX];
	struct instant fell[NODES_MAX]; /* those that an answer has ended or shortened, as they were before the step that brought it; and that step */
	uint64_t fell_step[NODES_MAX];
	struct instant former; /* the same of the last that was granted, before this one was asked for */
	uint64_t value; /* as a hash */
	int64_t floor; /* the largest token that had been returned when its first command was sent; of an adopted one, that of the run that asked for it */
	bool held;
	struct conn *conn; /* by whom */
	int64_t owner, fence;
	int64_t base[NODES_MAX], reach[NODES_MAX]; /* tokens that a node reserved for it; 0: none */
	bool unseen;                               /* it may have been granted to a session without a connection */
	bool kept;                                 /* an UNLOCK with keep= has left it behind */
	bool adopted;                              /* from a former life: its range is not known, it is handed to nobody */
	int64_t least_us, most_us;                 /* the shortest and the longest that it was asked for so far, or renewed for */
	bool renews, risked;                       /* its holder wants it renewed; RISK was said */
	uint64_t held_step;                        /* since when its holder has it */
	int64_t asked_us, asked_fence;             /* for so long the holder with that token has asked for it last; 0: not known */
	uint64_t asked_step;
	int64_t low_since;                         /* true time since when so little is left of it that a renewal was missed; 0: it is not */
	uint64_t over_step;                        /* the votes that stood were over before an answer in this step brought others: it may be lost all the same */
	int64_t overdue_since;                     /* true time since when its loss should have been told; 0: it should not */
	unsigned grants;                           /* so far: the second is a hand-over */
	struct instant wanted;                     /* another daemon's wish was heard; 0: none */
	uint64_t vain;                             /* the last attempt that led to no grant and left something behind */
	struct instant left[NODES_MAX];            /* where it did, and until when it stands there; PAST: it did not, or was told to give it back */
	uint16_t told;                             /* bits: the nodes that were told to give the present attempt back */
	uint16_t renewing;                         /* bits: nodes with a renewal that is not answered */
	uint16_t renewed;                          /* bits: nodes that were sent one, or the second round: what was sent before vouches no more */
	struct instant round;                      /* a renewal that nodes denied the key in: when it was sent */
	uint16_t denied;                           /* bits: these nodes */
	bool evicted;                              /* too many of them */
};

/* A ticket: that of a daemon, or of a place in line at a node. */
struct turn {
	char text[96];
	size_t n;
	uint64_t step; /* when it was first shown */
	bool spent;    /* a node granted with it */
	uint16_t nodes; /* bits: where it was shown and may stand in line */
	int64_t shown_at[NODES_MAX]; /* true time when last */
	int64_t alone_since; /* nobody waits any more; 0: somebody does */
	int64_t waits_since; /* true time since when somebody waits; 0: nobody does */
};

struct place {
	struct turn turn;
	int64_t asked_ms, until_ms; /* by the node's clock */
};

/* What a node has told a daemon of itself. */
struct acquaintance {
	bool unjoined; /* its marker is another's; it was not probed since */
	bool jumped;   /* its clock jumped ahead; it was not joined anew since */
	bool fell;     /* its fence fell, or it evicted keys; likewise */
	int64_t evicted; /* how many so far */
	unsigned probes; /* under way: what one says while the next is, that one says again */
	char named[96];    /* its run_id and replication id when it was probed last, as they stand in a marker; only the first, if its data is its own */
	int64_t fence, fence_when_asked; /* the largest that it has shown; when it was probed */
	uint64_t known_at; /* the step before the one in which the daemon heard that */
	uint64_t marker; /* under which it was asked last, as a hash */
	bool timed;
	struct instant at; /* its last answer, and the upper bound of (its clock - CLOCK_BOOTTIME) by that */
	int64_t high;
	int64_t ahead_us, halted_us; /* true at that time: how far its clock had been set ahead in all, how long the daemon's host had stood still */
};

/* Such a value at a node that the daemon can tell. */
struct left {
	uint64_t value; /* as a hash; 0: there is none */
	int64_t since;  /* true time since when it was seen */
};

/* The last values that a daemon has released. */
#define DEAD_MAX 256
struct dead_values {
	uint64_t value[DEAD_MAX]; /* as hashes */
	uint64_t life[DEAD_MAX];  /* in which that was */
	unsigned count;
};

struct ticket_book {
	uint8_t *dead; /* by ticket: a release was sent */
	size_t cap;
};

/* Values of one lease: what the lives of its daemon put in each other's place, newest first. */
#define KIN_MAX (JOURNAL_PRIORS + 2)
struct kin {
	uint64_t value[KIN_MAX]; /* as hashes */
	unsigned count;          /* more than KIN_MAX: the oldest is forgotten, by the daemon, too */
};

#define ADOPTIONS_MAX 256
struct adoptions {
	struct adoption {
		uint64_t from, to; /* values, as hashes */
		unsigned daemon;   /* by which */
		uint16_t nodes;    /* bits: where the one took the place of the other */
		bool done;         /* at a quorum */
	} item[ADOPTIONS_MAX];
	unsigned count;
};

struct token_set {
	uint64_t *slot;
	size_t cap, count;
};

struct checker {
	struct violation violation;
	struct lease lease[DAEMONS_MAX][NAMES_MAX];
	struct ticket_book book[DAEMONS_MAX];
	struct acquaintance acquaintance[DAEMONS_MAX][NODES_MAX];
	struct dead_values dead[DAEMONS_MAX];
	struct left left[DAEMONS_MAX][NODES_MAX][NAMES_MAX];
	int64_t told_at[DAEMONS_MAX], left_at[DAEMONS_MAX];    /* true time when that is looked at again */
	int64_t awake_since[DAEMONS_MAX];                      /* true time since when the daemon runs and did not stand still */
	struct requests line[DAEMONS_MAX][NAMES_MAX]; /* LOCKs that run, in the order in which they began */
	struct requests syncs; /* UNLOCKs with sync=yes that began in this step: not known to be carried out yet */
	struct token_set tokens;
	struct adoptions adoptions;
	struct kin kin[DAEMONS_MAX][NAMES_MAX];
	int64_t returned[NAMES_MAX];        /* the largest token that was returned */
	int64_t free_since[NAMES_MAX];      /* true time since when nobody has it; INT64_MAX: somebody has */
	struct {
		int64_t fence, until;
	} delayed[NAMES_MAX];               /* true time until which a hold that ended otherwise than by its holder's will keeps the name refused */
	int64_t excused[NAMES_MAX];         /* true time until which a key that was left behind may stand in the way */
	int64_t long_lived_ms[NODES_MAX][NAMES_MAX]; /* until when the key stands at that node that was there when its clock was set back; 0: none was */
	int64_t due[DAEMONS_MAX];           /* true time of the earliest request that must be answered */
	struct turn turn[DAEMONS_MAX][NAMES_MAX];
	struct place place[NODES_MAX][DAEMONS_MAX][NAMES_MAX];
	int64_t orphans_until[DAEMONS_MAX][NAMES_MAX]; /* true time: sessions without a connection may stand in line */
	uint64_t step;                      /* of any daemon */
	uint64_t takes;                     /* sessions that a connection took, so far */
	bool unlocked[NAMES_MAX];           /* free since an UNLOCK */
	int64_t longest_free, longest_flapping, longest_late, longest_woken; /* how near bounds came */
};

void checker_init(struct world *w);
void checker_release(struct world *w);
void checker_fail(struct world *w, enum invariant what, int64_t name, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* checker.c: what clients believe, what is granted; progress.c: how soon. */
void check_belief(struct world *w, const struct hold *h);
void check_grant(struct world *w, struct sim_daemon *d, struct request_sim *q, int64_t fence);
void check_progress(struct world *w);
/* A turn that came while its session had no connection; a hold that goes on at another connection. */
void check_turn(struct world *w, struct sim_daemon *d, int64_t name, int64_t fence);
void check_resumed(struct conn *c, int64_t name, int64_t owner, int64_t fence);
/* The hold ended without its holder's will, and was in force until then: the lock-delay begins, unless the plan has none. It ended by its will after all. */
void checker_delay(struct world *w, int64_t name, int64_t fence, int64_t from);
/* UNLOCK keep= was answered OK: nobody has it meanwhile. */
void checker_keep(struct world *w, const struct request_sim *q, int64_t fence);
void checker_undelay(struct world *w, int64_t name, int64_t fence);
/* The name may be taken by what nobody holds until then: a key that was left behind. */
void checker_excuse(struct world *w, int64_t name, int64_t until);
/* The clock of that node was set back: what stands there lasts that much longer. */
void checker_sets_back(struct world *w, unsigned node);
/* A key of that name was there before the clock of its node was set back, and nobody renews it: it ends that much later, and is in the way until then. */
bool outlives_its_lease(const struct world *w, int64_t name);

/* ledger.c: the lines of a daemon. */
void ledger_begin(struct request_sim *q);
/* The client has not read its last answers: what it asked next, without a tag, begins when it has. */
bool ledger_awaits(const struct request_sim *q);
void ledger_go_on(struct conn *c); /* it has */
void ledger_syncs(struct world *w, int64_t name); /* those that began are carried out, of this name; -1: of all */
void ledger_line(struct conn *c, struct span line);
void ledger_over(struct conn *c);

/* account.c: what owners have. */
struct account *account_of(const struct request_sim *q); /* of whom the request is about */
/* An OK says that it is held with this token and so often; count < 0: it does not say how often. */
void account_confirmed(const struct request_sim *q, struct account *a, int64_t count, int64_t fence);
bool account_may_have_turn(const struct request_sim *q, const struct account *a);
void account_begin(const struct request_sim *q, struct account *a);
void account_asked(const struct request_sim *q); /* EXTEND: whoever asks from now on is told of no more than that */
void account_not_asked(const struct request_sim *q);
void account_vouched(const struct request_sim *q, const struct account *a, int64_t name, struct span line);
void account_end(struct account *a);
void account_lost(struct conn *c, int64_t name, int64_t fence); /* without its holder's will: what was promised of it was in force */
void account_excuse(struct conn *c, int64_t name);
void account_dropped(struct conn *c, int64_t name, const struct account *a); /* with its connection */

/* due.c: by when requests are answered. */
void due_begin(struct request_sim *q);
void due_stopped(struct sim_daemon *d); /* a daemon that is stopped answers nobody: bounds move */
void due_look(struct sim_daemon *d);

/* resume.c: the books of sessions that outlive their connections. */
/* What the connection before, whose session this one is resuming, had of that name and owner; NULL: it resumes none. */
struct account *resume_account(struct conn *c, int64_t owner, int64_t name);
/* It may be the repetition of what was asked before the RESUME, and so have an old place. */
bool resume_is_behind(const struct request_sim *q);
/* The connection ends. A RESUME that is not answered has taken the session over all the same. */
void resume_unsaid(struct conn *c);
void resume_hello_said(struct request_sim *q, struct span line);
void resume_turn_said(struct request_sim *q, struct account *a, int64_t fence); /* that it has one, for the first time */
void resume_row_said(struct request_sim *q, struct span line);
void resume_said(struct request_sim *q);
void resume_refused(struct request_sim *q, struct span code);

/* orphans.c: requests that a session has left in line. */
void orphans_detached(struct conn *c);
void orphans_move(struct conn *to, const struct conn *from);

/* witness.c: the votes of a daemon. */
void witness_call(struct sim_daemon *d, const struct call *call);
void witness_answer(struct sim_daemon *d, const struct call *call, const struct answer *a, struct instant emitted);
void witness_step(struct sim_daemon *d);
struct instant witness_vote(const struct world *w, const struct call *call, struct instant sent);
bool witness_is_dead(const struct sim_daemon *d, struct span value); /* a value of this life, which has released it */
struct instant witness_deadline(const struct sim_daemon *d, const struct lease *l);
void witness_life(struct sim_daemon *d);
/* Q votes stand and vouch for that long. */
void witness_vouch(struct sim_daemon *d, int64_t name, int64_t valid_ms, enum invariant what);
/* keys.c: the keys of a node. */
void witness_runs(struct server *s, const struct flight *f); /* about to run, and has run */
void witness_ran(struct server *s, const struct flight *f);
void witness_watch(struct server *s);

/* asking.c: what a daemon asks of whom. */
void asking_life(struct sim_daemon *d);
bool asking_knows_all(const struct sim_daemon *d); /* every node has told this life of it who it is */
void asking_call(struct sim_daemon *d, const struct call *call, int64_t name, struct lease *l);
void asking_vote_falls(const struct sim_daemon *d, struct lease *l, unsigned node, struct instant until);
void asking_probe(struct sim_daemon *d, unsigned node);
void asking_answered(struct sim_daemon *d, const struct call *call, const struct answer *a, struct instant emitted);

/* scripts.c: what a command did; before the fence that the server is known by is brought up to date. */
void scripts_ran(struct server *s, const struct flight *f);

/* eviction.c: keys that are gone. */
void eviction_answer(struct sim_daemon *d, struct lease *l, const struct call *call, const struct answer *a, struct instant emitted);
void eviction_step(struct sim_daemon *d, const struct lease *l, int64_t name);

/* left.c: values that were given up. */
void left_life(struct sim_daemon *d);
void left_note(struct sim_daemon *d, struct span value);
void left_taken_up(struct sim_daemon *d, const struct call *call, int64_t name);
void left_ran(struct server *s, const struct flight *f, unsigned i);
void left_step(struct sim_daemon *d);

/* told.c: what sessions must be told. */
void told_awake(struct sim_daemon *d); /* it goes on, or begins */
bool told_quit(const struct conn *c);   /* it has said QUIT, which waits for its turn */
void told_step(struct sim_daemon *d);
void told_granted(struct sim_daemon *d, const struct request_sim *q, struct lease *l, int64_t fence);
void told_resumed(struct sim_daemon *d, struct lease *l);
void told_pushed(struct conn *c, int64_t name, struct span word);

/* kin.c: adoptions. */
void kin_asked(struct sim_daemon *d, const struct call *call, int64_t name);
bool kin_has(const struct kin *k, struct span value);
void kin_ran(struct server *s, const struct flight *f, unsigned i);
/* Its host was set back: until that is noticed it has the former values again, for whoever asks. */
void kin_set_back(struct server *s);

/* turns.c: whose turn it is, among daemons; hand-over inside of one. */
void turns_life(struct sim_daemon *d);
void turns_call(struct sim_daemon *d, const struct call *call, int64_t name);
void turns_granted(struct sim_daemon *d, int64_t name, unsigned node);
void turns_won(struct sim_daemon *d, int64_t name);
void turns_withdrawn(struct sim_daemon *d, const struct call *call, int64_t name);
void turns_unlinked(struct sim_daemon *d, unsigned node);
void turns_step(struct sim_daemon *d);
void turns_thawed(struct sim_daemon *d);
void turns_wanted(struct sim_daemon *d, struct span name);
void turns_handed_on(struct sim_daemon *d, const struct lease *l, const struct request_sim *q, struct instant deadline);
void turns_ran(struct server *s, const struct flight *f, unsigned i);
void turns_key(struct server *s, int64_t name, bool was, bool is);
void turns_lost(struct server *s);

/* Lines. */
int64_t line_int(struct span line, const char *field); /* INT64_MIN: it has none */
struct span line_word(struct span line, unsigned n);   /* the n-th word; empty if there is none */
struct span line_field(struct span line, const char *field); /* "" with p NULL: it has none */
int64_t line_name(struct span line);                   /* number of its name=; -1 */
int64_t name_number(struct span name);                 /* "k3": 3; -1 if it is none of ours */

#endif
