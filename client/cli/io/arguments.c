/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns the words of the command line into an invocation, and prints the usage texts. Both use the rows of cli.def; options.c reads the values of
 * options. Options may come before and after the command and NAME. From CMD on, no word is an option of redlock.
 */
#include "client/cli/io/invocation.h"

#include "client/cli/io/output.h"
#include "proto/lookalike.h"
#include "proto/proto.h"
#include "proto/text.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- usage --- */

static void usage_rows(uint64_t commands)
{
	const struct option_row *o;
	char left[64];

	for (o = option_rows; o < option_rows + OPTIONS; o++) {
		if (!(o->commands & commands))
			continue;
		snprintf(left, sizeof(left), "-%c, --%s%s%s", o->letter, o->word, o->argument ? " " : "", o->argument ? o->argument : "");
		printf("  %-30s  %s\n", left, o->help);
	}
}

void usage_print(const struct cli_command *only)
{
	char left[64];
	size_t i;

	if (only) {
		printf("usage: redlock %s [OPTION...] %s\n%s\n\n", only->word, only->operands, only->help);
		usage_rows(UINT64_C(1) << (only - cli_commands));
		return;
	}
	printf("usage: redlock [OPTION...] COMMAND ...\n\n");
	for (i = 0; i < CLI_COMMANDS; i++) {
		snprintf(left, sizeof(left), "%s %s", cli_commands[i].word, cli_commands[i].operands);
		printf("  %-22s  %s\n", left, cli_commands[i].help);
	}
	printf("\n");
	usage_rows(ANY_COMMAND);
	printf("\nDurations need a unit: 500ms, 10s, 1.5s, 2m, 1h. See redlock(1).\n");
}

/* --- parsing --- */

/* Two options may have the same letter. Returns the one of the given command, else the first: see cli.def. */
static const struct option_row *option_of(const struct invocation *in, int letter)
{
	const struct option_row *found = NULL, *o;

	for (o = option_rows; o < option_rows + OPTIONS; o++)
		if (o->letter == letter && (!found || (in->command && option_is_of(o, in->command))))
			found = o;
	return found;
}

/* Returns the exit code for a mistake: that of the command, if it is known. */
static int usage_exit(const struct invocation *in)
{
	return in->command && (in->command->wraps || command_id(in) == CLI_HOLD) ? EXIT_FAILED : EX_USAGE;
}

/* --- words --- */

static int unknown(const struct invocation *in, const char *what, const char *word, const char *dashes, const char *near)
{
	if (near)
		complain("no %s '%s'; did you mean '%s%s'?", what, word, dashes, near);
	else
		complain("no %s '%s'; redlock --help lists them", what, word);
	return usage_exit(in);
}

static int command_take(struct invocation *in, const char *word)
{
	const char *words[CLI_COMMANDS];
	size_t i;

	for (i = 0; i < CLI_COMMANDS; i++) {
		words[i] = cli_commands[i].word;
		if (!strcmp(words[i], word))
			in->command = &cli_commands[i];
	}
	if (in->command) {
		in->wait_ms = command_id(in) == CLI_TRY ? 0 : in->wait_ms;
		return 0;
	}
	return unknown(in, "command", word, "", nearest_word(span_of(word), words, CLI_COMMANDS));
}

static int option_unknown(const struct invocation *in, const char *word)
{
	const char *words[OPTIONS], *near;
	size_t i;

	for (i = 0; i < OPTIONS; i++)
		words[i] = option_rows[i].word;
	near = strncmp(word, "--", 2) ? NULL : nearest_word((struct span){word + 2, strcspn(word + 2, "=")}, words, OPTIONS);
	return unknown(in, "option", word, "--", near);
}

static int option_take(struct invocation *in, uint64_t *given, int letter)
{
	const struct option_row *o = option_of(in, letter);
	const char *wrong = o->set((char *)in + o->to, optarg);

	*given |= UINT64_C(1) << (o - option_rows);
	if (!wrong)
		return 0;
	complain("--%s '%s' %s", o->word, optarg, wrong);
	return usage_exit(in);
}

static void getopt_tables(const struct invocation *in, struct option longs[OPTIONS + 1], char letters[2 * OPTIONS + 3])
{
	const struct option_row *o;

	/* '+' stops at the first operand; ':' distinguishes a missing argument from an unknown option. */
	letters += sprintf(letters, "+:");
	for (o = option_rows; o < option_rows + OPTIONS; o++) {
		if (o != option_of(in, o->letter))
			continue;
		*longs++ = (struct option){o->word, o->argument ? required_argument : no_argument, NULL, o->letter};
		letters += sprintf(letters, "%c%s", o->letter, o->argument ? ":" : "");
	}
	*longs = (struct option){NULL, 0, NULL, 0};
}

/* A pasted dash that looks like a hyphen would turn an option into a name, unnoticed. After "--" it is a name. */
static bool has_false_hyphen(const char *word)
{
	size_t n = utf8_length(span_of(word));
	uint32_t rune = n ? utf8_rune((struct span){word, n}) : 0;

	if (lookalike_of(rune) != '-')
		return false;
	complain("'%s' begins with U+%04X, which is no hyphen; if it is meant, write -- before it", word, (unsigned)rune);
	return true;
}

