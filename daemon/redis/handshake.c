/* SPDX-License-Identifier: BSD-2-Clause */
/* hiredis formats these commands, because they are rare. Pure. */
#include "daemon/redis/handshake.h"
#include "daemon/base/mem.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SECRET_PREFIX 8 /* servers cut texts that they quote, so the first bytes of a secret count as the secret */

void handshake_put(struct buf *out, const char *format, ...)
{
	char *text = NULL;
	va_list values;
	int n;

	va_start(values, format);
	n = redisvFormatCommand(&text, format, values);
	va_end(values);
	if (n < 0)
		mem_exhausted();
	buf_append(out, text, (size_t)n);
	free(text);
}

void handshake_auth(struct buf *out, const char *user, const char *password)
{
	if (user)
		handshake_put(out, "AUTH %s %s", user, password);
	else
		handshake_put(out, "AUTH %s", password);
}

static bool text_betrays(struct span text, const char *secret)
{
	size_t n = secret ? strnlen(secret, SECRET_PREFIX) : 0;

	return n && memmem(text.p, text.n, secret, n);
}

static size_t first_word(struct span text)
{
	const char *blank = text.n ? memchr(text.p, ' ', text.n) : NULL;

	return blank ? (size_t)(blank - text.p) : text.n;
}

void handshake_reason(struct span text, const char *secret, char *ret_reason, size_t size)
{
	size_t word = first_word(text), i;

	if (text_betrays((struct span){text.p + word, text.n - word}, secret) ||
	    text_betrays((struct span){text.p, word}, secret)) {
		/* An error code is in capitals. Any other first word may be the secret itself. */
		for (i = 0; i < word && text.p[i] >= 'A' && text.p[i] <= 'Z'; i++)
			;
		(void)snprintf(ret_reason, size, "%.*s (the text is withheld: it repeats the password)",
			       i == word && word < 24 ? (int)word : 0, text.p);
		return;
	}
	if (text.n >= size)
		text.n = size - 1;
	for (i = 0; i < text.n; i++)
		ret_reason[i] = text.p[i] >= ' ' && text.p[i] < 127 ? text.p[i] : '?';
	ret_reason[i] = 0;
}
