/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model of a Redis 7.0 server: the commands that scripts use, on the keys of data.h. Words go in, and RESP2 comes out, byte for byte as from Redis. An
 * unknown option is an error, never ignored. The clock comes with the command and stands still while it runs.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "tests/sim/redis/data.h"
#include "tests/sim/redis/wire.h"

#include <strings.h>

#define MODEL_VERSION "7.0.15"
#define RUN_ID_LENGTH 40

/* Returns the number of subscribers that got it. */
typedef int64_t model_published(void *context, struct span channel, struct span message);

struct model {
	struct data data;
	int64_t now_us; /* set for every command, or for a script as a whole */
	bool dirty;     /* the running script has written: from then on OOM refuses nothing */
	char *error;    /* the error that commands are refused with; NULL: none */
	char run_id[RUN_ID_LENGTH + 1], replid[RUN_ID_LENGTH + 1], role[16];
	bool fed; /* it was a replica since it started: its data is another server's */
	int64_t evicted;
	model_published *published; /* NULL: no subscriber */
	void *listener;
};

enum command_flag {
	COMMAND_WRITE = 1,
	COMMAND_GROWS = 2,  /* needs memory: refused with OOM */
	COMMAND_DIRECT = 4, /* not allowed in a script; has no `run` */
};

struct model_command {
	const char *name;
	int arity; /* words with the name; negative: at least that many */
	int flags;
	void (*run)(struct model *m, const struct span *word, size_t n, struct buf *out);
};

void model_init(struct model *m);
void model_release(struct model *m);

const struct model_command *model_command(struct span name); /* NULL: unknown */
bool model_arity_fits(const struct model_command *command, size_t n);

/* The error with which the server refuses the command now; NULL: it does not. */
const char *model_refusal(const struct model *m, const struct model_command *command);

/* Runs one command, outside of a script, at now_us. */
void model_run(struct model *m, const struct span *word, size_t n, struct buf *out);

/* Words of commands may be in either case. The option is in lower case and begins with a letter: nearly all other words differ in the first byte. */
static inline bool model_word_is(struct span word, const char *option)
{
	return word.n > 0 && (word.p[0] | 0x20) == option[0] && word.n == strlen(option) && strncasecmp(word.p, option, word.n) == 0;
}

/* Is its role "slave"? */
static inline bool model_is_replica(const struct model *m)
{
	return m->role[0] == 's';
}

static inline int64_t model_now_ms(const struct model *m)
{
	return m->now_us / 1000;
}

#endif
