/* SPDX-License-Identifier: BSD-2-Clause */
/* See screen.h. */
#include "client/cli/command/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static volatile sig_atomic_t ends, stops;
static char typed[64]; /* what was read and not taken yet */
static size_t typed_n;

static void on_end(int signal)
{
	ends = signal;
}

static void on_stop(int signal)
{
	stops = signal;
}

static void on_resize(int signal)
{
	(void)signal; /* it interrupts the wait for a key */
}

static void signals_take(void)
{
	static const int last[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_end};

	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		sigaction(last[i], &action, NULL);
	action.sa_handler = on_stop;
	sigaction(SIGTSTP, &action, NULL);
	action.sa_handler = on_resize;
	sigaction(SIGWINCH, &action, NULL);
}

static void text_write(const char *text, size_t n)
{
	while (n > 0) {
		ssize_t done = write(STDOUT_FILENO, text, n);

		if (done < 0 && errno != EINTR)
			return;
		text += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
}

/* A terminal of no type, or a dumb one, has no cursor to move. */
static bool terminal_obeys(void)
{
	const char *type = getenv("TERM");

	return type && *type && strcmp(type, "dumb") != 0;
}

static bool screen_enter(void)
{
	static const char begin[] = "\033[?1049h\033[?25l\033[?7l"; /* the other screen, without a cursor; what is too wide is cut off */
	struct termios raw = before;

	raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw))
		return false;
	text_write(begin, sizeof(begin) - 1);
	return true;
}

bool screen_open(void)
{
	if (!terminal_obeys() || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before))
		return false;
	signals_take();
	return screen_enter();
}

void screen_close(void)
{
	static const char end[] = "\033[?7h\033[?25h\033[?1049l";

	text_write(end, sizeof(end) - 1);
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* SIGTSTP, as from Ctrl-Z: the shell gets its screen back, until it lets this process go on. */
static void screen_stop(void)
{
	stops = 0;
	screen_close();
	raise(SIGSTOP);
	(void)screen_enter();
}

void screen_size(unsigned *ret_width, unsigned *ret_height)
{
	struct winsize size = {.ws_col = 0};

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*ret_width = size.ws_col ? size.ws_col : 80;
	*ret_height = size.ws_row ? size.ws_row : 24;
}

void screen_draw(const char *text, size_t n)
{
	unsigned width, height;
	const char *end = text;

	screen_size(&width, &height);
	while (height-- && (end = memchr(end, '\n', n - (size_t)(end - text))))
		end++;
	if (end) /* a line more than there are would move the first one out of sight */
		n = (size_t)(end - text) - 1;
	text_write("\033[H\033[K", 6);
	text_write(text, n);
	text_write("\033[J", 3);
}

/* Takes the first key from the bytes that were read. What is no key is dropped, byte by byte. */
static enum screen_key key_take(void)
{
	static const struct {
		const char *bytes;
		enum screen_key key;
	} row[] = {
		{"\033[A", KEY_UP},    {"\033[B", KEY_DOWN},  {"\033[C", KEY_RIGHT},    {"\033[D", KEY_LEFT},       {"\033OA", KEY_UP}, {"\033OB", KEY_DOWN},
		{"\033OC", KEY_RIGHT}, {"\033OD", KEY_LEFT},  {"\033[5~", KEY_PAGE_UP}, {"\033[6~", KEY_PAGE_DOWN}, {"k", KEY_UP},       {"j", KEY_DOWN},
		{"h", KEY_LEFT},       {"l", KEY_RIGHT},      {"q", KEY_QUIT},          {"Q", KEY_QUIT},            {"\003", KEY_QUIT},
	};
	enum screen_key key = KEY_NONE;
	size_t took = typed_n > 0;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]) && !key; i++)
		if (typed_n >= strlen(row[i].bytes) && !memcmp(typed, row[i].bytes, strlen(row[i].bytes))) {
			key = row[i].key;
			took = strlen(row[i].bytes);
		}
	typed_n -= took;
	memmove(typed, typed + took, typed_n);
	return key;
}

enum screen_key screen_key(int64_t most_ms)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	enum screen_key key;
	ssize_t n;

	while (typed_n > 0 && !ends)
		if ((key = key_take()))
			return key;
	if (ends)
		return KEY_QUIT;
	if (stops)
		screen_stop();
	if (poll(&fd, 1, most_ms > 0 ? (int)most_ms : 0) <= 0)
		return ends ? KEY_QUIT : KEY_NONE;
	n = read(STDIN_FILENO, typed, sizeof(typed));
	if (n <= 0) /* the terminal is gone */
		return n < 0 && errno == EINTR && !ends ? KEY_NONE : KEY_QUIT;
	typed_n = (size_t)n;
	return key_take();
}
