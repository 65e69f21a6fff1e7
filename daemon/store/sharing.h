/* SPDX-License-Identifier: BSD-2-Clause */
/* lua/sharing.lua in C, and how acquire.lua treats shares. Before share_acquire the fence is raised, and the key may be taken. */
#ifndef STORE_SHARING_H
#define STORE_SHARING_H

#include "daemon/store/memory_key.h"

void share_acquire(struct memory *m, const struct call *c, const struct key_view *s, int64_t base, struct answer *a);
bool share_may_join(struct memory *m, const struct call *c, const struct key_view *s); /* the key has shares */
void share_extend(struct memory *m, const struct call *c, const struct key_view *s, struct answer *a);
void share_release(struct memory *m, const struct call *c, const struct key_view *s, struct answer *a); /* the key has shares */

#endif
