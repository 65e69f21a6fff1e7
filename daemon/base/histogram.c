/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of histogram.h. */
#include "daemon/base/histogram.h"

#define DECADE(n) 1 * INT64_C(n), 2 * INT64_C(n), 5 * INT64_C(n)

const int64_t histogram_bound_us[HISTOGRAM_BOUNDS + 1] = {
	DECADE(1), DECADE(10), DECADE(100), DECADE(1000), DECADE(10000), DECADE(100000), DECADE(1000000), DECADE(10000000), DECADE(100000000),
	DECADE(1000000000), INT64_C(10000000000), INT64_MAX};

/* The first bound that is not below 2^n. A duration from 2^n up to the next power belongs there or one further. */
const uint8_t histogram_first[64] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11, 12, 13, 14,
	15, 16, 17, 18, 19, 20, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
	29, 30, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31,
	31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31};
