/* SPDX-License-Identifier: BSD-2-Clause */
/* Users, as RECENT tells them apart, and the names that each of them locked last. A session has a user from its first grant on. */
#ifndef CORE_USER_H
#define CORE_USER_H

#include "daemon/base/map.h"
#include "daemon/base/roll.h"
#include "proto/span.h"

#define USER_MAX     96   /* bytes of its name; what is longer is cut */
#define USERS_MOST   1000 /* those without a session that are remembered */
#define USER_RECENTS 100  /* names that a user locked last */

struct user {
	struct map_node by_name;
	TAILQ_ENTRY(user) in_users; /* the one that came first, first */
	unsigned refs;  /* sessions */
	unsigned notes; /* of this second: see name_history.h */
	struct roll recent;
	size_t n;
	char name[];    /* see name_history.c */
};

struct users {
	struct map by_name;
	TAILQ_HEAD(, user) all;
};

void users_init(struct users *t, const uint64_t key[2]);
void users_release(struct users *t);
struct user *users_find_or_add(struct users *t, struct span name);
/* Forgets those that are too many and have no session. Nothing else refers to any. */
void users_trim(struct users *t);

static inline void user_leave(struct user *u)
{
	if (u)
		u->refs--;
}

#endif
