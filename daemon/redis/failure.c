/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Classifies error texts. To take a refusal for an unknown outcome costs a release. To take another error for a refusal could cost a lock, so only whole code
 * words in known places count. The same refusal, raised inside a script, by version of Redis:
 *   5, 6   ERR Error running script (call to f_<sha>): @user_script:9: @user_script: 9: -OOM command not allowed …
 *   7      OOM command not allowed when used memory > 'maxmemory'. script: <sha>, on @user_script:9.
 */
#include "daemon/redis/failure.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char *const refusals[] = {
	"BUSY",        "LOADING", "READONLY", "MISCONF",  "NOSCRIPT",   "NOAUTH",     "NOPERM",
	"CLUSTERDOWN", "MOVED",   "ASK",      "TRYAGAIN", "MASTERDOWN", "NOREPLICAS", "OOM",
	"CROSSSLOT",
};

/* These begin the message after "ERR "; some occur only inside a script. */
static const char *const phrases[] = {
	"max number of clients", "Script killed by user",         "The user executing the script can't",
	"ACL failure in script", "the fence key holds no number", /* of our own script, before it writes */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool skip_literal(struct span *text, const char *literal)
{
	struct span prefix = span_of(literal);

	if (!span_starts(*text, prefix))
		return false;
	text->p += prefix.n;
	text->n -= prefix.n;
	return true;
}

static void skip_blanks(struct span *text)
{
	while (text->n && (*text->p == ' ' || *text->p == '-'))
		text->p++, text->n--;
}

/* "@user_script:9: ", "user_script: 9: " */
static bool skip_place(struct span *text)
{
	struct span rest = *text;

	(void)skip_literal(&rest, "@");
	if (!skip_literal(&rest, "user_script:"))
		return false;
	skip_blanks(&rest);
	if (!rest.n || !is_digit(*rest.p))
		return false;
	while (rest.n && is_digit(*rest.p))
		rest.p++, rest.n--;
	if (!skip_literal(&rest, ":"))
		return false;
	*text = rest;
	return true;
}

/* "Error running script (call to f_<sha>): ", "Error running script: " */
static bool skip_wrapper(struct span *text)
{
	struct span rest = *text;
	const char *colon;

	if (!skip_literal(&rest, "Error running script") || !rest.n)
		return false;
	colon = memchr(rest.p, ':', rest.n);
	if (!colon)
		return false;
	rest.n -= (size_t)(colon + 1 - rest.p);
	rest.p = colon + 1;
	*text = rest;
	return true;
}

/* The message of the command itself, without what the server puts before it. */
static struct span message_of(struct span text)
{
	do
		skip_blanks(&text);
	while (skip_literal(&text, "ERR ") || skip_wrapper(&text) || skip_place(&text));
	return text;
}

/* A code word must match as a whole. A phrase, which has a blank, begins the message after "ERR ". */
static const struct {
	const char *text;
	enum defect defect;
} causes[] = {
	{"OOM", DEFECT_MEMORY},
	{"NOREPLICAS", DEFECT_REPLICAS},
	{"MISCONF", DEFECT_DISK},
	{"READONLY", DEFECT_REPLICA},
	{"MASTERDOWN", DEFECT_REPLICA},
	{"LOADING", DEFECT_LOADING},
	{"BUSY", DEFECT_SCRIPT},
	{"NOPERM", DEFECT_PERMISSION},
	{"The user executing the script can't", DEFECT_PERMISSION},
	{"ACL failure in script", DEFECT_PERMISSION},
	{"WRONGTYPE", DEFECT_KEY},
	{"the fence key holds no number", DEFECT_KEY},
	{"NOAUTH", DEFECT_AUTH},
	{"WRONGPASS", DEFECT_PASSWORD},
	{"invalid password", DEFECT_PASSWORD},
	{"AUTH <password> called without any password", DEFECT_NO_PASSWORD},
	{"Client sent AUTH, but no password is set", DEFECT_NO_PASSWORD},
	{"DENIED", DEFECT_PROTECTED},
	{"invalid DB index", DEFECT_DATABASE},
	{"DB index is out of range", DEFECT_DATABASE},
	{"max number of clients", DEFECT_CLIENTS},
	{"max clients reached", DEFECT_CLIENTS},
	{"unknown command", DEFECT_COMMAND},
	{"unknown subcommand", DEFECT_COMMAND},
	{"Unknown subcommand", DEFECT_COMMAND},
	{"Unknown Redis command", DEFECT_COMMAND},
	{"CLUSTERDOWN", DEFECT_CLUSTER},
	{"MOVED", DEFECT_CLUSTER},
	{"ASK", DEFECT_CLUSTER},
	{"TRYAGAIN", DEFECT_CLUSTER},
	{"CROSSSLOT", DEFECT_CLUSTER},
	{"SELECT is not allowed in cluster mode", DEFECT_CLUSTER},
};

bool failure_is(struct span text, const char *code)
{
	skip_blanks(&text);
	return skip_literal(&text, code) && (!text.n || *text.p == ' ' || *text.p == '\r');
}

/* connect(2) of a Unix socket: EAGAIN is a full backlog. */
const char *failure_errno(int error)
{
	switch (error) {
	case EAGAIN:
		return "too many connections wait to be accepted there: the server is stopped or overloaded";
	case EMFILE:
		return "this daemon has no file descriptor left";
	case ENFILE:
		return "this host has no file descriptor left";
	default:
		return strerror(error);
	}
}

enum defect failure_errno_defect(int error)
{
	switch (error) {
	case EMFILE:
	case ENFILE:
		return DEFECT_DESCRIPTORS;
	case ECONNRESET:
	case EPIPE:
		return DEFECT_CLOSED; /* the server, or something in between, has ended a connection that worked */
	default:
		return DEFECT_UNREACHED;
	}
}

enum defect failure_dial_defect(const struct sockaddr *to, int error)
{
	return to->sa_family == AF_UNIX && (error == EACCES || error == EPERM) ? DEFECT_SOCKET : failure_errno_defect(error);
}

struct span failure_text(struct span text)
{
	struct span rest = text;
	const char *script;

	if (text.n < 2 || text.p[text.n - 1] != '.' || !is_digit(text.p[text.n - 2]))
		return text; /* our own script has added the rest */
	while ((script = memmem(rest.p, rest.n, " script: ", 9))) {
		text.n = (size_t)(script - text.p);
		rest = (struct span){script + 9, rest.n - (size_t)(script + 9 - rest.p)};
	}
	return text;
}

enum answer_class failure_class(struct span text)
{
	struct span message = message_of(text);
	size_t i;

	for (i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		if (failure_is(message, refusals[i]))
			return ANSWER_REFUSED;
	}
	for (i = 0; i < sizeof(phrases) / sizeof(*phrases); i++) {
		if (span_starts(message, span_of(phrases[i])))
			return ANSWER_REFUSED;
	}
	return ANSWER_UNKNOWN;
}

enum defect failure_defect(struct span text)
{
	struct span message = message_of(text);

	for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++) {
		bool phrase = strchr(causes[i].text, ' ');

		if (phrase ? span_starts(message, span_of(causes[i].text)) : failure_is(message, causes[i].text))
			return causes[i].defect;
	}
	return DEFECT_OTHER;
}
