/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what the completion of a shell needs to know about redlock, from the rows of cli.def. The Makefile appends the script of
 * client/cli/completion.
 *
 *   completion bash | zsh | fish
 */
#include "client/cli/io/invocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the kind of a word of the usage. The scripts have a function for each kind. */
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

/* Prints help text without its single quotes, so that all three shells accept it between single quotes. */
static void quoted(const char *text, const char *before_colon)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'')
			continue;
		printf("%s%c", *text == ':' ? before_colon : "", *text);
	}
	putchar('\'');
}

/* --- bash and zsh: functions that list commands and options. A colon separates a word and its help --- */

static void described(const char *dashes, const char *word, const char *help)
{
	printf(" \\\n\t\t'%s%s:'", dashes, word);
	quoted(help, "\\");
}

static void words_function(void)
{
	printf("_redlock_commands() {\n\tprintf '%%s\\n'");
	for (size_t i = 0; i < CLI_COMMANDS; i++)
		described("", cli_commands[i].word, cli_commands[i].help);
	printf("\n}\n");
}

static void options_function(void)
{
	printf("_redlock_options() {\n\tcase $1 in\n");
	for (size_t c = 0; c <= CLI_COMMANDS; c++) {
		printf("\t%s) printf '%%s\\n'", c < CLI_COMMANDS ? cli_commands[c].word : "*");
		for (const struct option_row *o = option_rows; o < option_rows + OPTIONS; o++)
			if (c < CLI_COMMANDS ? option_is_of(o, &cli_commands[c]) : o->commands == ANY_COMMAND)
				described("--", o->word, o->help);
		printf(" ;;\n");
	}
	printf("\tesac\n}\n");
}

/* Prints nothing for an option without a value. */
static void value_function(void)
{
	printf("_redlock_value() {\n\tcase $1 in\n");
	for (size_t i = 0; i < OPTIONS; i++)
		if (option_rows[i].argument)
			printf("\t--%s | -%c) echo %s ;;\n", option_rows[i].word, option_rows[i].letter, kind_of(option_rows[i].argument));
	printf("\tesac\n}\n");
}

/* The functions for the first word after the command, and for commands that run another command, whose own completion follows. */
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
	for (const struct cli_command *c = cli_commands; c < cli_commands + CLI_COMMANDS; c++) {
		const char *kind = c->most ? kind_of(c->operands) : "none";

		printf("complete -c redlock -n __redlock_has_no_command -f -a %s -d ", c->word);
		quoted(c->help, "");
		printf("\ncomplete -c redlock -n '__redlock_begins %s' -f", c->word);
		if (strcmp(kind, "none") != 0)
			printf(" -a '(__redlock_%s)'", kind);
		putchar('\n');
	}
}

static void fish_option(const struct option_row *o)
{
	const char *kind = o->argument ? kind_of(o->argument) : "";

	printf("complete -c redlock -n '%s", o->commands == ANY_COMMAND ? "__redlock_options" : "__redlock_is_of");
	for (size_t c = 0; c < CLI_COMMANDS && o->commands != ANY_COMMAND; c++)
		if (option_is_of(o, &cli_commands[c]))
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
	quoted(o->help, "");
	putchar('\n');
}

/* Prints which options have a value, and which commands run another command. The functions of the script use this. */
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
		words_function();
		options_function();
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
