/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the model's commands share: model.c and model_*.c. */
#ifndef SIM_MODEL_COMMAND_H
#define SIM_MODEL_COMMAND_H

#include "tests/sim/redis/model.h"

#define COMMAND(name, arity, flags) void model_run_##name(struct model *m, const struct span *word, size_t n, struct buf *out);
#define DIRECT(name, arity)
#include "tests/sim/redis/command.def"
#undef COMMAND
#undef DIRECT

/* Finds the key; ret_datum NULL: there is none. False: it is of another type, and the error is written. */
bool model_look(struct model *m, struct span key, enum datum_type type, struct buf *out, struct datum **ret_datum);

/* False: the word is no integer, and the error is written. */
bool model_integer(struct span word, struct buf *out, int64_t *ret_n);

void model_syntax_error(struct buf *out);

/* Removes a hash or sorted set that has become empty. Of these types watchers see only removals. */
void model_tidy(struct model *m, struct datum *datum);

/* HDEL, ZREM: removes the fields or members that the words name. */
void model_remove_items(struct model *m, enum datum_type type, const struct span *word, size_t n, struct buf *out);

#endif
