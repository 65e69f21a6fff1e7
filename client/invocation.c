/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns the words of the command line into an invocation, and prints the usage texts, both by the rows of cli.def. Options may
 * stand before and after the command and NAME; from CMD on, no word is an option of redlock.
 */
#include "client/invocation.h"
#include "client/complaint.h"
#include "proto/proto.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct cli_command cli_commands[CLI_COMMANDS] = {
#define CLI_COMMAND(id, word, operands, least, most, wraps, function, help)                                                      \
	[CLI_##id] = {word, operands, least, most, wraps, help},
#include "client/cli.def"
};

#define ON(id)  (1u << CLI_##id)
#define ANY     (~0u)
#define QUERIES (ANY & ~ON(RUN) & ~ON(TRY) & ~ON(LEAD) & ~ON(WORK))

enum option_id {
#define CLI_OPTION(id, ...) OPTION_##id,
#include "client/cli.def"
	OPTIONS
};

static const char *const later[] = {
#define CLI_LATER(word) word,
#include "client/cli.def"
};

/* --- values: each setter returns NULL, or what is wrong with the value --- */

static const char *addr_set(struct invocation *in, const char *value)
{
	in->addr = value;
	return *value ? NULL : "is empty";
}

static const char *duration_set(const char *value, int64_t *ret_ms)
{
	static char hint[96];
	int64_t us = strcmp(value, "0") ? duration_parse(span_of(value), false) : 0;

	if (us >= 0) {
		*ret_ms = (us + 999) / 1000;
		return NULL;
	}
	if (us == DURATION_TOO_LARGE)
		return "is more than ten years";
	if (us != DURATION_NO_UNIT)
		return "is no duration: 500ms, 10s, 1.5s, 2m, 1h";
	snprintf(hint, sizeof(hint), "lacks a unit; did you mean %.32ss?", value);
	return hint;
}

static const char *wait_set(struct invocation *in, const char *value)
{
	if (strcmp(value, "forever") != 0)
		return duration_set(value, &in->wait_ms);
	in->wait_ms = REDLOCK_FOREVER;
	return NULL;
}

static const char *ttl_set(struct invocation *in, const char *value)
{
	const char *wrong = duration_set(value, &in->ttl_ms);

	return wrong || in->ttl_ms ? wrong : "must be more than 0";
}

static const char *keep_set(struct invocation *in, const char *value)
{
	return duration_set(value, &in->keep_ms);
}

static const char *delay_set(struct invocation *in, const char *value)
{
	return duration_set(value, &in->delay_ms);
}

static const char *defer_to_set(struct invocation *in, const char *value)
{
	in->defer_to = value;
	return *value ? NULL : "is empty";
}

static const char *lock_set(struct invocation *in, const char *value)
{
	in->lock = value;
	return *value ? NULL : "is empty";
}

static const char *id_set(struct invocation *in, const char *value)
{
	in->id = value;
	return *value ? NULL : "is empty";
}

static const char *exit_set(struct invocation *in, const char *value)
{
	size_t digits = strspn(value, "0123456789");
	unsigned long code = strtoul(value, NULL, 10);

	if (!digits || digits > 3 || value[digits] || code > 255)
		return "is no exit code: 0 to 255";
	in->busy_exit = (int)code;
	return NULL;
}

static const char *priority_set(struct invocation *in, const char *value)
{
	if (value[0] < '0' || value[0] > '9' || value[1])
		return "is no priority: 0 to 9";
	in->priority = value[0] - '0';
	return NULL;
}

static const char *count_set(const char *value, int64_t *ret_n)
{
	size_t digits = strspn(value, "0123456789");

	if (!digits || digits > 10 || value[digits])
		return "is no number: 0 to 9999999999";
	*ret_n = strtoll(value, NULL, 10);
	return NULL;
}

static const char *limit_set(struct invocation *in, const char *value)
{
	return count_set(value, &in->limit);
}

static const char *cost_set(struct invocation *in, const char *value)
{
	return count_set(value, &in->cost);
}

static const char *per_set(struct invocation *in, const char *value)
{
	return duration_set(value, &in->per_ms);
}

static const char *slots_at_most_set(int *out, const char *value, int most)
{
	int n = 0;

	for (; *value >= '0' && *value <= '9' && n <= most; value++)
		n = 10 * n + *value - '0';
	if (*value || n < 1 || n > most)
		return most > 8 ? "is no number of slots: 1 to 1024" : "is no weight: 1 to 8";
	*out = n;
	return NULL;
}

static const char *slots_set(struct invocation *in, const char *value)
{
	return slots_at_most_set(&in->slots, value, 1024);
}

static const char *weight_set(struct invocation *in, const char *value)
{
	return slots_at_most_set(&in->weight, value, 8);
}

static const char *note_set(struct invocation *in, const char *value)
{
	in->note = value;
	return NULL;
}

