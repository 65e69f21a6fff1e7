/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The account of the clients: from the requests and answers of each session it concludes who holds what, who waits, and what was lost. It knows nothing of the
 * service but the lines that are exchanged. Each answer must be one that the account allows, and what the service says of itself (LIST, SHOW) must agree with
 * the account: anything else is a broken promise. The rules for beliefs, for fences, and for the values that the store is asked to set are shared with the unit
 * tests (tests/fixture/promises.h).
 *
 * The unit tests do not use the whole account: it takes every line of one daemon on one store, while they speak to several daemons, whose stores and journals
 * they also damage.
 */
#ifndef FUZZ_ACCOUNT_H
#define FUZZ_ACCOUNT_H

#include "daemon/base/instant.h"
#include "proto/proto.h"
#include "tests/fixture/promises.h"

#include <sys/queue.h>

#define CLIENTS   7
#define OBSERVER  (CLIENTS - 1) /* asks LIST and SHOW, holds nothing */
#define PARTIES   (CLIENTS + 16) /* the clients with a connection, and sessions without one */
#define TEXTS     64            /* names and owners */
#define ASKED_MAX 64            /* of one client, unanswered */
#define STAKES    256
#define NOBODY    (PARTIES * TEXTS) /* stands for all clients that are gone and may still believe */

/* A request that is not answered. A tagged request begins at once, an untagged one when the untagged ones before it are answered. */
struct asked {
	TAILQ_ENTRY(asked) next;
	char tag[TAG_MAX + 1], target[TAG_MAX + 1]; /* target: of CANCEL */
	enum verb verb;                              /* VERB_N: a line that must be answered by ERR mistake */
	enum error mistake;
	unsigned name, owner;
	bool has_fence, has_grace, sync, patient, refused; /* refused: beyond a bound */
	unsigned priority;
	bool begun, released, cancelled;
	bool parts;   /* QUIT: once it is answered, its session is over, with or without grace */
	bool resumes; /* RESUME: it must be answered OK */
	bool seen;      /* SHOW has a row of it */
	uint64_t order; /* the order in which requests began; 0: not known exactly */
	int64_t fence;
	int64_t ttl_us; /* EXTEND; 0: none named */
	int64_t grace_us;
	uint64_t serial; /* RESUME: the session that it asks for; 0: none has that number and secret */
	struct instant sent;
	unsigned rows;
	char what; /* LIST: 'l'ocks, 's'essions, 'n'odes */
};
TAILQ_HEAD(askeds, asked);

/* What a client has of a name, as one owner. */
struct stake {
	bool used, lost;
	bool seen;     /* LIST or SHOW has a row of it */
	bool owed;     /* lost while its session could not be told: LOST must follow once the session is resumed */
	bool due;      /* resumed: it needs a row that says that it is still held, or else becomes owed */
	bool expected; /* of the previous run of the daemon: the stores are asked, so it may not be confirmed yet */
	bool again;    /* lost in the previous run: the loss may be told again */
	bool doubtful; /* lost, and perhaps forgotten because of a turn that its client was not told of */
	unsigned client, name, owner, count;
	int64_t fence;
};

/* A session, with its connection (the first CLIENTS of them) or without. */
struct client {
	bool open, leaving, eof, flooded; /* leaving: it has half-closed, and its waits are cancelled; eof: it says nothing more */
	bool half_closed;                      /* QUIT was answered: the session ends for good */
	bool killed;                           /* KILL was answered: likewise, and its client may believe */
	bool watches, subscribed;              /* WATCH, SUBSCRIBE was answered */
	bool taken;                       /* another connection has taken its session: it will be hung up */
	bool away, sure;                  /* away: without a connection; sure: its client believes in nothing any more */
	uint64_t serial; /* 0: not known before HELLO */
	struct askeds asked;
	unsigned count;
	int64_t grace_us;
	char secret[TAG_MAX + 1];
	struct instant over; /* away: end of its grace */
	/* LOCKs whose connection is gone. Each may still wait, may have had its turn, or may be gone. */
	struct askeds orphan;
};

struct account {
	struct instant now;
	struct promises promises; /* its holders are the owners of each party, and NOBODY */
	struct client client[PARTIES];
	struct stake stake[STAKES];
	struct {
		char p[NAME_MAX_BYTES];
		size_t n;
		/* The turn of an orphan, as LIST showed it: its client was not told. serial 0: none. */
		struct {
			uint64_t serial;
			int64_t fence;
			bool seen;
		} silent;
	} text[TEXTS];
	unsigned texts;
	uint64_t order;
	unsigned named; /* the name in the last request */
	/* What one LIST or SHOW of the observer has shown so far. */
	struct {
		unsigned held, waiting;
		struct instant at;
		uint64_t order;
	} shown;
};

