/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may have one more session. The administrator, who is root or the user of the daemon, may have all of them, and the last few are kept for the
 * administrator. The other sessions are shared among users, of whom all TCP peers count as one, by dynamic thresholds (Choudhury, Hahne 1998): a user is
 * refused who has more than SHARES_RATIO times as many sessions as are left. So one user alone leaves a sixteenth of them to others, two leave a 31st. As
 * long as no second user has asked, the first may have them all.
 */
#ifndef NET_SHARES_H
#define NET_SHARES_H

#include "daemon/base/map.h"
#include "daemon/base/pool.h"

#include <sys/types.h>

#define SHARES_RATIO 15u
#define SHARES_TCP   ((uid_t)-1) /* the user of all peers whose user is not known */

enum share {
	SHARE_LEFT,
	SHARE_FULL,    /* nobody may have one more */
	SHARE_KEPT,    /* the rest is kept for the administrator */
	SHARE_USED_UP, /* the rest is for users who have fewer */
};

struct shares {
	struct map users; /* those who have sessions, without the administrator */
	struct pool pool;
	uid_t own;        /* of the daemon */
	uid_t first;      /* the first user who asked */
	bool asked;
	bool several;     /* a second one has asked */
};

void shares_init(struct shares *s, uid_t own);
void shares_release(struct shares *s); /* forgets who has sessions */

/* How many of `most` sessions are kept for the administrator. */
unsigned shares_kept(unsigned most);
/* live: how many sessions there are. */
enum share shares_ask(struct shares *s, uid_t uid, unsigned live, unsigned most);
void shares_take(struct shares *s, uid_t uid);
void shares_give(struct shares *s, uid_t uid);

#endif
