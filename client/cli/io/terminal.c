/* SPDX-License-Identifier: BSD-2-Clause */
/* See terminal.h. */
#include "client/cli/io/terminal.h"
#include "proto/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

size_t text_add(char *out, size_t at, size_t size, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(out + at, size - at, format, args);
	va_end(args);
	return n < 0 || (size_t)n >= size - at ? size - 1 : at + (size_t)n;
}

locale_t utf8_locale(void)
{
	static locale_t utf8;

	if (!utf8)
		utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	return utf8;
}

static int rune_width(uint32_t rune)
{
	locale_t before = uselocale(utf8_locale());
	int width = wcwidth((wchar_t)rune);

	uselocale(before);
	return width < 0 ? 1 : width;
}

size_t shown_width(struct span text)
{
	size_t width = 0, n;

	for (; text.n; text.p += n, text.n -= n) {
		n = utf8_length(text);
		if (n)
			width += (size_t)rune_width(utf8_rune((struct span){text.p, n}));
		else
			width += ((unsigned char)text.p[0] & 0xc0) != 0x80;
		n = n ? n : 1;
	}
	return width;
}
