/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a store does not serve: the daemon finds it once, LIST nodes says it in one word, and doctor knows what to do about it. */
#ifndef PROTO_DEFECT_H
#define PROTO_DEFECT_H

enum defect {
	DEFECT_NONE,
#define DEFECT(id, word, check, grade, advice) DEFECT_##id,
#include "proto/defect.def"
#undef DEFECT
	DEFECT_N
};

enum defect_grade { DEFECT_WARN, DEFECT_FAIL };

struct defect_row {
	const char *word, *check;
	enum defect_grade grade;
	const char *advice;
};

extern const struct defect_row defect_table[DEFECT_N]; /* that of DEFECT_NONE is empty */

/* The row of that word; DEFECT_OTHER for one that is unknown. */
enum defect defect_of_word(const char *word);

#endif
