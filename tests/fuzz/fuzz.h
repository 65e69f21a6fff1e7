/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fuzzers have in common. A broken promise ends the process, which is how libFuzzer is told. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROMISE(condition)                                                                                                       \
	do {                                                                                                                     \
		if (!(condition)) {                                                                                              \
			fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition);                          \
			abort();                                                                                                 \
		}                                                                                                                \
	} while (0)

#endif
