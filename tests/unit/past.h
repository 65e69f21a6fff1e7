/* SPDX-License-Identifier: BSD-2-Clause */
/* Lives of a journal, one after the other in one folder, for the tests of daemon/journal.c. */
#ifndef UNIT_PAST_H
#define UNIT_PAST_H

#include "daemon/journal.h"

#include <sys/types.h>

#define PAST_BOOT   "aaaaaaaa-0000"
#define PAST_HEADER 96
#define PAST_FRAME  16

/* Each test begins in an empty folder. */
struct past {
	char dir[64], path[96], bad[96], temp[96]; /* the folder, and what may stand in it */
	struct instant now;
	struct journal j;
};
extern struct past past;

void past_start(void);
void past_stop(void); /* fails when anything but the journal, and what was moved aside, was left there */

void past_life(const char *boot);
void past_add(const char *text);
void past_write(const char *text); /* adds, and writes */
void past_snapshot(const char *text); /* of this one record; NULL: of none */
const char *past_read(void); /* all records, each with a '|' behind it; then forgets them */
const char *next_life_reads(const char *boot);
off_t past_size(void); /* of the file; -1: there is none */
void past_write_three(void); /* "one", "" and, in a second pass, "three" */

#endif
