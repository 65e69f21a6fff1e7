/* SPDX-License-Identifier: BSD-2-Clause */
/* inputs file … : what a fuzzer makes of each. */
#include "tests/same/same.h"

#include "tests/fuzz/fuzz.h"

#include <string.h>

#define INPUT_MAX (1 << 20)

int main(int argc, char **argv)
{
	static uint8_t bytes[INPUT_MAX];

	for (int i = 1; i < argc; i++) {
		FILE *in = fopen(argv[i], "rb");
		const char *slash = strrchr(argv[i], '/');
		size_t n;

		if (!in) {
			perror(argv[i]);
			return 2;
		}
		n = fread(bytes, 1, sizeof(bytes), in);
		fclose(in);
		same_begin("input", slash ? slash + 1 : argv[i]);
		LLVMFuzzerTestOneInput(bytes, n);
	}
	return 0;
}
