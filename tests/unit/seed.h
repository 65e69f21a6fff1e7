/* SPDX-License-Identifier: BSD-2-Clause */
/* The seed of a test that draws at random. */
#ifndef UNIT_SEED_H
#define UNIT_SEED_H

#include <stdint.h>

/* That of REDLOCKD_SEED, else a new one. It is printed at once, under the name of the test, so that it is known after a crash. */
uint64_t seed_pick(const char *test);

#endif
