/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model of a Redis 7.0 server: the commands that scripts use, on the keys of data.h. A command is words in and RESP2 out, byte for byte as Redis says it;
 * an option that the model does not know is an error, never ignored. The clock comes with the command and stands still until it is done.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "tests/sim/redis/data.h"
#include "tests/sim/redis/wire.h"

#define MODEL_VERSION "7.0.15"
#define RUN_ID_LENGTH 40

/* Returns how many subscribers have it. */
typedef int64_t model_published(void *context, struct span channel, struct span message);

struct model {
	struct data data;
	int64_t now_us; /* set for every command, or for a script as a whole */
	bool dirty;     /* the script under way has written: from then on nothing is refused */
	char *error;    /* NULL, or why commands are refused */
	char run_id[RUN_ID_LENGTH + 1], replid[RUN_ID_LENGTH + 1], role[16];
	bool fed; /* it was a replica since it was started: its data is another server's */
	int64_t evicted;
	model_published *published; /* NULL: nobody listens */
	void *listener;
};

enum command_flag {
	COMMAND_WRITE = 1,
	COMMAND_GROWS = 2,  /* refused when memory is short */
	COMMAND_DIRECT = 4, /* not from a script; it has no run */
};

struct model_command {
	const char *name;
	int arity; /* words with the name; negative: at least that many */
	int flags;
	void (*run)(struct model *m, const struct span *word, size_t n, struct buf *out);
};

void model_init(struct model *m);
void model_release(struct model *m);

const struct model_command *model_command(struct span name); /* NULL: unknown, or a number of words that it does not take */
bool model_arity_fits(const struct model_command *command, size_t n);

/* NULL, or the error text with which the server refuses this command at this point. */
const char *model_refusal(const struct model *m, const struct model_command *command);

/* Carries out one command, outside of a script, at now_us. */
void model_run(struct model *m, const struct span *word, size_t n, struct buf *out);

/* Command and option words are known in either case. */
bool model_word_is(struct span word, const char *option);

/* Its role is "slave", and not "master". */
static inline bool model_is_replica(const struct model *m)
{
	return m->role[0] == 's';
}

static inline int64_t model_now_ms(const struct model *m)
{
	return m->now_us / 1000;
}

#endif