static int operand_take(struct invocation *in, const char *word, bool literal)
{
	if (!literal && has_false_hyphen(word))
		return usage_exit(in);
	if (!in->command)
		return command_take(in, word);
	if (in->names_n == in->command->most) {
		complain("'%s' is too much: redlock %s %s", word, in->command->word, in->command->operands);
		return usage_exit(in);
	}
	in->names[in->names_n++] = word;
	in->operand = in->names[0];
	return 0;
}

static bool options_fit(const struct invocation *in, uint64_t given)
{
	for (size_t i = 0; i < OPTIONS; i++) {
		if (!(given >> i & 1) || option_is_of(&option_rows[i], in->command))
			continue;
		complain("--%s is no option of %s", option_rows[i].word, in->command->word);
		return false;
	}
	return true;
}

static bool names_fit(const struct invocation *in)
{
	if (in->any && in->names_n < 2)
		complain("--any needs two or more names; the usage is: redlock %s %s", in->command->word, in->command->operands);
	else if (in->slots && (in->names_n > 1 || in->shared || in->keep_ms > 0))
		complain("--slots is for one name, and not for %s", in->names_n > 1 ? "several" : in->shared ? "--shared" : "--keep");
	else if (in->shared && in->keep_ms > 0)
		complain("--keep works with exclusive locks only, not with --shared");
	else if (in->defer_to && in->names_n > 1)
		complain("--or-defer is for one name; the usage is: redlock %s %s", in->command->word, in->command->operands);
	else
		return true;
	return false;
}

static bool once_fits(const struct invocation *in)
{
	if (!in->status && !in->every_ms)
		complain("once needs --every D, or --status");
	else if (in->status && (in->every_ms || in->argv[0]))
		complain("--status runs nothing: it goes without --every and CMD");
	else if (in->json && !in->status)
		complain("--json is for once --status");
	else
		return true;
	return false;
}

static bool session_fits(const char *number)
{
	size_t n = strlen(number);

	if (n > 0 && n <= 15 && strspn(number, "0123456789") == n)
		return true;
	complain("'%.40s' is no session: redlock clients shows their numbers", number);
	return false;
}

static bool command_fits(const struct invocation *in)
{
	switch (command_id(in)) {
	case CLI_ONCE:
		return once_fits(in);
	case CLI_KILL:
		return session_fits(in->operand);
	case CLI_RATE:
		if (in->limit < 1 || in->per_ms < 1)
			complain("rate needs --limit and --per, as in --limit 20 --per 60s");
		return in->limit >= 1 && in->per_ms >= 1;
	case CLI_MOVE:
		if (!in->from)
			complain("move needs --from, the daemon that has the jobs");
		return in->from != NULL;
	default:
		return true;
	}
}

static int invocation_whole(const struct invocation *in, uint64_t given)
{
	if (in->help || in->version)
		return 0;
	if (!in->command) {
		complain("no command given; redlock --help lists them");
		return EX_USAGE;
	}
	if (in->names_n < in->command->least || (in->command->wraps && !in->argv[0] && !in->status)) {
		complain("an argument is missing; the usage is: redlock %s %s", in->command->word, in->command->operands);
		return usage_exit(in);
	}
	return options_fit(in, given) && command_fits(in) && names_fit(in) ? 0 : usage_exit(in);
}

/* Whether a "--" follows: then all words before it are names. */
static bool more_names(const struct invocation *in, int argc, char **argv)
{
	for (int i = optind; in->command->most > 1 && i < argc; i++)
		if (!strcmp(argv[i], "--"))
			return true;
	return false;
}

/* Takes all words up to CMD. Then optind is the index of CMD. */
static int words_take(int argc, char **argv, struct invocation *in, uint64_t *given)
{
	struct option longs[OPTIONS + 1];
	char letters[2 * OPTIONS + 3];
	bool literal = false; /* no word after "--" is an option */
	int r = 0;

	opterr = 0;
	while (!r && optind < argc) {
		int before = optind, letter = -1;

		getopt_tables(in, longs, letters);
		if (!literal)
			letter = getopt_long(argc, argv, letters, longs, NULL);
		if (letter == ':') {
			complain("option '%s' needs a value", argv[optind - 1]);
			r = usage_exit(in);
		} else if (letter == '?') {
			r = option_unknown(in, argv[optind - (optind > before)]);
		} else if (letter != -1) {
			r = option_take(in, given, letter);
		} else if (optind > before) {
			literal = true;
		} else if (in->command && in->command->wraps && in->operand && (literal || !more_names(in, argc, argv))) {
			break;
		} else {
			r = operand_take(in, argv[optind++], literal);
		}
	}
	return r;
}

int invocation_parse(int argc, char **argv, struct invocation *ret_in)
{
	struct invocation in = {
		.tls.size = sizeof(in.tls), .wait_ms = REDLOCK_FOREVER, .delay_ms = -1, .in_ms = REDLOCK_FOREVER, .busy_exit = EXIT_NOT_ACQUIRED, .cost = 1};
	uint64_t given = 0;
	int r = words_take(argc, argv, &in, &given);

	if (r)
		return r;
	in.argv = argv + optind;
	in.wait_given = given >> OPTION_WAIT & 1;
	if (in.defer_to && !in.wait_given)
		in.wait_ms = 0;
	r = invocation_whole(&in, given);
	if (!r)
		*ret_in = in;
	return r;
}
