/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that have several requests in flight: LOCK and UNLOCK of a name of their own, again and again. What is counted are requests. */
#include "tests/bench/drive/clients.h"
#include "daemon/base/mem.h"

#include <err.h>
#include <stdio.h>
#include <string.h>

struct source {
	struct peer peer;
	uint64_t said, answered;
	char text[2][64]; /* LOCK, UNLOCK */
	size_t n[2];
};

static struct {
	const struct options *o;
	struct source *source;
	bool resting;
	unsigned busy; /* sources with requests in flight */
	uint64_t answered;
	int64_t begun_us;
} t;

static void source_says(struct source *s)
{
	peer_say(&s->peer, s->text[s->said % 2], s->n[s->said % 2]);
	s->said++;
}

static void stream_line(struct peer *p, char *line, size_t n)
{
	struct source *s = (struct source *)(void *)p;

	(void)n;
	if (line[0] == '!')
		return;
	if (strncmp(line, "OK ", 3) != 0)
		errx(1, "client %u was answered: %s", p->number, line);
	t.answered++;
	s->answered++;
	if (!t.resting || s->said % 2)
		source_says(s);
	if (s->said == s->answered && --t.busy == 0)
		gen_tell("resting");
}

static void stream_ended(struct peer *p)
{
	errx(1, "client %u was closed", p->number);
}

static const struct peer_kind kind = {.line = stream_line, .ended = stream_ended};

static void stream_connect(void)
{
	for (unsigned i = 0; i < t.o->clients; i++) {
		struct source *s = &t.source[i];

		peer_dial(&s->peer, &kind, i);
		s->n[0] = (size_t)snprintf(s->text[0], sizeof(s->text[0]), "LOCK %s%u\n", t.o->prefix, i);
		s->n[1] = (size_t)snprintf(s->text[1], sizeof(s->text[1]), "UNLOCK %s%u\n", t.o->prefix, i);
	}
	gen_tell("connected n=%u", t.o->clients);
}

static void stream_go(void)
{
	t.resting = false;
	t.busy = t.o->clients;
	for (unsigned i = 0; i < t.o->clients; i++) {
		for (unsigned k = 0; k < t.o->depth; k++)
			source_says(&t.source[i]);
		peer_flush(&t.source[i].peer);
	}
}

static void stream_command(const char *word)
{
	if (strcmp(word, "connect") == 0) {
		stream_connect();
	} else if (strcmp(word, "go") == 0) {
		stream_go();
	} else if (strcmp(word, "rest") == 0) {
		t.resting = true;
	} else if (strcmp(word, "begin") == 0) {
		t.answered = 0;
		t.begun_us = gen_clock();
	} else if (strcmp(word, "end") == 0) {
		gen_tell("figures n=%llu us=%lld", (unsigned long long)t.answered, (long long)(gen_clock() - t.begun_us));
	} else {
		errx(2, "unknown command: %s", word);
	}
}

void stream_run(const char *address, const struct options *o)
{
	t.o = o;
	t.source = mem_alloc(o->clients * sizeof(*t.source));
	gen_run(address, stream_command, NULL);
}