void account_init(struct account *a);
void account_release(struct account *a);
/* Index of a text; TEXTS when there is no more room. */
unsigned account_text(struct account *a, struct span text);
struct span account_words(const struct account *a, unsigned text);

/*
 * The client is about to say this line (NULL: one that is too long). False: the account cannot follow it, so the client must not say it.
 */
bool account_says(struct account *a, unsigned k, const char *line, size_t n);
/* The client was told this line. */
void account_told(struct account *a, unsigned k, const struct reply_line *line);
void account_opened(struct account *a, unsigned k, uint64_t serial);
/* The connection of the client is gone. unsure: the client may be alive and believe. */
void account_ended(struct account *a, unsigned k, bool unsure);
/* kill -9 of the daemon, and a new run on its journal. */
void account_restarted(struct account *a, int64_t grace_least_us);
/* Ends sessions without a connection whose grace is over; by_now: also those whose grace ends at this moment. */
void account_expire(struct account *a, bool by_now);
/* To be called after every act: each session that has a connection was told its losses. */
void account_promise_all_told(struct account *a);

/* No request waits for a name that its own session and owner holds, directly or through others that wait. */
void account_promise_no_deadlock(struct account *a);

/* --- between the files of the account --- */
struct stake *account_stake(struct account *a, unsigned k, unsigned name, unsigned owner);
struct asked *account_asked(struct client *c, struct span tag); /* the next to be answered under this tag; "": without a tag */
void account_begin(struct account *a, unsigned k, struct asked *q, bool at_once);
void account_drop(struct client *c, struct asked *q);
bool account_is_waiting(const struct asked *q);
unsigned account_waiting(const struct account *a, unsigned name); /* requests that wait for the name */
unsigned account_orphans(const struct account *a, const struct client *c, unsigned name); /* of c, or (NULL) of all; of the name, or (TEXTS) of all names */
struct stake *account_holder(struct account *a, unsigned name);
bool account_is_alive(const struct client *c);
void account_over(struct account *a, unsigned k, bool unsure); /* the session is no more */
void account_asked_drop_all(struct askeds *list);
void account_detach(struct account *a, unsigned k, bool unsure);
void account_begin_resume(struct account *a, unsigned k, struct asked *q);
void account_row_resumed(struct account *a, unsigned k, const struct asked *q, const struct reply_line *row);
void account_resumed(struct account *a, unsigned k);
void account_orphan_drop(struct account *a, unsigned k, struct asked *q);
/* All stakes in the name except `but` are lost: their sessions could not be told, for want of a connection or because RESUME is not answered. */
void account_silent_loss(struct account *a, unsigned name, const struct stake *but);
/* The name is granted anew: nobody may believe in an earlier grant any more, although a holder without a connection was not told of its loss. */
void account_promise_not_believed(struct account *a, unsigned name, const struct stake *but);
/* Is this the turn that LIST showed before its client was told? */
bool account_is_silent_turn(const struct account *a, unsigned k, unsigned name, int64_t fence);
/* Could party k have had this turn without being told? fence 0: any turn. */
bool account_may_be_silent(const struct account *a, unsigned k, unsigned name, int64_t fence);
/* The client has heard of the turn, or has released it. */
void account_surfaces(struct account *a, unsigned k, unsigned name, unsigned owner);
/* A session was killed: nobody resumes it. */
void account_killed(struct account *a, uint64_t serial);
struct stake *account_stake_new(struct account *a, unsigned k, unsigned name, unsigned owner);
void account_believes(struct account *a, const struct stake *s, struct instant sent, const struct reply_line *line); /* valid_ms of the line, from then on */
void account_stake_gone(struct account *a, struct stake *s);
void account_stake_lost(struct account *a, struct stake *s);
static inline unsigned account_holder_of(const struct stake *s)
{
	return s->client * TEXTS + s->owner;
}
int64_t account_last_fence(const struct account *a, unsigned name); /* the largest that was granted; 0: none */
void account_row(struct account *a, unsigned k, struct asked *q, const struct reply_line *line);
void account_rows_done(struct account *a, unsigned k, const struct asked *q, const struct reply_line *line);

#endif
