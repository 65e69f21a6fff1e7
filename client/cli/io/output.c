/* SPDX-License-Identifier: BSD-2-Clause */
/* See output.h. */
#include "client/cli/io/output.h"
#include "proto/json.h"
#include "proto/span.h"
#include "proto/text.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* --- lines for a terminal, piece by piece, measured in columns ------------------------------------------------------------ */

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

/* --- standard error --- */

bool stderr_is_ready(void)
{
	struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&fd, 1, 0) > 0;
}

void complain(const char *format, ...)
{
	const struct timespec at_once = {0, 0};
	sigset_t pipe, before;
	char line[1200];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigprocmask(SIG_BLOCK, &pipe, &before);
	fprintf(stderr, "redlock: %s\n", line);
	if (sigismember(&before, SIGPIPE))
		return;
	sigtimedwait(&pipe, NULL, &at_once);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* --- standard output --- */

bool output_flush(void)
{
	static int error; /* the errno of the first write that failed, which stdio does not keep */

	errno = 0;
	if ((fflush(stdout) || ferror(stdout)) && !error)
		error = errno ? errno : EIO;
	errno = error;
	return !error;
}

int output_end(int code)
{
	if (output_flush())
		return code;
	complain("cannot write to standard output: %s", strerror(errno));
	return EX_UNAVAILABLE;
}

/* --- fields --- */

struct span field_of(const struct redlock_line *line, const char *field)
{
	struct redlock_bytes value = redlock_line_find(line, field);

	return (struct span){value.p, value.n};
}

bool field_is(const struct redlock_line *line, const char *field, const char *text)
{
	struct span value = field_of(line, field);

	return value.p && span_equal(value, span_of(text));
}

size_t field_show(const struct redlock_line *line, const char *field, char *out, size_t size)
{
	return shown_text(field_of(line, field), out, size);
}

bool field_is_duration(struct span field)
{
	return field.n > 3 && !memcmp(field.p + field.n - 3, "_ms", 3);
}

const char *shown(const char *name, char out[SHOWN_BYTES])
{
	shown_text(span_of(name), out, SHOWN_BYTES);
	return out;
}

const char *rtt_text(int64_t us, char out[RTT_BYTES])
{
	snprintf(out, RTT_BYTES, "%" PRId64 ".%02d ms", us / 1000, (int)(us % 1000 / 10));
	return out;
}

/* --- JSON --- */

static void put(void *to, const char *p, size_t n)
{
	fwrite(p, 1, n, to);
}

void json_print_text(const char *before, const char *text)
{
	fputs(before, stdout);
	json_text(put, stdout, span_of(text));
}

static void print_member(bool *first, struct span name, struct redlock_bytes value)
{
	fputs(*first ? "" : ",", stdout);
	*first = false;
	json_member(put, stdout, name, (struct span){value.p, value.n});
}

void json_print_line(const struct redlock_line *line, bool with_words)
{
	struct redlock_bytes code = redlock_line_code(line), reason = redlock_line_reason(line);
	bool first = true;

	putchar('{');
	if (with_words)
		print_member(&first, SPAN("reply"), redlock_line_word(line));
	if (with_words && code.n)
		print_member(&first, SPAN("code"), code);
	if (with_words && reason.n) /* ERR has text instead of fields */
		print_member(&first, SPAN("text"), reason);
	for (size_t i = 0; i < redlock_line_fields(line); i++) {
		struct redlock_bytes name = redlock_line_name(line, i);

		print_member(&first, (struct span){name.p, name.n}, redlock_line_value(line, i));
	}
	puts("}");
}
