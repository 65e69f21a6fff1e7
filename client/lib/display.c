/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes text of others safe to show: the name of a lock must not be able to move the cursor.
 */
#include "client/lib/display.h"
#include "proto/text.h"

#include <inttypes.h>
#include <stdio.h>

const char *age_text(int64_t ms, char out[AGE_BYTES])
{
	int64_t s = ms / 1000;

	if (ms < 1000)
		snprintf(out, AGE_BYTES, "%" PRId64 "ms", ms < 0 ? 0 : ms);
	else if (s < 60)
		snprintf(out, AGE_BYTES, "%" PRId64 "s", s);
	else if (s < 3600)
		snprintf(out, AGE_BYTES, "%" PRId64 "m%02ds", s / 60, (int)(s % 60));
	else if (s < 86400)
		snprintf(out, AGE_BYTES, "%" PRId64 "h%02dm", s / 3600, (int)(s / 60 % 60));
	else
		snprintf(out, AGE_BYTES, "%" PRId64 "d%02dh", s / 86400, (int)(s / 3600 % 24));
	return out;
}

/* Returns the bytes of the next character. For a byte that is no character or not visible: 1, and *ret_good is false. text is not empty. */
static size_t character_next(struct span text, bool *ret_good)
{
	unsigned char c = (unsigned char)text.p[0];
	size_t n = c < 0x80 ? 0 : utf8_visible(text);

	*ret_good = n || (c >= 0x20 && c < 0x7f);
	return n ? n : 1;
}

static size_t character_show(struct span text, size_t n, bool good, char out[8])
{
	if (good && text.p[0] != '\\') {
		memcpy(out, text.p, n);
		return n;
	}
	if (good) {
		memcpy(out, "\\\\", 2);
		return 2;
	}
	return (size_t)snprintf(out, 8, "\\x%02x", (unsigned char)text.p[0]);
}

size_t shown_text(struct span text, char *out, size_t size)
{
	size_t at = 0, fits = 0, took, n;
	char one[8];
	bool good;

	for (; text.n; text.p += took, text.n -= took) {
		took = character_next(text, &good);
		n = character_show(text, took, good, one);
		if (at + n >= size) {
			memcpy(out + fits, "...", 3);
			at = fits + 3;
			break;
		}
		memcpy(out + at, one, n);
		at += n;
		if (at + 3 < size)
			fits = at;
	}
	out[at] = '\0';
	return at;
}
