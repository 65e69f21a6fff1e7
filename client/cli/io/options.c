/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of cli.def. Each setter stores the value of its option, and returns NULL, or what is wrong with the value. */
#include "client/cli/io/invocation.h"

#include "proto/proto.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *flag_set(void *to, const char *value)
{
	(void)value;
	*(bool *)to = true;
	return NULL;
}

static const char *note_set(void *to, const char *value)
{
	*(const char **)to = value;
	return NULL;
}

static const char *trace_set(void *to, const char *value)
{
	*(const char **)to = *value ? value : NULL;
	if (!*value || trace_is_sound(span_of(value)))
		return NULL;
	return "is no traceparent of W3C Trace Context, as in 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
}

static const char *text_set(void *to, const char *value)
{
	*(const char **)to = value;
	return *value ? NULL : "is empty";
}

static const char *duration_set(void *to, const char *value)
{
	static char hint[96];
	int64_t us = duration_parse(span_of(value));

	if (us >= 0) {
		*(int64_t *)to = (us + 999) / 1000;
		return NULL;
	}
	if (us == DURATION_TOO_LARGE)
		return "is more than ten years";
	if (us != DURATION_NO_UNIT)
		return "is no duration: 500ms, 10s, 1.5s, 2m, 1h";
	snprintf(hint, sizeof(hint), "lacks a unit; did you mean %.32ss?", value);
	return hint;
}

static const char *time_set(void *to, const char *value)
{
	const char *wrong = duration_set(to, value);

	return wrong || *(int64_t *)to ? wrong : "must be more than 0";
}

static const char *wait_set(void *to, const char *value)
{
	if (strcmp(value, "forever") != 0)
		return duration_set(to, value);
	*(int64_t *)to = REDLOCK_FOREVER;
	return NULL;
}

static const char *number_set(void *to, const char *value, int64_t least, int64_t most, const char *wrong)
{
	size_t digits = strspn(value, "0123456789");
	int64_t n = strtoll(value, NULL, 10);

	if (!digits || value[digits] || n < least || n > most)
		return wrong;
	*(int64_t *)to = n;
	return NULL;
}

static const char *count_set(void *to, const char *value)
{
	return number_set(to, value, 0, 9999999999, "is no number: 0 to 9999999999");
}

static const char *exit_set(void *to, const char *value)
{
	return number_set(to, value, 0, 255, "is no exit code: 0 to 255");
}

static const char *priority_set(void *to, const char *value)
{
	return number_set(to, value, 0, 9, "is no priority: 0 to 9");
}

static const char *slots_set(void *to, const char *value)
{
	return number_set(to, value, 1, 1024, "is no number of slots: 1 to 1024");
}

static const char *pid_set(void *to, const char *value)
{
	return number_set(to, value, 1, INT32_MAX, "is no process id; in a shell script it is $$");
}

const struct cli_command cli_commands[CLI_COMMANDS] = {
#define CLI_COMMAND(id, word, operands, least, most, wraps, function, help) [CLI_##id] = {word, operands, least, most, wraps, help},
#include "client/cli/cli.def"
};

#define ON(id)  (UINT64_C(1) << CLI_##id)
#define ANY     ANY_COMMAND
#define WAITS   (ON(RUN) | ON(TRY) | ON(HOLD) | ON(LEAD) | ON(ONCE) | ON(WORK))
#define QUERIES ((ANY & ~WAITS & ~ON(TOP) & ~ON(MOVE)) | ON(ONCE))

const struct option_row option_rows[OPTIONS] = {
#define CLI_OPTION(id, word, letter, argument, commands, set, field, help) \
	[OPTION_##id] = {word, letter, argument, commands, set, offsetof(struct invocation, field), help},
#include "client/cli/cli.def"
};
