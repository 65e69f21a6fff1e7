/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocates or ends the process. It must never return NULL. mem_exhausted must not allocate. */
#include "daemon/base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

void mem_exhausted(void)
{
	static const char line[] = "redlockd: out of memory\n";

	if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0) {
		/* Nothing more can be done. */
	}
	_exit(EX_OSERR);
}

void *mem_alloc(size_t n)
{
	void *p = calloc(1, n ? n : 1);

	if (!p)
		mem_exhausted();
	return p;
}

void *mem_grow(void *p, size_t count, size_t size)
{
	size_t n;

	if (__builtin_mul_overflow(count, size, &n))
		mem_exhausted();
	p = realloc(p, n ? n : 1);
	if (!p)
		mem_exhausted();
	return p;
}

char *mem_copy(const void *p, size_t n)
{
	char *copy = mem_grow(NULL, n + 1, 1);

	if (n)
		memcpy(copy, p, n);
	copy[n] = '\0';
	return copy;
}

struct span mem_span(struct span text)
{
	return text.n > 0 ? (struct span){mem_copy(text.p, text.n), text.n} : (struct span){0};
}

void mem_span_free(struct span *text)
{
	if (text->n > 0)
		mem_free((void *)(uintptr_t)text->p);
	*text = (struct span){0};
}

void mem_span_set(struct span *text, struct span to)
{
	struct span kept = mem_span(to);

	mem_span_free(text);
	*text = kept;
}

char *mem_text(const char *text)
{
	return text ? mem_copy(text, strlen(text)) : NULL;
}

void mem_wipe(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

bool secret_is(const char *secret, const char *text)
{
	size_t n = strlen(secret), given = strlen(text);
	volatile unsigned char differs = n != given;

	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)(secret[i] ^ text[i < given ? i : given]);
	return !differs;
}

void mem_free(void *p)
{
	free(p);
}
