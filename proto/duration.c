/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Durations as people write them, in microseconds: 500us 250ms 1.5s 2m 1h. Uses exact integers, never floating-point numbers.
 */
#include "proto/proto.h"
#include "proto/text.h"

#include <stdio.h>

#define FRACTION_DIGITS 9

/* Largest first: duration_format takes the first unit that divides the duration. */
static const struct {
	const char *word;
	int64_t us;
} unit_table[] = {
	{"h", INT64_C(3600000000)}, {"m", 60000000}, {"s", 1000000}, {"ms", 1000}, {"us", 1},
};
#define UNITS (sizeof(unit_table) / sizeof(unit_table[0]))

static int64_t unit_find(struct span text)
{
	for (size_t i = 0; i < UNITS; i++)
		if (span_equal(text, span_of(unit_table[i].word)))
			return unit_table[i].us;
	return 0;
}

/* Uses nine digits of a fraction and ignores the others. 3.6e9 us times 1e9 fits an int64_t. */
static int64_t fraction_us(struct span text, int64_t unit)
{
	int64_t number = 0, scale = 1;

	for (size_t i = 0; i < text.n && i < FRACTION_DIGITS; i++) {
		number = number * 10 + (text.p[i] - '0');
		scale *= 10;
	}
	return unit * number / scale;
}

static int64_t duration_sum(struct span whole, struct span fraction, int64_t unit)
{
	int64_t number = count_parse(whole, DURATION_MAX / unit);

	if (number < 0)
		return DURATION_TOO_LARGE;
	number = number * unit + fraction_us(fraction, unit);
	return number <= DURATION_MAX ? number : DURATION_TOO_LARGE;
}

int64_t duration_parse(struct span text)
{
	struct span whole = {text.p, digits(text, 0)}, fraction = {text.p, 0}, word;
	size_t at = whole.n;
	int64_t unit;

	if (whole.n == 0)
		return DURATION_MALFORMED;
	if (at < text.n && text.p[at] == '.') {
		fraction = (struct span){text.p + at + 1, digits(text, at + 1)};
		if (fraction.n == 0)
			return DURATION_MALFORMED;
		at += 1 + fraction.n;
	}
	word = (struct span){text.p + at, text.n - at};
	if (word.n == 0)
		return span_equal(text, SPAN("0")) ? 0 : DURATION_NO_UNIT;
	unit = unit_find(word);
	return unit ? duration_sum(whole, fraction, unit) : DURATION_MALFORMED;
}

size_t duration_format(int64_t us, char *out)
{
	size_t i = 0;

	if (us == 0)
		i = 2; /* "0s" */
	while (us % unit_table[i].us)
		i++;
	return (size_t)snprintf(out, 32, "%lld%s", (long long)(us / unit_table[i].us), unit_table[i].word);
}
