/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output by which two builds of the core are compared: a line for every event that reaches the service and for every effect of it. The linker puts
 * effects.c between the service and its callers, so the simulator and the fuzzers need not know of it.
 */
#ifndef TESTS_SAME_H
#define TESTS_SAME_H

/* The lines up to the next call belong to this item: a seed, or an input. */
void same_begin(const char *kind, const char *item);

#endif
