/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A state that one process hands over to the next is used once: <runtime_dir>/handover identifies it by a random number. Each start removes that file before it
 * does anything else there. So a state that another process has used, or that was left over, is never taken. The directory is locked meanwhile (runtime.h).
 */
#ifndef ONCE_H
#define ONCE_H

#include <stdbool.h>
#include <stdint.h>

/* Before the state is handed over. 0 or a negative errno: then nothing may be handed over. */
int once_put(const char *dir, const uint64_t mark[2]) __attribute__((warn_unused_result));
/* Whether a process that ran in this directory has handed over its state, and no other has started here since. */
bool once_is_there(const char *dir);
/* At each start. False: the state of that number must not be used; *ret_why says why, for people. mark NULL: there is no state. */
bool once_take(const char *dir, const uint64_t mark[2], const char **ret_why);

#endif
