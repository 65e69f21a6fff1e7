/* SPDX-License-Identifier: BSD-2-Clause */
/* A sink that keeps what it was told, for tests of the upstream. It fails the test when a call is answered twice. */
#ifndef UNIT_ANSWERS_H
#define UNIT_ANSWERS_H

#include "daemon/core/event.h"

struct told {
	uint64_t call;
	unsigned node;
	enum answer_class class;
	char code;
	int64_t server_us, fence, pttl_ms;
	char holder[MARKER_MAX + 1], text[512];
	bool probed;
	char marker[MARKER_MAX + 1], run_id[64], role[16];
};

struct answers {
	struct told *item; /* in the order in which they came */
	unsigned count, cap;
	bool many; /* ids are used again: they are not compared */
};

void answers_add(void *answers, const struct answer *answer);
const struct told *answers_find(const struct answers *a, uint64_t call); /* NULL: not yet */
void answers_release(struct answers *a);

/* Fails the test unless the call was answered so. */
void answers_check(const struct answers *a, uint64_t call, enum answer_class class, char code);

#endif
