/* SPDX-License-Identifier: BSD-2-Clause */
/* What the commands of the model share. Only model.c and model_*.c include it. */
#ifndef SIM_MODEL_COMMAND_H
#define SIM_MODEL_COMMAND_H

#include "tests/sim/redis/model.h"

#define COMMAND(name, arity, flags) void model_run_##name(struct model *m, const struct span *word, size_t n, struct buf *out);
#define DIRECT(name, arity)
#include "tests/sim/redis/command.def"
#undef COMMAND
#undef DIRECT

/* What stands at the key. False: it is of another type, and the error is said; ret_datum is NULL when there is nothing. */
bool model_look(struct model *m, struct span key, enum datum_type type, struct buf *out, struct datum **ret_datum);

/* False: it is none, and the error is said. */
bool model_integer(struct span word, struct buf *out, int64_t *ret_n);

void model_syntax_error(struct buf *out);

/* A hash or sorted set that has become empty is no longer there. Watchers are told of removals alone. */
void model_tidy(struct model *m, struct datum *datum);

#endif
