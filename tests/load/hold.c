/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions that take names and keep them. connect: all sessions, until each was answered once. take: LOCK of every name, WINDOW requests of a session
 * at a time (0: all at once). state: what came since. free: UNLOCK of every name. close: every connection at once.
 */
#include "tests/load/gen.h"
#include "daemon/base/mem.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum phase { IDLE, CONNECTING, TAKING, FREEING };

struct holder {
	struct peer peer;
	unsigned asked; /* requests of the present phase */
};

static struct {
	struct holder *holder;
	unsigned sessions, locks, window;
	const char *wait, *prefix;
	enum phase phase;
	int64_t begun_us;
	uint64_t answered, refused;
	uint64_t held, lost, risk, safe, ended;
	int64_t *asked_us; /* by number of a name */
	struct samples took;
} h;

static void hold_line(struct peer *p, char *line, size_t n);
static void hold_ended(struct peer *p);

static const struct peer_kind holder_kind = {.line = hold_line, .ended = hold_ended};

static uint64_t wanted(void)
{
	return h.phase == CONNECTING ? h.sessions : (uint64_t)h.sessions * h.locks;
}

static void phase_begins(enum phase phase)
{
	h.phase = phase;
	h.answered = h.refused = 0;
	h.begun_us = gen_clock();
	samples_clear(&h.took);
	for (unsigned i = 0; i < h.sessions; i++)
		h.holder[i].asked = 0;
}

static void phase_ends(void)
{
	static const char *const word[] = {[CONNECTING] = "connected", [TAKING] = "taken", [FREEING] = "freed"};

	gen_tell("%s n=%llu refused=%llu us=%lld p50_us=%u p99_us=%u max_us=%u", word[h.phase], (unsigned long long)(h.answered - h.refused),
		 (unsigned long long)h.refused, (long long)(gen_clock() - h.begun_us), samples_at(&h.took, 0.5), samples_at(&h.took, 0.99),
		 samples_at(&h.took, 1));
	h.phase = IDLE;
}

static void hold_ask(struct holder *s)
{
	unsigned number = s->peer.number * h.locks + s->asked++;

	h.asked_us[number] = gen_clock();
	if (h.phase == TAKING)
		peer_printf(&s->peer, "@%u LOCK %s%u wait=%s\n", number, h.prefix, number, h.wait);
	else
		peer_printf(&s->peer, "@%u UNLOCK %s%u\n", number, h.prefix, number);
}

static void hold_push(const char *line)
{
	h.lost += strncmp(line, "! LOST ", 7) == 0;
	h.risk += strncmp(line, "! RISK ", 7) == 0;
	h.safe += strncmp(line, "! SAFE ", 7) == 0;
}

static void hold_refused(const char *line)
{
	if (h.refused++ == 0)
		fprintf(stderr, "refused: %s\n", line);
}

/* "@number OK …" */
static void hold_answer(struct holder *s, const char *line)
{
	char *end;
	unsigned long number = strtoul(line + 1, &end, 10);
	bool ok = strncmp(end, " OK", 3) == 0;

	if (number >= (unsigned long)h.sessions * h.locks)
		errx(1, "strange answer: %s", line);
	samples_add(&h.took, gen_clock() - h.asked_us[number]);
	if (!ok)
		hold_refused(line);
	else if (h.phase == TAKING)
		h.held++;
	else
		h.held--;
	if (s->asked < h.locks) {
		hold_ask(s);
		peer_flush(&s->peer);
	}
}

static void hold_line(struct peer *p, char *line, size_t n)
{
	struct holder *s = (struct holder *)(void *)p;

	(void)n;
	if (line[0] == '!') {
		hold_push(line);
		return;
	}
	if (h.phase == IDLE)
		errx(1, "an answer to nothing: %s", line);
	if (line[0] == '@')
		hold_answer(s, line);
	else if (strcmp(line, "OK") != 0)
		hold_refused(line);
	if (++h.answered == wanted())
		phase_ends();
}

static void hold_ended(struct peer *p)
{
	if (h.ended++ == 0)
		fprintf(stderr, "session %u was closed\n", p->number);
}

static void hold_connect(void)
{
	phase_begins(CONNECTING);
	for (unsigned i = 0; i < h.sessions; i++) {
		peer_dial(&h.holder[i].peer, &holder_kind, i);
		peer_say(&h.holder[i].peer, "PING\n", 5);
		peer_flush(&h.holder[i].peer);
	}
}

static void hold_ask_all(enum phase phase)
{
	unsigned window = h.window && h.window < h.locks ? h.window : h.locks;

	phase_begins(phase);
	for (unsigned i = 0; i < h.sessions; i++) {
		struct holder *s = &h.holder[i];

		while (s->asked < window)
			hold_ask(s);
		peer_flush(&s->peer);
	}
}

static void hold_close(void)
{
	int64_t begun = gen_clock();

	for (unsigned i = 0; i < h.sessions; i++)
		peer_close(&h.holder[i].peer);
	gen_tell("closed n=%u us=%lld", h.sessions, (long long)(gen_clock() - begun));
}

static void hold_command(const char *word)
{
	if (strcmp(word, "connect") == 0)
		hold_connect();
	else if (strcmp(word, "take") == 0)
		hold_ask_all(TAKING);
	else if (strcmp(word, "free") == 0)
		hold_ask_all(FREEING);
	else if (strcmp(word, "close") == 0)
		hold_close();
	else if (strcmp(word, "state") == 0)
		gen_tell("state held=%llu lost=%llu risk=%llu safe=%llu ended=%llu", (unsigned long long)h.held, (unsigned long long)h.lost,
			 (unsigned long long)h.risk, (unsigned long long)h.safe, (unsigned long long)h.ended);
	else
		errx(2, "unknown command: %s", word);
}

void hold_main(int argc, char **argv)
{
	(void)argc;
	h.sessions = (unsigned)atoi(argv[1]);
	h.locks = (unsigned)atoi(argv[2]);
	h.window = (unsigned)atoi(argv[3]);
	h.wait = argv[4];
	h.prefix = argv[5];
	h.holder = mem_alloc(h.sessions * sizeof(*h.holder));
	h.asked_us = mem_alloc((size_t)h.sessions * h.locks * sizeof(*h.asked_us));
	gen_run(argv[0], hold_command, NULL);
}
