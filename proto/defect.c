/* SPDX-License-Identifier: BSD-2-Clause */
/* See defect.h. */
#include "proto/defect.h"

#include <string.h>

const struct defect_row defect_table[DEFECT_N] = {
#define DEFECT(id, word, check, grade, advice) [DEFECT_##id] = {word, check, DEFECT_##grade, advice},
#include "proto/defect.def"
#undef DEFECT
};

enum defect defect_of_word(const char *word)
{
	for (enum defect c = DEFECT_NONE + 1; c < DEFECT_N; c++)
		if (strcmp(defect_table[c].word, word) == 0)
			return c;
	return DEFECT_OTHER;
}
