/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Badly behaved clients, WIDTH of them at a time, as fast as the processor lets them. A client that is closed dials again. PER_SECOND bounds how many silent
 * clients dial, and how often the others pour 16 KiB.
 *
 *   churn     connects and closes, without a word
 *   crowd     connects and stays, without a word
 *   garbage   pours lines that mean nothing, and reads
 *   greedy    pours good requests, and reads
 *   deaf      pours requests with long answers, and never reads
 *
 * go: the flood begins. stop: it ends, and its figures are printed.
 */
#include "tests/load/gen.h"
#include "daemon/base/mem.h"
#include "daemon/base/rng.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

#define POUR_SIZE ((size_t)16 * 1024)
#define PER_TURN  32 /* connections, before the loop serves the others */

static struct {
	const char *kind;
	struct peer *peer;
	unsigned width, live, next;
	int64_t per_second, begun_us;
	bool going;
	uint64_t dialled, closed, refused, poured;
	struct buf pour;
	unsigned *vacant, vacant_n; /* numbers of peers that are to dial */
	struct peer_kind peer_kind;
} f;

/* --- what is poured ------------------------------------------------------------------------------------------------ */

static void garbage(void)
{
	struct rng rng;

	rng_init(&rng, (uint64_t[2]){1, 2});
	while (buf_length(&f.pour) < POUR_SIZE) {
		unsigned n = (unsigned)rng_below(&rng, 40);

		while (n--)
			buf_append(&f.pour, (char[]){(char)(33 + rng_below(&rng, 94))}, 1);
		buf_append(&f.pour, "\n", 1);
	}
}

static void requests(void)
{
	while (buf_length(&f.pour) < POUR_SIZE)
		buf_printf(&f.pour, "PING\nLOCK greedy wait=0\nCHECK greedy\nUNLOCK greedy\n");
}

static void questions(void)
{
	for (unsigned i = 0; buf_length(&f.pour) < POUR_SIZE; i++)
		buf_printf(&f.pour, "LIST limit=10000\nHELP\nSTATS\nLIST sessions\n@t%u LOCK deaf/%u wait=0\n", i, i);
}

static int64_t pour_allowance(void)
{
	return (gen_clock() - f.begun_us) * f.per_second / SEC + 1 - (int64_t)f.poured;
}

static void flood_pours(struct peer *p)
{
	if (!f.going || (f.per_second && pour_allowance() <= 0))
		return;
	f.poured++;
	peer_say(p, buf_begin(&f.pour), buf_length(&f.pour));
	peer_flush(p);
	if (!p->full)
		peer_await_room(p); /* other connections are served first */
}

/* --- connections --------------------------------------------------------------------------------------------------- */

static void flood_line(struct peer *p, char *line, size_t n)
{
	(void)p, (void)n;
	f.refused += strncmp(line, "ERR LIMIT clients", 17) == 0;
}

static void flood_ended(struct peer *p)
{
	f.closed++;
	f.live--;
	f.vacant[f.vacant_n++] = p->number;
}

static bool churns(void)
{
	return strcmp(f.kind, "churn") == 0;
}

static void flood_dials(void)
{
	unsigned number = f.vacant[--f.vacant_n];
	struct peer *p = &f.peer[number];

	peer_dial(p, &f.peer_kind, number);
	f.dialled++;
	f.live++;
	if (churns()) {
		peer_close(p);
		f.live--;
		f.vacant[f.vacant_n++] = number;
	} else if (f.peer_kind.room) {
		flood_pours(p);
	}
}

/* How many clients may dial now without exceeding per_second. */
static int64_t allowance(int64_t now)
{
	if (!f.per_second || f.peer_kind.room)
		return PER_TURN;
	return (now - f.begun_us) * f.per_second / SEC + 1 - (int64_t)f.dialled;
}

/* Continues the clients whose pours had to wait. Returns microseconds until the next call; < 0: none is needed. */
static int64_t pours_go_on(void)
{
	if (!f.per_second || !f.peer_kind.room)
		return -1;
	for (unsigned i = 0; i < f.width && pour_allowance() > 0; i++, f.next = (f.next + 1) % f.width) {
		struct peer *p = &f.peer[f.next];

		if (p->fd >= 0 && !p->full && !buf_length(&p->out))
			flood_pours(p);
	}
	return SEC / f.per_second;
}

static int64_t flood_tick(void)
{
	int64_t now = gen_clock(), may;

	if (!f.going)
		return -1;
	if (f.vacant_n == 0)
		return pours_go_on();
	may = allowance(now);
	for (int i = 0; i < PER_TURN && i < may && f.vacant_n; i++)
		flood_dials();
	if (!f.vacant_n)
		return pours_go_on();
	return may > 0 ? 0 : SEC / f.per_second;
}

/* --- commands ------------------------------------------------------------------------------------------------------ */

static void flood_begins(void)
{
	f.going = true;
	f.begun_us = gen_clock();
	f.dialled = f.closed = f.refused = f.poured = 0;
	gen.bytes_in = gen.bytes_out = 0;
	f.vacant_n = 0;
	for (unsigned i = f.width; i-- > 0;)
		f.vacant[f.vacant_n++] = i;
	gen_tell("going");
}

static void flood_ends(void)
{
	f.going = false;
	gen_tell("flood us=%lld dialled=%llu closed=%llu refused=%llu live=%u poured=%llu bytes_in=%llu bytes_out=%llu", (long long)(gen_clock() - f.begun_us),
		 (unsigned long long)f.dialled, (unsigned long long)f.closed, (unsigned long long)f.refused, f.live,
		 (unsigned long long)f.poured, (unsigned long long)gen.bytes_in, (unsigned long long)gen.bytes_out);
	for (unsigned i = 0; i < f.width; i++)
		if (f.peer[i].kind)
			peer_close(&f.peer[i]);
	f.live = 0;
}

static void flood_command(const char *word)
{
	if (strcmp(word, "go") == 0)
		flood_begins();
	else if (strcmp(word, "stop") == 0)
		flood_ends();
	else
		errx(2, "unknown command: %s", word);
}

static void flood_prepare(void)
{
	f.peer_kind = (struct peer_kind){.line = flood_line, .ended = flood_ended};
	if (strcmp(f.kind, "garbage") == 0)
		garbage();
	else if (strcmp(f.kind, "greedy") == 0)
		requests();
	else if (strcmp(f.kind, "deaf") == 0)
		questions();
	else if (strcmp(f.kind, "crowd") != 0 && !churns())
		errx(2, "unknown kind: %s", f.kind);
	if (buf_length(&f.pour)) {
		f.peer_kind.room = flood_pours;
		f.peer_kind.line = NULL;
	}
	f.peer_kind.deaf = strcmp(f.kind, "deaf") == 0;
}

void flood_main(int argc, char **argv)
{
	f.kind = argv[1];
	f.width = (unsigned)atoi(argv[2]);
	f.per_second = argc > 3 ? atoi(argv[3]) : 0;
	f.peer = mem_alloc(f.width * sizeof(*f.peer));
	f.vacant = mem_alloc((f.width + 1) * sizeof(*f.vacant));
	buf_init(&f.pour);
	flood_prepare();
	for (unsigned i = 0; i < f.width; i++)
		f.peer[i].fd = -1;
	gen_run(argv[0], flood_command, flood_tick);
}
