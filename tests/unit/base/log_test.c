/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/base/log.c: what it writes is read back from a pipe, a terminal or a socket that stands in for stderr. */
#include "daemon/base/log.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int reader, saved_stderr;
static char line[8192], told[100];

static void pipe_open(void)
{
	int fd[2];

	ck_assert_int_eq(pipe(fd), 0);
	saved_stderr = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(fd[1], STDERR_FILENO), 0);
	close(fd[1]);
	reader = fd[0];
}

/* All that was written, as one string. */
static const char *pipe_close(void)
{
	ssize_t n;

	ck_assert_int_ge(dup2(saved_stderr, STDERR_FILENO), 0);
	close(saved_stderr);
	log_init(log_get_level()); /* gives up the pipe */
	n = read(reader, line, sizeof(line) - 1);
	ck_assert_int_ge(n, 0);
	line[n] = '\0';
	close(reader);
	return line;
}

TEST(a_line_says_time_level_event_and_pairs)
{
	int year, month, day, hour, minute, second, milli, end = 0;
	const char *text;

	unsetenv("JOURNAL_STREAM");
	pipe_open();
	log_init(LOG_INFO);
	log_event(LOG_WARN, "node-down", "node=%s reason=%s", "n1", "refused");
	text = pipe_close();
	ck_assert_int_eq(
		sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &year, &month, &day, &hour, &minute, &second, &milli, &end), 7);
	ck_assert_int_eq(end, 25);
	ck_assert_str_eq(text + end, "warn node-down node=n1 reason=refused\n");
}

TEST(under_the_journal_a_line_starts_with_its_priority)
{
	char stream[64];
	struct stat st;

	pipe_open();
	ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_init(LOG_DEBUG);
	log_event(LOG_ERROR, "first", "a=%d", 1);
	log_event(LOG_DEBUG, "second", NULL);
	ck_assert_str_eq(pipe_close(), "<3>first a=1\n<7>second\n");
	unsetenv("JOURNAL_STREAM");
}

TEST(an_inherited_journal_stream_is_not_ours)
{
	setenv("JOURNAL_STREAM", "1:1", 1);
	pipe_open();
	log_init(LOG_DEBUG);
	log_event(LOG_INFO, "x", NULL);
	ck_assert_int_ne(pipe_close()[0], '<');
	unsetenv("JOURNAL_STREAM");
}

TEST(a_message_above_the_level_is_not_written)
{
	pipe_open();
	log_init(LOG_WARN);
	ck_assert_int_eq(log_get_level(), LOG_WARN);
	log_event(LOG_NOTICE, "hidden", NULL);
	log_set_level(LOG_NOTICE);
	log_event(LOG_INFO, "hidden", NULL);
	ck_assert_str_eq(pipe_close(), "");
}

TEST(a_value_cannot_forge_a_line)
{
	const char *text;

	pipe_open();
	log_init(LOG_INFO);
	log_event(LOG_INFO, "line", "name=%s", "a\n2026 error forged \x1b[31m");
	text = pipe_close();
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
	ck_assert_ptr_null(strchr(text, '\x1b'));
}

TEST(a_line_that_is_too_long_is_cut_and_still_one_line)
{
	const char *text;
	char *value = malloc(5001);

	memset(value, 'v', 5000);
	value[5000] = '\0';
	pipe_open();
	log_init(LOG_INFO);
	log_event(LOG_INFO, "long", "value=%s", value);
	log_event(LOG_INFO, value, "and=%s", "more");
	text = pipe_close();
	free(value);
	ck_assert_ptr_nonnull(strstr(text, "value=vvvv"));
	ck_assert_uint_eq(strlen(text), 2 * 2048);
	ck_assert_int_eq(text[2047], '\n');
	ck_assert_int_eq(text[4095], '\n');
}

static size_t pipe_drain(void)
{
	char bytes[65536];
	size_t n = 0;
	ssize_t got;

	fcntl(reader, F_SETFL, O_NONBLOCK);
	while ((got = read(reader, bytes, sizeof(bytes))) > 0)
		n += (size_t)got;
	fcntl(reader, F_SETFL, 0);
	return n;
}

/* A log that nobody reads any more must not stop the daemon: that would end all leases. */
TEST(a_reader_that_stops_is_not_waited_for_and_hears_what_it_missed)
{
	size_t written = 0;
	const char *text;
	int i;

	unsetenv("JOURNAL_STREAM");
	pipe_open();
	log_init(LOG_INFO);
	for (i = 0; i < 20000; i++)
		log_event(LOG_INFO, "n", "i=%05d", i);
	written = pipe_drain() / strlen("2026-11-20T16:01:02.123Z info n i=00000\n");
	log_event(LOG_INFO, "after", "i=1");
	log_event(LOG_INFO, "after", "i=2");
	text = pipe_close();
	ck_assert_uint_gt(written, 0);
	ck_assert_uint_lt(written, 20000);
	snprintf(told, sizeof(told), "warn log missed=%zu note=\"standard error was full\"\n", 20000 - written);
	ck_assert_msg(strstr(text, told) == text + 25, "%s, not %s", text, told);
	ck_assert_ptr_nonnull(strstr(text, "info after i=1\n"));
	ck_assert_ptr_nonnull(strstr(text, "info after i=2\n"));
	ck_assert_ptr_null(strstr(strstr(text, "info after i=1\n"), "missed"));
}

/* --- a terminal ---------------------------------------------------------------------------------------------------- */

static int master;
static char screen[1 << 20];
static size_t shown;

