/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a store does not work. The daemon detects it, LIST nodes shows it as one word, and doctor gives advice about it. */
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

extern const struct defect_row defect_table[DEFECT_N]; /* the row of DEFECT_NONE is empty */

/* Returns the defect with that word; DEFECT_OTHER if the word is not known. */
enum defect defect_of_word(const char *word);

#endif
