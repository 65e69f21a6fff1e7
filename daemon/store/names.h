/* SPDX-License-Identifier: BSD-2-Clause */
/* The names that were locked: daemon/redis/lua/names.lua in C. A daemon alone needs none; daemons in tests share such stores. */
#ifndef STORE_NAMES_H
#define STORE_NAMES_H

#include "daemon/base/buf.h"
#include "daemon/base/roll.h"
#include "daemon/core/event.h"

struct names_user;

struct names {
	struct roll all;
	SLIST_HEAD(, names_user) users;
	struct buf shown; /* the last answer */
};

void names_release(struct names *t);
/* The answer of a store of this marker, which has the time of the store already, is valid until the next one. */
void names_call(struct names *t, struct span marker, const struct call *c, struct answer *a);

#endif
