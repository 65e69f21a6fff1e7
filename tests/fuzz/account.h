/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The accounting on the side of the clients: from what each session asked and was answered follows who holds what, who waits, what was lost. It
 * knows nothing of the service but the lines that went to and fro; each answer must be one that this account allows, and what the
 * service says of itself (LIST, SHOW) must agree with it. Whatever does not is a broken promise. What must hold of beliefs and fences, and of the values that
 * the store is asked to set, is shared with the unit tests (tests/fixture/promises.h).
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
#define PARTIES   (CLIENTS + 16) /* the connections, and sessions without one */
#define TEXTS     64            /* names and owners */
#define ASKED_MAX 64            /* of one client, unanswered */
#define STAKES    256
#define NOBODY    (PARTIES * TEXTS) /* whoever is gone and may still believe */

/* A request that is not answered. One with a tag begins at once, one without when those before it are answered. */
struct asked {
	TAILQ_ENTRY(asked) next;
	char tag[TAG_MAX + 1], target[TAG_MAX + 1]; /* target: of CANCEL */
	enum verb verb;                              /* VERB_N: a line that must be answered by ERR mistake */
	enum error mistake;
	unsigned name, owner;
	bool has_fence, has_grace, sync, patient, refused; /* refused: beyond a bound */
	bool begun, released, cancelled;
	bool parts;   /* once answered its session is over, grace or not */
	bool resumes; /* RESUME: must be OK */
	bool seen;      /* as a row of SHOW */
	uint64_t order; /* in which requests began; 0: not known exactly */
	int64_t fence;
	int64_t ttl_us; /* EXTEND; 0: none named */
	int64_t grace_us;
	uint64_t serial; /* RESUME: whom; 0: a number that nobody has */
	struct instant sent;
	unsigned rows;
	char what; /* LIST: 'l'ocks, 's'essions, 'n'odes */
};
TAILQ_HEAD(askeds, asked);

/* What a client has of a name, as one owner. */
struct stake {
	bool used, lost;
	bool seen;     /* as a row of LIST or SHOW */
	bool owed;     /* it was lost while nobody could be told: RESUME does */
	bool due;      /* resumed: a row says that it is still held, or it is owed */
	bool expected; /* of the former life of the daemon: the stores are asked, so it may not be confirmed yet */
	bool again;    /* lost in a former life: it may be told again */
	bool doubtful; /* lost, and perhaps forgotten for a turn that nobody heard of */
	unsigned client, name, owner, count;
	int64_t fence;
};

/* A session, with its connection (the first CLIENTS of them) or without. */
struct client {
	bool open, leaving, eof, flooded; /* leaving: waits for nobody; eof: says nothing more */
	bool half_closed;                      /* ends for good */
	bool taken;                       /* another connection has taken its session: it will be hung up */
	bool away, sure;                  /* without a connection; sure: nobody believes in what it holds */
	uint64_t serial; /* 0: HELLO will tell */
	struct askeds asked;
	unsigned count;
	int64_t grace_us;
	char secret[TAG_MAX + 1];
	struct instant over; /* away: end of its grace */
	/* LOCKs that went with a connection. Each may be waiting, have come to its turn, or be no more. */
	struct askeds orphan;
};

struct account {
	struct instant now;
	struct promises promises; /* of the owners of the parties, and of NOBODY */
	struct client client[PARTIES];
	struct stake stake[STAKES];
	struct {
		char p[NAME_MAX_BYTES];
		size_t n;
		/* An orphan's turn that came, as LIST says: nobody was told of it. 0: none. */
		struct {
			uint64_t serial;
			int64_t fence;
			bool seen;
		} silent;
	} text[TEXTS];
	unsigned texts;
	uint64_t order;
	unsigned named; /* by the last request */
	/* What one LIST or SHOW of the observer has shown so far. */
	struct {
		unsigned held, waiting;
		uint64_t order;
	} shown;
};

void account_init(struct account *a);
void account_release(struct account *a);
/* Index of a text; TEXTS when there is no more room. */
unsigned account_text(struct account *a, struct span text);
struct span account_words(const struct account *a, unsigned text);

/*
 * The client is about to say this line; NULL: one that is too long. False: the account could not follow, it must not be said.
 */
bool account_says(struct account *a, unsigned k, const char *line, size_t n);
/* The client was told this line. */
void account_told(struct account *a, unsigned k, const struct reply_line *line);
void account_opened(struct account *a, unsigned k, uint64_t serial);
/* Its connection is no more. Unsure: it may be alive and believe. */
void account_ended(struct account *a, unsigned k, bool unsure);
/* kill -9 of the daemon, and a new life on its journal. */
void account_restarted(struct account *a, int64_t grace_least_us);
/* Sessions without a connection whose grace is over, or is over by now, are no more. */
void account_expire(struct account *a, bool by_now);
/* After every act: nothing is owed. */
void account_promise_all_told(struct account *a);

/* Nobody waits for somebody who waits for him. */
void account_promise_no_deadlock(struct account *a);

/* --- between the files of the account --- */
struct stake *account_stake(struct account *a, unsigned k, unsigned name, unsigned owner);
struct asked *account_asked(struct client *c, struct span tag); /* the next to be answered under this tag; "": of those without */
void account_begin(struct account *a, unsigned k, struct asked *q, bool at_once);
void account_drop(struct client *c, struct asked *q);
bool account_is_waiting(const struct asked *q);
unsigned account_waiting(const struct account *a, unsigned name); /* requests that stand in line for the name */
unsigned account_orphans(const struct account *a, const struct client *c, unsigned name); /* of one, or of all; of one name, or (TEXTS) of all */
struct stake *account_holder(struct account *a, unsigned name);
bool account_is_alive(const struct client *c);
void account_over(struct account *a, unsigned k, bool unsure); /* the session is no more */
void account_asked_drop_all(struct askeds *list);
void account_detach(struct account *a, unsigned k, bool unsure);
void account_begin_resume(struct account *a, unsigned k, struct asked *q);
void account_row_resumed(struct account *a, unsigned k, const struct asked *q, const struct reply_line *row);
void account_resumed(struct account *a, unsigned k);
void account_orphan_drop(struct account *a, unsigned k, struct asked *q);
/* Somebody else has it, or nobody: whoever it was lost it without a word, which he could not be told. */
void account_silent_loss(struct account *a, unsigned name, const struct stake *but);
/* Somebody else has it now: whoever had it before can believe in it no longer, be it that he is away and could not be told. */
void account_promise_not_believed(struct account *a, unsigned name, const struct stake *but);
/* The turn that LIST showed: it was granted before it is told. */
bool account_is_silent_turn(const struct account *a, unsigned k, unsigned name, int64_t fence);
/* Party k could have come to this turn without being told; fence 0: whichever. */
bool account_may_be_silent(const struct account *a, unsigned k, unsigned name, int64_t fence);
/* It is told now, or let go. */
void account_surfaces(struct account *a, unsigned k, unsigned name, unsigned owner);
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
