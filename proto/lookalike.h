/* SPDX-License-Identifier: BSD-2-Clause */
/* Characters that word processors, chats and web pages substitute for ASCII ones. People do not see the difference. */
#ifndef PROTO_LOOKALIKE_H
#define PROTO_LOOKALIKE_H

#include <stddef.h>
#include <stdint.h>

/* Returns the character that a code point looks like: '-', '"', '\'' or ' '; 0: none of these. */
static inline char lookalike_of(uint32_t c)
{
	static const struct {
		uint32_t first, last;
		char ascii;
	} range[] = {
		{0xa0, 0xa0, ' '},     {0x2000, 0x200b, ' '}, {0x202f, 0x202f, ' '}, {0x205f, 0x2060, ' '}, {0x3000, 0x3000, ' '}, {0xfeff, 0xfeff, ' '},
		{0x2010, 0x2015, '-'}, {0x2212, 0x2212, '-'}, {0xfe58, 0xfe58, '-'}, {0xfe63, 0xfe63, '-'}, {0xff0d, 0xff0d, '-'}, {0x2018, 0x201b, '\''},
		{0x2039, 0x203a, '\''}, {0xff07, 0xff07, '\''}, {0xab, 0xab, '"'},   {0xbb, 0xbb, '"'},     {0x201c, 0x201f, '"'}, {0xff02, 0xff02, '"'},
	};

	for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++)
		if (c >= range[i].first && c <= range[i].last)
			return range[i].ascii;
	return 0;
}

static inline const char *lookalike_name(char ascii)
{
	return ascii == '-' ? "a hyphen" : ascii == ' ' ? "a blank" : "a quote";
}

#endif
