/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scripts on a model store: Lua 5.1, which is what Redis embeds, with redis.call and redis.pcall bound to the model, and Redis 7.0's rules for what goes
 * in and comes out: numbers as arguments by %.17g, numbers as replies cut to integers, nil and false the same, arrays end at the first nil, errors are
 * tables. What could differ from run to run (os, io, random) is not there. A script is compiled once.
 */
#ifndef SIM_BINDING_H
#define SIM_BINDING_H

#include "tests/sim/redis/model.h"
#include "tests/sim/redis/sha1.h"

struct binding;

struct binding *binding_new(struct model *model);
void binding_free(struct binding *b);

/* Compiles it, or knows it already: its number. Negative: it does not compile, and the error is said. */
int binding_compile(struct binding *b, struct span text, struct buf *out) __attribute__((warn_unused_result));
int binding_find(const struct binding *b, struct span sha); /* negative: there is none */
const char *binding_sha(const struct binding *b, int script);

/* The script cache: what is compiled is known to the server as long as it is cached. */
bool binding_cached(const struct binding *b, int script);
void binding_cache(struct binding *b, int script);
void binding_flush(struct binding *b);

/* Runs it and appends its reply. */
void binding_run(struct binding *b, int script, const struct span *key, size_t keys, const struct span *arg, size_t args,
		 struct buf *out);

#endif
