/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes each event as one line with one call. It must never wait for the reader: a terminal says that it is writable while it has room for
 * a part of a line only, and a write then waits for the rest. No value may forge a line: an unquoted control byte becomes '?'. A line that is too
 * long is cut.
 */
#include "daemon/base/log.h"
#include "daemon/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

static const char *const level_name[] = {"error", "warn", "notice", "info", "debug"};

static enum log_level current = LOG_NOTICE;
static bool to_journal;
static int sink = STDERR_FILENO; /* or our own descriptor of the terminal or pipe at stderr */
static bool sink_is_socket;
static bool cut;             /* sink took only the beginning of a line: the next line begins with a line feed */
static unsigned long missed; /* lines that were dropped or cut */

/* systemd.exec(5): JOURNAL_STREAM is "device:inode" of the stream. A process may inherit it although its stderr goes elsewhere. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	/* NOLINTNEXTLINE(cert-err34-c): systemd writes it; numbers that match no stream are ignored */
	if (!stream || sscanf(stream, "%llu:%llu", &device, &inode) != 2 || fstat(STDERR_FILENO, &st))
		return false;
	return st.st_dev == device && st.st_ino == inode;
}

/*
 * Opens the terminal or pipe at stderr again, so that a write to it never waits. O_NONBLOCK at stderr itself would affect other processes that share it.
 * Returns stderr where /proc is missing, or where stderr belongs to another user.
 */
static int stderr_again(void)
{
	int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? STDERR_FILENO : fd;
}

static void sink_choose(void)
{
	struct stat st = {0};

	if (sink != STDERR_FILENO)
		close(sink);
	sink = STDERR_FILENO;
	cut = false;
	(void)fstat(STDERR_FILENO, &st);
	sink_is_socket = S_ISSOCK(st.st_mode);
	if (S_ISFIFO(st.st_mode) || isatty(STDERR_FILENO))
		sink = stderr_again();
}

void log_init(enum log_level level)
{
	log_set_level(level);
	to_journal = stderr_is_journal();
	sink_choose();
}

void log_set_level(enum log_level level)
{
	__atomic_store_n(&current, level, __ATOMIC_RELAXED);
}

enum log_level log_get_level(void)
{
	return __atomic_load_n(&current, __ATOMIC_RELAXED);
}

static int line_begin(char *line, size_t size, enum log_level level, const char *event)
{
	int64_t now = clock_wall_us();
	time_t seconds = (time_t)(now / SEC);
	struct tm tm;

	if (to_journal)
		return snprintf(line, size, "<%d>%s", (int)level + 3, event);
	gmtime_r(&seconds, &tm);
	return snprintf(line, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ %s %s", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
			tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(now % SEC / MSEC), level_name[level], event);
}

static size_t line_length(int printed, size_t size)
{
	if (printed < 0)
		return 0;
	return (size_t)printed < size ? (size_t)printed : size - 1;
}

static bool sink_is_ready(void)
{
	struct pollfd fd = {.fd = sink, .events = POLLOUT};

	return poll(&fd, 1, 0) > 0;
}

static ssize_t sink_write(struct iovec *part, size_t parts)
{
	const struct msghdr message = {.msg_iov = part, .msg_iovlen = parts};
	ssize_t n;

	do {
		n = sink_is_socket ? sendmsg(sink, &message, MSG_DONTWAIT | MSG_NOSIGNAL) : writev(sink, part, (int)parts);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* False: the line, or its end, is lost. */
static bool line_put(char *line, size_t n)
{
	size_t lead = __atomic_load_n(&cut, __ATOMIC_RELAXED);
	char feed[] = "\n";
	struct iovec part[] = {{feed, lead}, {line, n}};
	ssize_t taken;

	if (!sink_is_ready())
		return false;
	taken = sink_write(part, 2);
	if (taken < 0)
		return false;
	__atomic_store_n(&cut, (size_t)taken > lead && (size_t)taken < lead + n, __ATOMIC_RELAXED);
	return (size_t)taken + 1 >= lead + n; /* the line feed alone may follow later */
}

static bool line_write(char *line, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	line[n++] = '\n';
	return line_put(line, n);
}

static void missed_count(unsigned long n)
{
	__atomic_add_fetch(&missed, n, __ATOMIC_RELAXED);
}

/* Reports the number of lost lines as soon as stderr accepts lines again. */
static void missed_report(void)
{
	char line[128];
	unsigned long n;
	size_t at;

	if (!__atomic_load_n(&missed, __ATOMIC_RELAXED) || !sink_is_ready())
		return;
	n = __atomic_exchange_n(&missed, 0, __ATOMIC_RELAXED);
	at = line_length(line_begin(line, sizeof(line), LOG_WARN, "log"), sizeof(line));
	at += line_length(snprintf(line + at, sizeof(line) - at, " missed=%lu note=\"standard error was full\"", n), sizeof(line) - at);
	if (!line_write(line, at))
		missed_count(n);
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	int saved = errno;
	va_list args;
	size_t n;

	if (level > log_get_level())
		return;
	/* line_write puts the line feed where the NUL is. */
	n = line_length(line_begin(line, sizeof(line), level, event), sizeof(line));
	if (format && *format && n + 2 < sizeof(line)) {
		line[n++] = ' ';
		va_start(args, format);
		n += line_length(vsnprintf(line + n, sizeof(line) - n, format, args), sizeof(line) - n);
		va_end(args);
	}
	missed_report();
	if (!line_write(line, n))
		missed_count(1);
	errno = saved;
}

void log_text(const char *text)
{
	char line[LINE_MAX_BYTES];
	size_t n;

	for (; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		memcpy(line, text, n < sizeof(line) ? n : sizeof(line) - 1);
		missed_report();
		if (!line_write(line, n < sizeof(line) ? n : sizeof(line) - 1))
			missed_count(1);
	}
}

static bool byte_is_plain(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '=' && c != '\'';
}

static bool value_is_plain(const char *value, size_t size)
{
	size_t n;

	for (n = 0; value[n]; n++)
		if (n + 1 >= size || !byte_is_plain((unsigned char)value[n]))
			return false;
	return n > 0;
}

/* Escapes one byte for use between quotes; at most four characters. */
static int byte_escape(char *out, unsigned char c)
{
	if (c == '"' || c == '\\')
		return sprintf(out, "\\%c", c);
	if (c < ' ' || c >= 0x7f)
		return sprintf(out, "\\x%02x", c);
	return sprintf(out, "%c", c);
}

const char *log_quote(const char *value, char *scratch, unsigned long size)
{
	size_t n = 0;
	char escaped[8];

	if (value_is_plain(value, size))
		return value;
	if (size < 3) /* no room for two quotes */
		return "\"\"";
	scratch[n++] = '"';
	for (; *value; value++) {
		int length = byte_escape(escaped, (unsigned char)*value);

		if (n + (size_t)length + 2 > size)
			break;
		memcpy(scratch + n, escaped, (size_t)length);
		n += (size_t)length;
	}
	scratch[n++] = '"';
	scratch[n] = '\0';
	return scratch;
}
