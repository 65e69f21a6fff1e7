/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients as they should be: each takes a name of its own, frees it, thinks (half to one and a half times THINK_MS), and begins anew. begin: forget what was
 * measured. end: the latencies of LOCK and UNLOCK since.
 */
#include "tests/load/gen.h"
#include "daemon/base/mem.h"
#include "daemon/base/rng.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

struct person {
	struct peer peer;
	bool holds;
	int64_t asked_us; /* 0: thinks */
	int64_t due_us;
};

static struct {
	struct person *person;
	unsigned n;
	int64_t think_us;
	const char *prefix;
	struct rng rng;
	struct samples took;
	uint64_t wrong;
} m;

static void person_thinks(struct person *c)
{
	c->asked_us = 0;
	c->due_us = gen_clock() + m.think_us / 2 + (int64_t)rng_below(&m.rng, (uint64_t)m.think_us + 1);
}

static void person_asks(struct person *c)
{
	if (c->holds)
		peer_printf(&c->peer, "UNLOCK %s%u\n", m.prefix, c->peer.number);
	else
		peer_printf(&c->peer, "LOCK %s%u wait=5s\n", m.prefix, c->peer.number);
	c->asked_us = gen_clock();
	peer_flush(&c->peer);
}

static void mix_line(struct peer *p, char *line, size_t n)
{
	struct person *c = (struct person *)(void *)p;

	(void)n;
	if (line[0] == '!') {
		m.wrong++;
		return;
	}
	if (!c->asked_us) { /* an answer that nobody asked for */
		m.wrong++;
		return;
	}
	samples_add(&m.took, gen_clock() - c->asked_us);
	m.wrong += strncmp(line, "OK ", 3) != 0;
	c->holds = !c->holds;
	if (c->holds)
		person_asks(c);
	else
		person_thinks(c);
}

static void mix_ended(struct peer *p)
{
	errx(1, "client %u was closed", p->number);
}

static const struct peer_kind person_kind = {.line = mix_line, .ended = mix_ended};

/* Clients whose time has come ask. Returns microseconds until the next one is due; < 0: none waits for a time. */
static int64_t mix_tick(void)
{
	int64_t now = gen_clock(), next = INT64_MAX;

	for (unsigned i = 0; i < m.n; i++) {
		struct person *c = &m.person[i];

		if (c->peer.kind && !c->asked_us && c->due_us <= now)
			person_asks(c);
		if (c->peer.kind && !c->asked_us && c->due_us < next)
			next = c->due_us;
	}
	return next == INT64_MAX ? -1 : next > now ? next - now : 0;
}

static void mix_command(const char *word)
{
	if (strcmp(word, "connect") == 0) {
		for (unsigned i = 0; i < m.n; i++) {
			peer_dial(&m.person[i].peer, &person_kind, i);
			person_thinks(&m.person[i]);
		}
		gen_tell("connected n=%u", m.n);
	} else if (strcmp(word, "begin") == 0) {
		samples_clear(&m.took);
		m.wrong = 0;
	} else if (strcmp(word, "end") == 0) {
		gen_tell("mix n=%zu wrong=%llu p50_us=%u p90_us=%u p99_us=%u max_us=%u", m.took.n, (unsigned long long)m.wrong,
			 samples_at(&m.took, 0.5), samples_at(&m.took, 0.9), samples_at(&m.took, 0.99), samples_at(&m.took, 1));
	} else {
		errx(2, "unknown command: %s", word);
	}
}

void mix_main(int argc, char **argv)
{
	uint64_t key[2] = {0, strtoull(argv[4], NULL, 10)};

	(void)argc;
	m.n = (unsigned)atoi(argv[1]);
	m.think_us = atoi(argv[2]) * MSEC;
	m.prefix = argv[3];
	m.person = mem_alloc(m.n * sizeof(*m.person));
	rng_init(&m.rng, key);
	gen_run(argv[0], mix_command, mix_tick);
}
