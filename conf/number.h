/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers as the configuration writes them. Pure; internal to conf.
 */
#ifndef CONF_NUMBER_H
#define CONF_NUMBER_H

#include <stdint.h>

enum number_outcome {
	NUMBER_OK = 0,
	NUMBER_MALFORMED,
	NUMBER_UNIT_MISSING, /* a bare number where a duration belongs */
	NUMBER_NEGATIVE,
	NUMBER_LARGE, /* too large */
};

/* "10000": digits, no leading zero. */
enum number_outcome number_count(const char *text, uint64_t *ret_count);
/* "512", "8k", "4m", "1g": binary, bytes. */
enum number_outcome number_size(const char *text, uint64_t *ret_bytes);
/* "250ms", "1.5s", "2m": us, ms, s, m or h; whole microseconds, at most ten years. */
enum number_outcome number_duration(const char *text, int64_t *ret_us);

#endif
