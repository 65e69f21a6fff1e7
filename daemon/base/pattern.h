/* SPDX-License-Identifier: BSD-2-Clause */
/* Patterns of names, in which * stands for any bytes, also for none. */
#ifndef BASE_PATTERN_H
#define BASE_PATTERN_H

#include "proto/span.h"

#include <stdbool.h>

bool pattern_matches(const char *pattern, struct span text);

#endif
