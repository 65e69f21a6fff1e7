/* SPDX-License-Identifier: BSD-2-Clause */
/* The story of fuzz_session, and what its clients say: a grammar makes the lines from the bytes of the input. */
#ifndef FUZZ_STORY_H
#define FUZZ_STORY_H

#include "tests/fixture/lone_service.h"
#include "tests/fuzz/account.h"

struct story {
	struct lone_service lone;
	struct account account;
	uint64_t generation[CLIENTS], opened;
	uint64_t going; /* the session whose connection is just going */
	bool tell;
	const uint8_t *at, *end; /* what is left of the input */
	char line[LINE_MAX_DEFAULT];
	size_t n;
};

#define STORY_NAMES 8
extern const char *const story_names[STORY_NAMES];

unsigned story_byte(struct story *s); /* the next byte of the input; 0: none is left */
/* Makes a line of this kind, one of 22. */
void story_line(struct story *s, unsigned what);

#endif
