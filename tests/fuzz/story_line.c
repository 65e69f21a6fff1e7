/* SPDX-License-Identifier: BSD-2-Clause */
/* What the clients of fuzz_session say. */
#include "tests/fuzz/story.h"

#include "tests/fuzz/fuzz.h"

#include <stdarg.h>

static const char *const names[8] = {"a", "b", "\"c d\"", "\"=\\x00\\\"\"", "a-name-that-is-too-long-to-stand-in-the-lock-itself-x", "e", "f", "g"};
static const char *const owners[] = {"", "", " owner=1", " owner=\"2 x\""};
static const char *const waits[] = {"", " wait=0", " wait=20ms", " wait=2s", " wait=forever", " wait=1m", " WAIT=300ms", " wait=5"};
static const char *const ttls[] = {"", " ttl=100ms", " ttl=1s", " ttl=30s", " ttl=31s", " ttl=500ms renew=no", " renew=no",
	" ttl=1s note=\"n o\" trace=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};
static const char *const priorities[] = {"", "", " priority=1", " priority=9"};
static const char *const fences[] = {"", "", "", " sync=yes", " sync=yes", " keep=300ms", " keep=1m sync=yes", " sync=no"};

unsigned story_byte(struct story *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

__attribute__((format(printf, 2, 3))) static void say(struct story *s, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(s->line + s->n, sizeof(s->line) - s->n, format, args);
	va_end(args);
	PROMISE(n >= 0 && (size_t)n < sizeof(s->line) - s->n);
	s->n += (size_t)n;
}

#define PICK(list, bits) list[(bits) % (sizeof(list) / sizeof((list)[0]))]

/* A fence that was granted, or one that never was. */
static void say_fence(struct story *s, unsigned bits)
{
	say(s, " fence=%lld", bits & 1 ? s->fence : 1);
}

static void say_lock(struct story *s, const char *verb, unsigned what)
{
	unsigned bits = story_byte(s), more = story_byte(s);
	const char *name = names[bits & 7], *owner = PICK(owners, bits >> 3 & 3);

	if (what & 1)
		say(s, "@%u ", bits >> 5);
	say(s, "%s %s%s", verb, name, owner);
	if (verb[0] == 'L')
		say(s, "%s%s%s", PICK(waits, more & 7), PICK(ttls, more >> 3 & 7), PICK(priorities, more >> 6));
	else if (verb[0] == 'E')
		say(s, "%s", PICK(ttls, more & 3));
	else if (verb[0] == 'U' && more & 64)
		say_fence(s, more >> 7);
	if (verb[0] == 'U')
		say(s, "%s", PICK(fences, more & 7));
}

/* One that was told its secret, if there is one. */
static const struct greeting *story_greeting(const struct story *s, unsigned bits)
{
	unsigned i = 0;

	while (i < GREETED_MOST && !s->greeted[(bits + i) % GREETED_MOST].secret[0])
		i++;
	return &s->greeted[(bits + i) % GREETED_MOST];
}

/* Taking locks and sessions from others by force, and watching that. */
static void say_force(struct story *s, unsigned what)
{
	static const char *const watch[] = {"WATCH", "WATCH a", "UNWATCH", "UNWATCH a", "SUBSCRIBE", "UNSUBSCRIBE", "WATCH \"c d\"", "KILL"};

	if (what & 32)
		say(s, "%sBREAK %s", what & 16 ? "@b " : "", names[what & 7]);
	else if (what & 16)
		say(s, "KILL session=%lld", story_greeting(s, what)->session);
	else
		say(s, "%s", PICK(watch, what & 7));
}

static void say_other(struct story *s, unsigned what)
{
	static const char *const other[] = {
		"HELLO 1", "HELLO 1 name=\"x y\" heartbeat=1s", "PING", "HELP", "HELP lock", "STATS", "LIST", "LIST sessions", "LIST nodes",
		"list locks prefix=a limit=2", "LIST locks after=b", "", "# nothing", "LOCK", "LOCK a mode=share", "LOCK a delay=1s",
		"GET / HTTP/1.1", "@! PING", "\"@a\" PING", "UNLOCK a fence=x", "HELLO 1 grace=1s", "HELLO 1 grace=20s", "HELLO 1 grace=1m heartbeat=2s",
		"HELLO 1 grace=0", "HELLO 1 grace=2m", "RESUME 1 x"};

	say(s, "%s", PICK(other, what));
}

/* The RESUME of a session, with its secret or a wrong one. */
static void say_resume(struct story *s, unsigned bits)
{
	const struct greeting *g = story_greeting(s, bits);

	say(s, "%sRESUME %lld %s%s", bits & 32 ? "@r " : "", g->session, g->secret[0] ? g->secret : "none", bits & 64 ? "0" : "");
}

void story_told(struct story *s, const struct reply_line *line)
{
	struct span secret = reply_find(line, "secret");
	struct greeting *g = &s->greeted[s->greetings % GREETED_MOST];

	s->fence = (long long)reply_number(line, "fence", s->fence);
	if (line->kind != LINE_OK || secret.n == 0 || secret.n > TAG_MAX)
		return;
	s->greetings++;
	g->session = (long long)reply_number(line, "session", 0);
	snprintf(g->secret, sizeof(g->secret), "%.*s", (int)secret.n, secret.p);
}

static void say_garbage(struct story *s)
{
	size_t n = story_byte(s), left = (size_t)(s->end - s->at);

	n = n < left ? n : left;
	for (size_t i = 0; i < n; i++)
		s->line[s->n++] = s->at[i] == '\n' ? ' ' : (char)s->at[i];
	s->at += n;
}

/* Changes one byte of the line that was just made. */
static void say_wrong(struct story *s)
{
	unsigned at = story_byte(s), byte = story_byte(s);

	if (s->n > 0 && byte != '\n')
		s->line[at % s->n] = (char)byte;
}

/* The last request of a session, or the first one of a session that has come back. */
static void say_last(struct story *s)
{
	unsigned bits = story_byte(s);

	if (bits & 16)
		say(s, "QUIT");
	else
		say_resume(s, bits);
}

void story_line(struct story *s, unsigned what)
{
	static const char *const verb[] = {"LOCK", "LOCK", "LOCK", "UNLOCK", "UNLOCK", "EXTEND", "CHECK", "LOCK"};

	s->n = 0;
	if (what < 16)
		say_lock(s, verb[what >> 1], what);
	else if (what == 16)
		say(s, "CANCEL @%u", story_byte(s) & 7);
	else if (what == 17)
		say(s, "SHOW %s", PICK(names, story_byte(s)));
	else if (what == 18) {
		unsigned byte = story_byte(s);

		(byte < 192 ? say_other : say_force)(s, byte);
	}
	else if (what == 19)
		say_garbage(s);
	else if (what == 20) {
		say_lock(s, PICK(verb, story_byte(s)), 0);
		say_wrong(s);
	} else
		say_last(s);
}
