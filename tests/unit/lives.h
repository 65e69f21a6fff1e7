/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of the stage at random, some of them with a grace, through many lives of a daemon: what each knows that it holds, and what it must be told. The lives are in
 * lives_test.c, the daemon in lives_daemon.c, the stores in lives_stores.c, the clients in lives_client.c, and by when they must be answered in lives_due.c.
 *
 * The stage holds the daemons to what holds always. A client adds what holds while the stores are well and the journal is written: no lock is lost, RESUME finds the
 * session, and there is a row for each lock that it holds, of its fence and its count. Always: its requests are answered in time, and once, and when all has been well for
 * longer than a lease nobody waits for what is free.
 */
#ifndef UNIT_LIVES_H
#define UNIT_LIVES_H

#include "daemon/base/rng.h"
#include "tests/unit/secret.h"

#define CLIENTS       6
#define NAMES         2
#define OWNERS        2
#define SESSIONS_MOST 58 /* of the stage: a life needs a few more to be ended */

/* A client's lock of one name and owner. */
struct claim {
	bool held;
	bool asked;   /* ever: RESUME may have a row of it */
	bool waits;   /* its LOCK has no answer yet */
	unsigned tag; /* of that LOCK: its number */
	bool lapses;  /* it asked for renew=no: the lease may end */
	bool renewed; /* as it was granted */
	bool has_row; /* of the RESUME under way */
	int64_t fence, count;
};

struct client {
	unsigned k;    /* the session that it speaks on; 0: none */
	unsigned last; /* the session that it spoke on last */
	unsigned daemon;
	bool stays;     /* it is resumed at no other daemon */
	bool afar;      /* over TCP */
	bool half;      /* it has half-closed its connection, at */
	struct instant half_at;
	bool resumable; /* it has a secret */
	bool resuming;  /* RESUME has no answer yet */
	bool unsure; /* nobody promises what becomes of its locks: the journal failed, its grace was cut, or two lives run on copies */
	struct secret secret;
	struct claim claim[NAMES][OWNERS];
};

/* Lives one after the other, over the same stores. */
struct lives {
	struct rng rng;
	bool calm;      /* the stores stay well */
	bool inner;     /* one store, of which each life may have another max_lease: the daemon's own */
	bool copying;   /* the journal may be copied, and a second life run on the copy */
	bool two;       /* there is a daemon 1 */
	bool copied;    /* it lives on a copy of the journal of daemon 0 */
	bool journaled; /* the journal can be written */
	bool windowed;  /* the stores are asked of little at a time */
	unsigned rush;  /* so many steps more all clients are in a hurry, since a life has begun at stores that do not answer */
	unsigned sessions, tags;
	struct client client[CLIENTS];
};
extern struct lives lives;

/* In the whole run. One that never met a thing proves nothing about it. */
extern struct met {
	unsigned rows;          /* that RESUME had */
	unsigned lives;         /* after a crash */
	unsigned cuts;          /* of max_lease */
	unsigned copies;        /* of a journal that two lives ran on */
	unsigned journals_lost; /* that failed and were not written again before the crash */
} met;

unsigned below(unsigned bound); /* a random number */
bool one_in(unsigned many);
void story(const char *format, ...)
	__attribute__((format(printf, 1, 2))); /* what is done and heard: shown when it ends in a failure */

void clients_hear(void);        /* all that they were told since the last call */
void clients_lose_daemon(void); /* 0 */
void clients_are_unsure(void);
void clients_choose_daemon(void); /* when a second life begins on a copy: those who are connected stay at 0 */

/* What a client may do at random. Each does nothing where it cannot. */
void client_locks(struct client *c, unsigned name, unsigned owner);
void client_unlocks(struct client *c, unsigned name, unsigned owner);
void client_extends(struct client *c, unsigned name, unsigned owner);
void client_checks(struct client *c, unsigned name, unsigned owner);
void client_comes(struct client *c, unsigned name, unsigned owner);
void client_goes(struct client *c, unsigned name, unsigned owner);
void client_gives_up(struct client *c, unsigned name, unsigned owner);
void client_cancels(struct client *c, unsigned name, unsigned owner);
void client_half_closes(struct client *c, unsigned name, unsigned owner);
void client_says_hello(struct client *c, unsigned name, unsigned owner);
void client_looks(struct client *c, unsigned name, unsigned owner);

void daemon_changes(void); /* it ends and begins anew, or loads its configuration */
void daemon_stands_still(void);
void journal_changes(void);
void journal_is_run_twice(void);

void stores_are_well(void);
void store_changes(void);
void store_breaks(void);
void some_are_served(void); /* of what daemon 0 has asked of a store that is silent */
void nobody_waits_in_vain(void);

void dues_open(void);
void due_begins(const struct client *c, const char *line); /* a request with a tag */
void due_ends(unsigned k, const char *reply);
void dues_leave(unsigned k);   /* what session k has asked for is answered no more */
void dues_move(int64_t us);    /* nobody could answer for so long */
void dues_look(void);          /* fails when one is late */

#endif
