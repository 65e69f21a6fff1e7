/* SPDX-License-Identifier: BSD-2-Clause */
/* What each test file defines; the Makefile includes it into all of them. */
#ifndef UNIT_SUITES_H
#define UNIT_SUITES_H

#include <check.h>

#define SUITE(noun)              Suite *noun##_suite(void);
#define SUITE_IN_REAL_TIME(noun) SUITE(noun)
#include "tests/unit/suites.def"
#undef SUITE
#undef SUITE_IN_REAL_TIME

#endif
