/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scripts on a model store: Lua 5.1, as Redis embeds it, with redis.call and redis.pcall bound to the model, and the conversions of Redis 7.0: number arguments
 * by %.17g, number replies cut to integers, nil and false alike, arrays end at the first nil, errors are tables. Nothing is there that could differ from run to
 * run (os, io, random). A script is compiled once.
 */
#ifndef SIM_BINDING_H
#define SIM_BINDING_H

#include "tests/sim/redis/model.h"
#include "tests/sim/redis/sha1.h"

struct binding;

struct binding *binding_new(struct model *model);
void binding_free(struct binding *b);

/* Compiles the script unless it is known. Returns its number; negative: it does not compile, and the error is in `out`. */
int binding_compile(struct binding *b, struct span text, struct buf *out) __attribute__((warn_unused_result));
int binding_find(const struct binding *b, struct span sha); /* negative: unknown */
const char *binding_sha(const struct binding *b, int script);

/* The script cache of the server: it knows a compiled script only while that is cached. */
bool binding_cached(const struct binding *b, int script);
void binding_cache(struct binding *b, int script);
void binding_flush(struct binding *b);

/* Runs the script and appends its reply. */
void binding_run(struct binding *b, int script, const struct span *key, size_t keys, const struct span *arg, size_t args,
		 struct buf *out);

#endif