static void terminal_open(void)
{
	int slave;

	master = posix_openpt(O_RDWR | O_NOCTTY);
	ck_assert_int_ge(master, 0);
	ck_assert(!grantpt(master) && !unlockpt(master));
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	ck_assert_int_ge(slave, 0);
	saved_stderr = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(slave, STDERR_FILENO), 0);
	close(slave);
	fcntl(master, F_SETFL, O_NONBLOCK);
	shown = 0;
}

static void terminal_close(void)
{
	ck_assert_int_ge(dup2(saved_stderr, STDERR_FILENO), 0);
	close(saved_stderr);
	log_init(LOG_INFO);
	close(master);
}

/* Reads what the terminal shows by now, and returns all of it. */
static const char *terminal_read(void)
{
	ssize_t n;

	while ((n = read(master, screen + shown, sizeof(screen) - 1 - shown)) > 0)
		shown += (size_t)n;
	screen[shown] = '\0';
	return screen;
}

/* Logs lines that end in "end", from 60 to 360 bytes long, so that one of them does not fit into what the terminal has left. */
static void log_many(unsigned n)
{
	static char fill[301];
	unsigned i;

	memset(fill, 'x', sizeof(fill) - 1);
	for (i = 0; i < n; i++)
		log_event(LOG_INFO, "n", "i=%05u %.*s end", i, (int)(i * 37 % 300), fill);
}

/* How many whole lines of log_many, and how many lost ones, the terminal shows. No line may begin within another. */
static unsigned long lines_accounted_for(const char *text)
{
	unsigned long lines = 0;
	size_t n;

	for (; text[n = strcspn(text, "\n")]; text += n + 1) {
		const char *told_missed = memmem(text, n, " warn log missed=", 17);

		ck_assert_msg(n == 0 || n == 1 || (n > 25 && text[23] == 'Z'), "no beginning: %.*s", (int)n, text);
		ck_assert_msg(n < 26 || !memmem(text + 24, n - 24, "Z ", 2), "two lines in one: %.*s", (int)n, text);
		lines += n > 5 && !memcmp(text + n - 5, " end\r", 5);
		if (told_missed && memmem(text, n, " note=", 6))
			lines += strtoul(told_missed + 17, NULL, 10);
	}
	return lines;
}

/* A terminal is writable for poll(2) although a whole line does not fit. */
TEST(a_terminal_that_nobody_reads_is_not_waited_for_and_its_lines_stay_apart)
{
	unsigned long logged = 3000;

	unsetenv("JOURNAL_STREAM");
	terminal_open();
	log_init(LOG_INFO);
	log_many(3000);
	while (lines_accounted_for(terminal_read()) < logged) {
		log_many(1);
		logged++;
	}
	ck_assert_uint_eq(lines_accounted_for(terminal_read()), logged);
	ck_assert_ptr_nonnull(strstr(screen, " warn log missed="));
	terminal_close();
}

/* Others have the same open file, for instance the shell that started the daemon. */
TEST(stderr_itself_still_waits)
{
	terminal_open();
	log_init(LOG_INFO);
	ck_assert_int_eq(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
	terminal_close();
}

/* As the stream of the journal. */
TEST(a_socket_that_nobody_reads_is_not_waited_for)
{
	int pair[2];

	unsetenv("JOURNAL_STREAM");
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	saved_stderr = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(pair[0], STDERR_FILENO), 0);
	close(pair[0]);
	reader = pair[1];
	log_init(LOG_INFO);
	log_many(5000);
	ck_assert_uint_gt(pipe_drain(), 0);
	log_event(LOG_INFO, "after", "i=1");
	ck_assert_ptr_nonnull(strstr(pipe_close(), " warn log missed="));
	ck_assert_ptr_nonnull(strstr(line, "info after i=1\n"));
}

TEST(errno_is_kept)
{
	pipe_open();
	log_init(LOG_INFO);
	errno = ENOENT;
	log_event(LOG_INFO, "x", "error=%m");
	ck_assert_ptr_nonnull(strstr(pipe_close(), "error=No such file or directory\n"));
	ck_assert_ptr_nonnull(freopen("/dev/full", "w", stderr)); /* where write(2) fails */
	log_init(LOG_INFO);
	errno = ENOENT;
	log_event(LOG_INFO, "x", NULL);
	ck_assert_int_eq(errno, ENOENT);
}

static void assert_quote(const char *value, const char *expected)
{
	char scratch[64];

	ck_assert_str_eq(log_quote(value, scratch, sizeof(scratch)), expected);
}

TEST(only_values_that_need_it_are_quoted)
{
	assert_quote("orders/42", "orders/42");
	assert_quote("", "\"\"");
	assert_quote("a b", "\"a b\"");
	assert_quote("a=b", "\"a=b\"");
	assert_quote("say \"x\\y\"", "\"say \\\"x\\\\y\\\"\"");
	assert_quote("a\n\x7f\xff", "\"a\\x0a\\x7f\\xff\"");
}

TEST(a_quoted_value_never_outgrows_its_scratch)
{
	char scratch[64];
	size_t size;

	for (size = 0; size < 40; size++) {
		const char *quoted, *value = size % 2 ? "plainplainplainplain" : "a b\n\"\\c\xff d e f g h";

		memset(scratch, '#', sizeof(scratch));
		quoted = log_quote(value, scratch, size);
		if (quoted == value)
			continue;
		ck_assert_int_eq(scratch[size], '#');
		ck_assert_uint_lt(strlen(quoted), size < 3 ? 3 : size);
		ck_assert_int_eq(quoted[strlen(quoted) - 1], '"');
	}
}