static const char *shared_set(struct invocation *in, const char *value)
{
	in->shared = !value;
	return NULL;
}

static const char *any_set(struct invocation *in, const char *value)
{
	in->any = !value;
	return NULL;
}

static const char *json_set(struct invocation *in, const char *value)
{
	in->json = !value;
	return NULL;
}

static const char *help_set(struct invocation *in, const char *value)
{
	in->help = !value;
	return NULL;
}

static const char *version_set(struct invocation *in, const char *value)
{
	in->version = !value;
	return NULL;
}

static const struct option_row {
	const char *word;
	int letter;
	const char *argument;
	uint32_t commands;
	const char *(*set)(struct invocation *in, const char *value);
	const char *help;
} rows[OPTIONS] = {
#define CLI_OPTION(id, ...) [OPTION_##id] = {__VA_ARGS__},
#include "client/cli.def"
};

/* --- usage --- */

static void usage_rows(uint32_t commands)
{
	char left[64];
	size_t i;

	for (i = 0; i < OPTIONS; i++) {
		if (!(rows[i].commands & commands))
			continue;
		snprintf(left, sizeof(left), "-%c, --%s%s%s", rows[i].letter, rows[i].word, rows[i].argument ? " " : "",
			 rows[i].argument ? rows[i].argument : "");
		printf("  %-30s  %s\n", left, rows[i].help);
	}
}

void usage_print(const struct cli_command *only)
{
	char left[64];
	size_t i;

	if (only) {
		printf("usage: redlock %s [OPTION...] %s\n%s\n\n", only->word, only->operands, only->help);
		usage_rows(1u << (only - cli_commands));
		return;
	}
	printf("usage: redlock [OPTION...] COMMAND ...\n\n");
	for (i = 0; i < CLI_COMMANDS; i++) {
		snprintf(left, sizeof(left), "%s %s", cli_commands[i].word, cli_commands[i].operands);
		printf("  %-22s  %s\n", left, cli_commands[i].help);
	}
	printf("\n");
	usage_rows(ANY);
	printf("\nDurations carry a unit: 500ms, 10s, 1.5s, 2m, 1h. See redlock(1).\n");
}

/* --- parsing --- */

/* The exit code of a mistake: that of the command, if it is known. */
static int usage_exit(const struct invocation *in)
{
	return in->command && in->command->wraps ? EXIT_FAILED : EX_USAGE;
}

static const char *later_find(const char *word)
{
	size_t i;

	for (i = 0; i < sizeof(later) / sizeof(later[0]); i++)
		if (!strcmp(later[i], word))
			return later[i];
	return NULL;
}

static int command_take(struct invocation *in, const char *word)
{
	const char *words[CLI_COMMANDS], *near;
	size_t i;

	for (i = 0; i < CLI_COMMANDS; i++) {
		words[i] = cli_commands[i].word;
		if (!strcmp(words[i], word))
			in->command = &cli_commands[i];
	}
	if (in->command) {
		in->wait_ms = in->command == &cli_commands[CLI_TRY] ? 0 : in->wait_ms;
		return 0;
	}
	near = nearest_word(span_of(word), words, CLI_COMMANDS);
	if (later_find(word))
		complain("%s is not in this version (%s)", word, REDLOCKD_VERSION);
	else if (near)
		complain("no command '%s'; did you mean '%s'?", word, near);
	else
		complain("no command '%s'; redlock --help lists them", word);
	return EX_USAGE;
}

static int option_unknown(const struct invocation *in, const char *word)
{
	const char *words[OPTIONS], *near;
	size_t i;

	for (i = 0; i < OPTIONS; i++)
		words[i] = rows[i].word;
	near = strncmp(word, "--", 2) ? NULL : nearest_word((struct span){word + 2, strcspn(word + 2, "=")}, words, OPTIONS);
	if (later_find(word))
		complain("%s is not in this version (%s)", word, REDLOCKD_VERSION);
	else if (near)
		complain("no option '%s'; did you mean '--%s'?", word, near);
	else
		complain("no option '%s'; redlock --help lists them", word);
	return usage_exit(in);
}

static int option_take(struct invocation *in, uint32_t *given, int letter)
{
	const char *wrong;
	size_t i;

	/* getopt returns no other letters. */
	for (i = 0; i < OPTIONS - 1 && rows[i].letter != letter; i++)
		;
	*given |= 1u << i;
	wrong = rows[i].set(in, rows[i].argument ? optarg : NULL);
	if (!wrong)
		return 0;
	complain("--%s '%s' %s", rows[i].word, optarg, wrong);
	return usage_exit(in);
}

