/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats by hand, since every call passes here; orders and forms are those of Redis. */
#include "tests/sim/redis/wire.h"
#include "daemon/base/mem.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define HEAD_MAX 24 /* room for a type, an integer, a line end */

/* How many digits the number has. */
static size_t digits_count(uint64_t n)
{
	static const uint64_t power[] = {
		0, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, UINT64_C(10000000000), UINT64_C(100000000000),
		UINT64_C(1000000000000), UINT64_C(10000000000000), UINT64_C(100000000000000), UINT64_C(1000000000000000),
		UINT64_C(10000000000000000), UINT64_C(100000000000000000), UINT64_C(1000000000000000000), UINT64_C(10000000000000000000)};
	size_t least = (size_t)(64 - __builtin_clzll(n | 1)) * 1233 >> 12; /* 1233 / 4096: a little more than the logarithm of 2 */

	return least + (n >= power[least]);
}

size_t wire_digits(int64_t n, char *at)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354"
				    "555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
	uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;
	size_t sign = n < 0, i = sign + digits_count(rest), length = i;

	if (sign)
		*at = '-';
	for (; rest >= 100; rest /= 100)
		memcpy(at + (i -= 2), pairs + 2 * (rest % 100), 2);
	if (rest >= 10)
		memcpy(at + i - 2, pairs + 2 * rest, 2);
	else
		at[i - 1] = (char)('0' + rest);
	return length;
}

size_t wire_decimal(double n, char *at)
{
	if (fabs(n) < 1e17 && n == floor(n) && (n != 0 || !signbit(n)))
		return wire_digits((int64_t)n, at);
	return (size_t)snprintf(at, DECIMAL_MAX, "%.17g", n);
}

/* Writes the head, for which there is room, and returns its length. */
static size_t head_put(char *at, char type, int64_t n)
{
	size_t k = 1;

	at[0] = type;
	k += wire_digits(n, at + k);
	at[k++] = '\r';
	at[k++] = '\n';
	return k;
}

static void head_append(struct buf *out, char type, int64_t n)
{
	buf_commit(out, head_put(buf_reserve(out, HEAD_MAX), type, n));
}

void wire_line(struct buf *out, char type, struct span text)
{
	char *at = buf_reserve(out, text.n + 3);
	size_t i;

	*at++ = type;
	for (i = 0; i < text.n; i++)
		*at++ = text.p[i] == '\r' || text.p[i] == '\n' ? ' ' : text.p[i];
	*at++ = '\r';
	*at++ = '\n';
	buf_commit(out, text.n + 3);
}

void wire_status(struct buf *out, const char *text)
{
	wire_line(out, '+', span_of(text));
}

void wire_error(struct buf *out, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	wire_line(out, '-', span_of(text));
}

void wire_number(struct buf *out, int64_t n)
{
	head_append(out, ':', n);
}

void wire_bulk(struct buf *out, struct span text)
{
	char *at = buf_reserve(out, HEAD_MAX + text.n + 2);
	size_t head = head_put(at, '$', (int64_t)text.n);

	if (text.n)
		memcpy(at + head, text.p, text.n);
	memcpy(at + head + text.n, "\r\n", 2);
	buf_commit(out, head + text.n + 2);
}

void wire_double(struct buf *out, double n)
{
	char text[64];

	if (isinf(n))
		snprintf(text, sizeof(text), n > 0 ? "inf" : "-inf");
	else
		text[wire_decimal(n, text)] = '\0';
	wire_bulk(out, span_of(text));
}

void wire_nil(struct buf *out)
{
	buf_append(out, "$-1\r\n", 5);
}

void wire_array(struct buf *out, size_t n)
{
	head_append(out, '*', (int64_t)n);
}

bool wire_integer(struct span text, int64_t *ret_n)
{
	size_t i = text.n && text.p[0] == '-', first = i;
	int64_t n = 0;

	if (text.n == i || text.n > 20 || (text.p[i] == '0' && text.n > 1))
		return false;
	for (; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
		if (i < 18)
			n = 10 * n - (text.p[i] - '0');
		else if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, text.p[i] - '0', &n))
			return false;
	}
	if (!first && n == INT64_MIN)
		return false;
	*ret_n = first ? n : -n;
	return true;
}

void wire_cut(struct buf *out, size_t length)
{
	out->end = out->start + length;
}

/* Takes a head like "*12\r\n" off the front. There are no more than nine digits. */
static inline bool head_take(struct span *bytes, char type, size_t *ret_n)
{
	const char *at = bytes->p + 1, *end = bytes->p + (bytes->n < 12 ? bytes->n : 12);
	size_t n = 0;

	if (bytes->n < 4 || bytes->p[0] != type || (at[0] == '0' && at[1] != '\r'))
		return false;
	if (at[1] == '\r' && at[2] == '\n' && at[0] >= '0' && at[0] <= '9') { /* most numbers have one digit */
		*ret_n = (size_t)(at[0] - '0');
		bytes->p += 4;
		bytes->n -= 4;
		return true;
	}
	for (; at < end && *at >= '0' && *at <= '9'; at++)
		n = n * 10 + (size_t)(*at - '0');
	if (at == bytes->p + 1 || at + 2 > bytes->p + bytes->n || at[0] != '\r' || at[1] != '\n')
		return false;
	bytes->n -= (size_t)(at + 2 - bytes->p);
	bytes->p = at + 2;
	*ret_n = n;
	return true;
}

static void words_add(struct words *w, struct span word)
{
	if (w->count == w->cap) {
		w->cap = w->cap ? 2 * w->cap : 64;
		w->item = mem_grow(w->item, w->cap, sizeof(*w->item));
	}
	w->item[w->count++] = word;
}

bool wire_words(struct span bytes, struct words *ret_words)
{
	size_t count, n;

	ret_words->count = 0;
	if (!head_take(&bytes, '*', &count))
		return false;
	while (count--) {
		if (!head_take(&bytes, '$', &n) || bytes.n < n + 2)
			return false;
		words_add(ret_words, (struct span){bytes.p, n});
		bytes.p += n + 2;
		bytes.n -= n + 2;
	}
	return bytes.n == 0;
}
