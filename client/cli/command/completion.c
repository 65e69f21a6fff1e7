/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what the completion of a shell must know of redlock, from the rows of cli.def. The Makefile puts the script of client/cli/completion behind it.
 *
 *   completion bash | zsh | fish
 */
#include "client/cli/io/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a word of the usage stands for: the scripts have a function for each of these. */
static const char *kind_of(const char *usage)
{
	static const struct {
		const char *word, *kind;
	} row[] = {{"NAME", "name"}, {"[PREFIX]", "name"}, {"QUEUE", "queue"}, {"ADDR", "file"}, {"FILE", "file"}, {"PID", "pid"}};
	size_t n = strcspn(usage, " ");

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (n == strlen(row[i].word) && !strncmp(usage, row[i].word, n))
			return row[i].kind;
	return "none";
}

static bool is_of(const struct option_row *option, size_t command)
{
	return option->commands >> command & 1;
}

/* Help texts are without single quotes: all three shells then take them between such. A colon ends a word in zsh's lists. */
static void quoted(const char *text, bool zsh)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'')
			continue;
		if (zsh && *text == ':')
			putchar('\\');
		putchar(*text);
	}
	putchar('\'');
}

/* --- bash and zsh: functions that say what belongs to a command or to an option --- */

static void words_function(bool zsh)
{
	printf("_redlock_commands() {\n\tprintf '%%s\\n'");
	for (size_t i = 0; i < CLI_COMMANDS; i++) {
		if (!zsh) {
			printf(" %s", cli_commands[i].word);
			continue;
		}
		printf(" \\\n\t\t'%s:'", cli_commands[i].word);
		quoted(cli_commands[i].help, true);
	}
	printf("\n}\n");
}

static void options_function(bool zsh)
{
	printf("_redlock_options() {\n\tcase $1 in\n");
	for (size_t c = 0; c <= CLI_COMMANDS; c++) {
		printf("\t%s) printf '%%s\\n'", c < CLI_COMMANDS ? cli_commands[c].word : "*");
		for (size_t i = 0; i < OPTIONS; i++) {
			const struct option_row *o = &option_rows[i];

			if (c < CLI_COMMANDS ? !is_of(o, c) : o->commands != ANY_COMMAND)
				continue;
			printf(zsh ? " \\\n\t\t'--%s:'" : " --%s", o->word);
			if (zsh)
				quoted(o->help, true);
		}
		printf(" ;;\n");
	}
	printf("\tesac\n}\n");
}

/* Empty for an option without a value. */
static void value_function(void)
{
	printf("_redlock_value() {\n\tcase $1 in\n");
	for (size_t i = 0; i < OPTIONS; i++)
		if (option_rows[i].argument)
			printf("\t--%s | -%c) echo %s ;;\n", option_rows[i].word, option_rows[i].letter, kind_of(option_rows[i].argument));
	printf("\tesac\n}\n");
}

/* What the first word behind the command is; and whether a command follows, which is completed by its own rules. */
static void operand_functions(void)
{
	printf("_redlock_operand() {\n\tcase $1 in\n");
	for (size_t i = 0; i < CLI_COMMANDS; i++)
		if (cli_commands[i].most)
			printf("\t%s) echo %s ;;\n", cli_commands[i].word, kind_of(cli_commands[i].operands));
	printf("\tesac\n}\n_redlock_wraps() {\n\tcase $1 in\n\t");
	for (size_t i = 0, n = 0; i < CLI_COMMANDS; i++)
		if (cli_commands[i].wraps)
			printf("%s%s", n++ ? " | " : "", cli_commands[i].word);
	printf(") return 0 ;;\n\tesac\n\treturn 1\n}\n");
}

/* --- fish: a line for each command and for each option --- */

static void fish_commands(void)
{
	for (size_t i = 0; i < CLI_COMMANDS; i++) {
		printf("complete -c redlock -n __redlock_has_no_command -f -a %s -d ", cli_commands[i].word);
		quoted(cli_commands[i].help, false);
		putchar('\n');
		if (cli_commands[i].most && strcmp(kind_of(cli_commands[i].operands), "none") != 0)
			printf("complete -c redlock -n '__redlock_begins %s' -f -a '(__redlock_%s)'\n", cli_commands[i].word,
			       kind_of(cli_commands[i].operands));
		else
			printf("complete -c redlock -n '__redlock_begins %s' -f\n", cli_commands[i].word);
	}
}

static void fish_option(const struct option_row *o)
{
	const char *kind = o->argument ? kind_of(o->argument) : "";

	printf("complete -c redlock -n '");
	if (o->commands == ANY_COMMAND)
		printf("__redlock_options");
	else
		printf("__redlock_is_of");
	for (size_t c = 0; c < CLI_COMMANDS && o->commands != ANY_COMMAND; c++)
		if (is_of(o, c))
			printf(" %s", cli_commands[c].word);
	printf("' -l %s -s %c", o->word, o->letter);
	if (!strcmp(kind, "file"))
		printf(" -r -F");
	else if (!strcmp(kind, "none"))
		printf(" -x");
	else if (*kind)
		printf(" -x -a '(__redlock_%s)'", kind);
	else
		printf(" -f");
	printf(" -d ");
	quoted(o->help, false);
	putchar('\n');
}

/* The functions of the script must know which options have a value, and which commands run another one. */
static void fish_lists(void)
{
	printf("set -g __redlock_valued");
	for (size_t i = 0; i < OPTIONS; i++)
		if (option_rows[i].argument)
			printf(" --%s -%c", option_rows[i].word, option_rows[i].letter);
	printf("\nset -g __redlock_wraps");
	for (size_t i = 0; i < CLI_COMMANDS; i++)
		if (cli_commands[i].wraps)
			printf(" %s", cli_commands[i].word);
	putchar('\n');
}

int main(int argc, char **argv)
{
	bool zsh = argc == 2 && !strcmp(argv[1], "zsh");

	printf("%s# Completion of redlock(1); made from client/cli/cli.def.\n", zsh ? "#compdef redlock\n" : "");
	if (zsh || (argc == 2 && !strcmp(argv[1], "bash"))) {
		words_function(zsh);
		options_function(zsh);
		value_function();
		operand_functions();
	} else if (argc == 2 && !strcmp(argv[1], "fish")) {
		fish_lists();
		fish_commands();
		for (size_t i = 0; i < OPTIONS; i++)
			fish_option(&option_rows[i]);
	} else {
		fprintf(stderr, "usage: completion bash | zsh | fish\n");
		return EXIT_FAILURE;
	}
	return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
