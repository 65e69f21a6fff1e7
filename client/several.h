/* SPDX-License-Identifier: BSD-2-Clause */
/* The locks of one run: the keeper holds all of them for CMD, or none. Most runs have one. */
#ifndef CLIENT_SEVERAL_H
#define CLIENT_SEVERAL_H

#include "client/task.h"

/* The names for a person, with commas between them. */
void several_shown(const char *const *names, unsigned n, char *out, size_t size);
/* Asks CHECK for each, and sets task->grant. 0, or the outcome for the first that is not held. */
int several_check(struct keeper_task *task) REDLOCK_MUST;
/* CHECK of one of them; and what the answer tells. */
int several_check_send(const struct keeper_task *task, unsigned i) REDLOCK_MUST;
int several_grant(const struct keeper_task *task, struct redlock_grant *ret_grant) REDLOCK_MUST;
/* The push LOST of one of them, or NULL. Drops the pushes before it. */
const struct redlock_line *several_loss(const struct keeper_task *task);
/* Whether it came; then why, for a person, and whether somebody else may hold the lock already. */
#define LOSS_WHY 32
bool several_lost(const struct keeper_task *task, char ret_why[LOSS_WHY], bool *ret_final);
/* The grant that ends first. */
const struct redlock_grant *several_first(const struct keeper_task *task);
/* Unlocks each, up to the first that is refused. A job is done, or has failed. */
int several_unlock(const struct keeper_task *task, int64_t keep_ms, bool done) REDLOCK_MUST;
/* Sets REDLOCK_NAME and REDLOCK_FENCE; of further names REDLOCK_NAME_2, REDLOCK_FENCE_2 and so on. 0 or a negative errno. */
int several_environment(const struct keeper_task *task);

#endif
