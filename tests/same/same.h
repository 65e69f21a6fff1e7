/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What two builds of the core are compared by: every event that reaches the service and every effect that it answers with, a line each. The linker puts
 * effects.c between whoever steps the service and the service itself, so the simulator and the fuzzers need not know of it.
 */
#ifndef TESTS_SAME_H
#define TESTS_SAME_H

/* The lines up to the next of these belong to this item: a seed, or an input. */
void same_begin(const char *kind, const char *item);

#endif
