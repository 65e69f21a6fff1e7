/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts, sizes and durations.
 */
#include "conf/number.h"

#include <stddef.h>
#include <string.h>

#define TEN_YEARS_US (INT64_C(10) * 366 * 24 * 3600 * 1000000)

static const struct {
	const char *word;
	int64_t us;
} unit_table[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}, {"m", 60000000}, {"h", INT64_C(3600000000)}};

/* Reads the digits at *p, and moves *p past them. */
static enum number_outcome digits_read(const char **p, uint64_t *ret_number)
{
	const char *at = *p;
	uint64_t number = 0;

	if (*at == '-')
		return NUMBER_NEGATIVE;
	if (*at < '0' || *at > '9' || (*at == '0' && at[1] >= '0' && at[1] <= '9'))
		return NUMBER_MALFORMED;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(number, 10u, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
			return NUMBER_LARGE;
	*p = at;
	*ret_number = number;
	return NUMBER_OK;
}

enum number_outcome number_count(const char *text, uint64_t *ret_count)
{
	uint64_t count;
	enum number_outcome outcome = digits_read(&text, &count);

	if (outcome)
		return outcome;
	if (*text)
		return NUMBER_MALFORMED;
	*ret_count = count;
	return NUMBER_OK;
}

enum number_outcome number_size(const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "kmg";
	uint64_t size;
	enum number_outcome outcome = digits_read(&text, &size);
	const char *unit = NULL;

	if (outcome)
		return outcome;
	if (*text) {
		unit = strchr(units, *text >= 'A' && *text <= 'Z' ? *text + ('a' - 'A') : *text);
		if (!unit || text[1])
			return NUMBER_MALFORMED;
	}
	if (unit && __builtin_mul_overflow(size, UINT64_C(1) << (10 * (unit - units + 1)), &size))
		return NUMBER_LARGE;
	*ret_bytes = size;
	return NUMBER_OK;
}

/* Reads a fraction like ".5" as millionths of a unit; 0 if there is none. More than six digits are malformed. */
static enum number_outcome fraction_read(const char **p, int64_t *ret_millionths)
{
	const char *at = *p;
	int64_t millionths = 0, place = 100000;

	*ret_millionths = 0;
	if (*at != '.')
		return NUMBER_OK;
	if (*++at < '0' || *at > '9')
		return NUMBER_MALFORMED;
	for (; *at >= '0' && *at <= '9'; at++, place /= 10) {
		if (!place)
			return NUMBER_MALFORMED;
		millionths += place * (*at - '0');
	}
	*p = at;
	*ret_millionths = millionths;
	return NUMBER_OK;
}

static int64_t unit_find(const char *word)
{
	for (size_t i = 0; i < sizeof(unit_table) / sizeof(unit_table[0]); i++)
		if (!strcmp(unit_table[i].word, word))
			return unit_table[i].us;
	return 0;
}

enum number_outcome number_duration(const char *text, int64_t *ret_us)
{
	uint64_t whole;
	int64_t millionths, unit;
	enum number_outcome outcome = digits_read(&text, &whole);

	if (!outcome)
		outcome = fraction_read(&text, &millionths);
	if (outcome)
		return outcome;
	if (!*text)
		return NUMBER_UNIT_MISSING;
	unit = unit_find(text);
	if (!unit || millionths * (unit % 1000000) % 1000000)
		return NUMBER_MALFORMED;
	if (whole > (uint64_t)(TEN_YEARS_US / unit))
		return NUMBER_LARGE;
	/* A millionth of a unit of a second or more is a whole number of microseconds. */
	*ret_us = (int64_t)whole * unit + (unit >= 1000000 ? millionths * (unit / 1000000) : millionths * unit / 1000000);
	return NUMBER_OK;
}
