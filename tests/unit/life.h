/* SPDX-License-Identifier: BSD-2-Clause */
/* Lives of a daemon with a memory store, one after the other in one folder, for the tests of the state file. */
#ifndef UNIT_LIFE_H
#define UNIT_LIFE_H

#include "daemon/store/memory.h"
#include "daemon/store/state.h"

#define WALL   INT64_C(1700000000000000)
#define BOOT   "aaaaaaaa-0000"
#define REBOOT "bbbbbbbb-1111"

struct life {
	struct state state;
	struct memory *memory;
	enum state_found found;
	const char *why;
	char value[32]; /* of what it acquires: another in each life */
};

/* Where and when: each test begins in an empty folder. */
struct here {
	char dir[64], path[96]; /* the folder, and the state file in it */
	struct instant now, began;
	int64_t wall_us; /* the wall clock - now */
	bool remote;
	int64_t lease_us, guard_us;
};
extern struct here here;

void folder_start(void);
void folder_stop(void); /* fails when anything but the state file was left there */

void life_open(struct life *l, const char *boot);  /* and restore */
void life_begin(struct life *l, const char *boot); /* open, mark, and join unless a quarantine comes first */
void life_join(struct life *l);
void life_crash(struct life *l);
void life_end(struct life *l);
enum state_found next_finds(const char *boot);

char life_acquire(struct life *l, struct span name, int64_t px); /* the code of the answer */
char life_adopt(struct life *l, struct span name, const char *value, int64_t px); /* what another life acquired with that value: likewise */
int64_t life_grant(struct life *l);                              /* a token */

#endif
