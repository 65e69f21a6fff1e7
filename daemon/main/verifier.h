/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verifies secrets by crypt(3), in a thread, because a good hash takes long on purpose. The answer comes on the loop's thread. If another verification begins
 * before that, the earlier one gives no answer.
 */
#ifndef VERIFIER_H
#define VERIFIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct verifier;

typedef void verifier_done(void *context, uint64_t number, bool ok);

struct verifier *verifier_new(struct event_base *base, verifier_done *done, void *context);
/* A verification that is under way ends by itself, and gives no answer. */
void verifier_free(struct verifier *v);
/*
 * Copies hash and secret, and wipes the caller's secret. hash NULL: there is no such user; then the secret is verified against `decoy`, which takes as long,
 * and the answer is no. decoy NULL: it is no at once, but not before this call returns.
 */
void verifier_begin(struct verifier *v, uint64_t number, const char *hash, const char *decoy, char *secret, size_t n);

/* The same for a secret that the caller knows to be right: wipes it. */
void verifier_accept(struct verifier *v, uint64_t number, char *secret, size_t n);

#endif
