/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the texts of the tables, one "page<TAB>text" a line: every text must stand on that page (or on one of several, page|page). tests/docs.sh looks
 * whether it does.
 */
#include "proto/proto.h"

#include <stdio.h>

#define PROTOCOL "redlock-protocol.7"
#define CONF     "redlockd.yaml.5"
#define CLI      "redlock.1"

static void say(const char *page, const char *text)
{
	if (*text)
		printf("%s\t%s\n", page, text);
}

static void commands_say(void)
{
	char usage[1024];
	int verb;

	for (verb = 0; verb < VERB_N; verb++) {
		usage[command_usage((enum verb)verb, usage, sizeof(usage) - 1)] = '\0';
		say(PROTOCOL, usage);
		say(PROTOCOL, command_table[verb].help);
	}
}

static void fields_say(void)
{
	int field;

	for (field = 0; field < FIELD_N; field++) {
		say(PROTOCOL, field_table[field].word);
		say(PROTOCOL, field_table[field].help);
		say(PROTOCOL, value_table[field_table[field].type].meaning);
	}
}

static void errors_say(void)
{
	int code;

	for (code = 0; code < ERROR_N; code++) {
		say(PROTOCOL, error_table[code].word);
		say(PROTOCOL, error_table[code].meaning);
	}
}

static void keys_say(void)
{
#define SECTION(name, help) say(CONF, help);
#define KEY(id, path, type, at, given, range, effect, help)                                                                      \
	say(CONF, path);                                                                                                         \
	say(CONF, help);
#include "conf/schema.def"
#undef KEY
#undef SECTION
}

static void metrics_say(void)
{
#define METRIC(id, name, kind, source, labels, help)                                                                             \
	say(PROTOCOL "|redlockd.8", name);                                                                                       \
	say(PROTOCOL "|redlockd.8", help);
#include "daemon/core/event/metric.def"
#undef METRIC
}

static void options_say(void)
{
#define CLI_COMMAND(id, word, operands, least, most, wraps, run, help) say(CLI, word " " operands);
#define CLI_OPTION(id, word, letter, argument, commands, set, field, help) say(CLI, "--" word);
#include "client/cli/cli.def"
}

int main(void)
{
	commands_say();
	fields_say();
	errors_say();
	keys_say();
	metrics_say();
	options_say();
	return 0;
}