static void getopt_tables(struct option longs[OPTIONS + 1], char letters[2 * OPTIONS + 3])
{
	size_t i;

	/* '+' stops at the first operand; ':' tells a missing argument from an unknown option. */
	letters += sprintf(letters, "+:");
	memset(longs, 0, (OPTIONS + 1) * sizeof(*longs));
	for (i = 0; i < OPTIONS; i++) {
		longs[i].name = rows[i].word;
		longs[i].has_arg = rows[i].argument ? required_argument : no_argument;
		longs[i].val = rows[i].letter;
		letters += sprintf(letters, "%c%s", rows[i].letter, rows[i].argument ? ":" : "");
	}
}

/* Takes the options up to the next operand. *literal becomes true at "--": no word after it is an option. */
static int options_take(int argc, char **argv, struct invocation *in, uint32_t *given, bool *literal)
{
	struct option longs[OPTIONS + 1];
	char letters[2 * OPTIONS + 3];
	int letter, before, r = 0;

	getopt_tables(longs, letters);
	opterr = 0;
	while (!r && !*literal) {
		before = optind;
		letter = getopt_long(argc, argv, letters, longs, NULL);
		if (letter == -1) {
			*literal = optind > before;
			return 0;
		}
		if (letter == ':') {
			complain("option '%s' needs a value", argv[optind - 1]);
			return usage_exit(in);
		}
		r = letter == '?' ? option_unknown(in, argv[optind - (optind > before)]) : option_take(in, given, letter);
	}
	return r;
}

static int operand_take(struct invocation *in, const char *word)
{
	if (!in->command)
		return command_take(in, word);
	if (in->command->most > 1 && in->names_n < NAMES_MOST) {
		in->names[in->names_n++] = word;
		in->operand = in->names[0];
		return 0;
	}
	if (in->operand || !in->command->most) {
		complain("'%s' is too much: redlock %s %s", word, in->command->word, in->command->operands);
		return EX_USAGE;
	}
	in->operand = in->names[0] = word;
	in->names_n = 1;
	return 0;
}

static int options_fit(const struct invocation *in, uint32_t given)
{
	size_t i;

	for (i = 0; i < OPTIONS; i++) {
		if (!(given >> i & 1) || rows[i].commands >> (in->command - cli_commands) & 1)
			continue;
		complain("--%s is no option of %s", rows[i].word, in->command->word);
		return usage_exit(in);
	}
	return 0;
}

static int names_fit(const struct invocation *in)
{
	if (in->any && in->names_n < 2) {
		complain("--any needs two or more names; the usage is: redlock %s %s", in->command->word, in->command->operands);
		return usage_exit(in);
	}
	if (in->slots && (in->names_n > 1 || in->shared || in->keep_ms > 0)) {
		complain("--slots is for one name, and not for %s", in->names_n > 1 ? "several" : in->shared ? "--shared" : "--keep");
		return usage_exit(in);
	}
	if (in->weight > (in->slots ? in->slots : 0)) {
		complain(in->slots ? "--weight is more than --slots" : "--weight needs --slots");
		return usage_exit(in);
	}
	if (in->defer_to && in->names_n > 1) {
		complain("--or-defer is for one name; the usage is: redlock %s %s", in->command->word, in->command->operands);
		return usage_exit(in);
	}
	return 0;
}

static int invocation_whole(const struct invocation *in, uint32_t given)
{
	int r;

	if (in->help || in->version)
		return 0;
	if (!in->command) {
		complain("no command given; redlock --help lists them");
		return EX_USAGE;
	}
	if ((in->command->least && !in->operand) || (in->command->wraps && !in->argv[0])) {
		complain("an argument is missing; the usage is: redlock %s %s", in->command->word, in->command->operands);
		return usage_exit(in);
	}
	r = options_fit(in, given);
	return r ? r : names_fit(in);
}

/* Whether a "--" is still to come: all words before it are names. */
static bool more_names(const struct invocation *in, int argc, char **argv, bool literal)
{
	if (in->command->most == 1 || literal)
		return false;
	for (int i = optind; i < argc; i++)
		if (!strcmp(argv[i], "--"))
			return true;
	return false;
}

int invocation_parse(int argc, char **argv, struct invocation *ret_in)
{
	struct invocation in = {.wait_ms = REDLOCK_FOREVER, .busy_exit = EXIT_NOT_ACQUIRED, .cost = 1};
	bool literal = false;
	uint32_t given = 0;
	int r;

	for (;;) {
		r = options_take(argc, argv, &in, &given, &literal);
		if (r)
			return r;
		if (optind >= argc || (in.command && in.command->wraps && in.operand && !more_names(&in, argc, argv, literal)))
			break;
		r = operand_take(&in, argv[optind++]);
		if (r)
			return r;
	}
	in.argv = argv + optind;
	if (in.defer_to && !(given >> OPTION_WAIT & 1))
		in.wait_ms = 0;
	r = invocation_whole(&in, given);
	if (!r)
		*ret_in = in;
	return r;
}
