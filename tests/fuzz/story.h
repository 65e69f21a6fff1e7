/* SPDX-License-Identifier: BSD-2-Clause */
/* The story of fuzz_session, and what its clients say: a grammar makes the lines from the bytes of the input. */
#ifndef FUZZ_STORY_H
#define FUZZ_STORY_H

#include "tests/fixture/lone_service.h"
#include "proto/proto.h"

#define CLIENTS      6
#define GREETED_MOST 16

struct story {
	struct lone_service lone;
	uint64_t generation[CLIENTS];
	bool open[CLIENTS], eof[CLIENTS]; /* eof: its client says nothing more */
	bool tell;
	const uint8_t *at, *end; /* what is left of the input */
	char line[LINE_MAX_DEFAULT];
	size_t n;
	/* What was told, for requests that refer to it: the newest sessions that can be resumed, and the newest fence. */
	struct greeting {
		long long session;
		char secret[TAG_MAX + 1];
	} greeted[GREETED_MOST];
	unsigned greetings;
	long long fence;
};

unsigned story_byte(struct story *s); /* the next byte of the input; 0: none is left */
/* Makes a line of this kind, one of 22. */
void story_line(struct story *s, unsigned what);
/* A client was told this line. */
void story_told(struct story *s, const struct reply_line *line);

#endif
