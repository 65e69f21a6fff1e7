/* SPDX-License-Identifier: BSD-2-Clause */
/* The locks of one run: the keeper holds all of them for CMD, or none. Most runs have one. */
#ifndef CLIENT_SEVERAL_H
#define CLIENT_SEVERAL_H

#include "client/task.h"

/* The names for a person, with commas between them. */
void several_shown(const char *const *names, unsigned n, char *out, size_t size);
/* Asks CHECK for each, and sets task->grant. 0, or the outcome for the first that is not held. */
int several_check(struct keeper_task *task) REDLOCK_MUST;
/* The grant that ends first. */
const struct redlock_grant *several_first(const struct keeper_task *task);
/* Unlocks each, up to the first that is refused. */
int several_unlock(const struct keeper_task *task, int64_t keep_ms) REDLOCK_MUST;
/* Sets REDLOCK_NAME and REDLOCK_FENCE; of further names REDLOCK_NAME_2, REDLOCK_FENCE_2 and so on. 0 or a negative errno. */
int several_environment(const struct keeper_task *task);

#endif
