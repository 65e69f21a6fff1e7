/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session with grace at a daemon that plays transcripts, and the parts that those are made of.
 */
#ifndef UNIT_SCENE_H
#define UNIT_SCENE_H

#include "client/redlock.h"
#include "tests/unit/fake_daemon.h"

#define PATIENCE   5000
#define ARRAY_N(a) (int)(sizeof(a) / sizeof((a)[0]))

#define HELLO   "< HELLO 1 name=me grace=5000ms$\n> OK proto=1 session=7 secret=s7\n"
#define GRANT   "OK name=n fence=17 valid_ms=9000 ttl_ms=10000 count=1"
#define CHECKED "OK name=n fence=17 valid_ms=8000 count=1"
#define LOCK    "< LOCK n$\n> " GRANT "\n< CHECK n$\n> " CHECKED "\n"
#define ROW     "> * name=n fence=17 valid_ms=7000 count=1\n"
#define RESUME  "< RESUME 7 s7$\n"
#define KEPT    "+\n" RESUME ROW "> OK session=7 n=1\n"
#define NOTHING "+\n" RESUME "> OK session=7 n=0\n"
#define GONE    "+\n" RESUME "> ERR NOTFOUND no such session\n< HELLO 1 name=me grace=5000ms$\n> OK session=8 secret=s8\n"
#define CHECK   "< CHECK n$\n> OK name=n fence=17 valid_ms=6000 count=1\n"
#define QUIT    "< QUIT$\n> OK\n"
#define QUIT_BY "< @quit QUIT$\n> @quit OK\n" /* past a request that is not answered */

struct scene {
	struct fake_daemon f;
	struct redlock *c;
	struct redlock_grant grant;
};

void scene_open(struct scene *s, const char *script, int64_t timeout_ms);
/* With n held. */
void scene_begin(struct scene *s, const char *script);
void scene_end(struct scene *s);
void scene_check(struct scene *s, int expected);
void scene_refused(const struct scene *s, int r, const char *code);
/* The one LOST that is told, and no further. */
void scene_lost_once(struct scene *s, const char *text);

#endif
