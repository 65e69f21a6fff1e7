/* SPDX-License-Identifier: BSD-2-Clause */
/* lua/break.lua in C. */
#ifndef STORE_BREAKING_H
#define STORE_BREAKING_H

#include "daemon/store/memory_key.h"

void memory_break(struct memory *m, const struct call *c, struct instant now, struct answer *a);

#endif
