/* SPDX-License-Identifier: BSD-2-Clause */
/* See totals.h. */
#include "daemon/web/totals.h"

#include "daemon/web/notation.h"

#include <stdio.h>
#include <string.h>

/* "1.25" is 1250000: values are whole, or have at most six digits behind the point. */
static int64_t millionths_of(struct span value, bool *ret_whole)
{
	bool negative = value.n > 0 && value.p[0] == '-', fraction = false;
	int64_t n = 0;
	int scale = 6;

	for (size_t i = negative; i < value.n && scale > 0; i++) {
		if (value.p[i] == '.' && !fraction) {
			fraction = true;
			continue;
		}
		if (value.p[i] < '0' || value.p[i] > '9' || n > INT64_MAX / 10 - 1)
			break;
		n = 10 * n + (value.p[i] - '0');
		scale -= fraction;
	}
	for (; scale > 0; scale--)
		n = n > INT64_MAX / 10 ? INT64_MAX : 10 * n;
	*ret_whole = !fraction;
	return negative ? -n : n;
}

static bool is_part_of_histogram(struct span name)
{
	static const char *const part[] = {"_bucket", "_sum", "_count"};

	for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++) {
		size_t n = strlen(part[i]);

		if (name.n > n && !memcmp(name.p + name.n - n, part[i], n))
			return true;
	}
	return false;
}

void totals_end(struct totals *t, struct buf *out)
{
	int64_t n = t->millionths < 0 ? -t->millionths : t->millionths;

	if (!t->name[0])
		return;
	notation_comma(out);
	notation_text(out, span_of(t->name));
	buf_printf(out, ":%s%lld", t->millionths < 0 ? "-" : "", (long long)n / 1000000);
	if (!t->whole)
		buf_printf(out, ".%06lld", (long long)n % 1000000);
	t->name[0] = '\0';
}

void totals_add(struct totals *t, struct buf *out, const struct reply_line *row)
{
	struct span name = reply_find(row, "metric");
	bool whole;
	int64_t n = millionths_of(reply_find(row, "value"), &whole);

	if (name.n == 0 || name.n >= sizeof(t->name) || is_part_of_histogram(name))
		return;
	if (!span_equal(span_of(t->name), name)) {
		totals_end(t, out);
		memcpy(t->name, name.p, name.n);
		t->name[name.n] = '\0';
		t->millionths = 0;
		t->whole = true;
	}
	t->millionths += n;
	t->whole &= whole;
}
