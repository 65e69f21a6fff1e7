/* SPDX-License-Identifier: BSD-2-Clause */
/* A program for the build, no part of the daemon: prints daemon/core/STATES.md, the tables of move.def as pictures. */
#include "daemon/core/lock/lease.h"

#include <stdio.h>

static void states_print(const char *title, const struct state_row *state, int n)
{
	printf("\n## %s\n\n| state | meaning |\n|---|---|\n", title);
	for (int i = 0; i < n; i++)
		printf("| %s | %s |\n", state[i].word, state[i].what);
	puts("\n```mermaid\nstateDiagram-v2");
	for (int i = 0; i < n; i++)
		printf("    state \"%s\" as s%d\n", state[i].word, i);
}

/* Prints one arrow for all causes of a move. */
static void move_print(int from, int to, const bool allowed[CAUSES_MAX])
{
	int printed = 0;

	for (int why = 0; why < CAUSE_N; why++) {
		if (!allowed[why])
			continue;
		if (printed++ == 0)
			printf("    s%d --> s%d: ", from, to);
		printf("%s%s", printed > 1 ? ", " : "", cause_table[why].word);
	}
	if (printed > 0)
		putchar('\n');
}

int main(void)
{
	puts("# What a name goes through\n\n"
	     "Printed from move.def by `make rendered`. A name is two machines: what it asks the stores for, and what it has. It asks for nothing while\n"
	     "it has a lease. At log level debug the daemon tells each move, with its cause.");
	states_print("The contender: what it asks for", contender_table, CONTENDER_N);
	for (int from = 0; from < CONTENDER_N; from++)
		for (int to = 0; to < CONTENDER_N; to++)
			move_print(from, to, contender_moves[from][to]);
	puts("```");
	states_print("The lease: what it has", lease_table, LEASE_N);
	for (int from = 0; from < LEASE_N; from++)
		for (int to = 0; to < LEASE_N; to++)
			move_print(from, to, lease_moves[from][to]);
	puts("```\n\n## Causes\n\n| cause | meaning |\n|---|---|");
	for (int why = 0; why < CAUSE_N; why++)
		printf("| %s | %s |\n", cause_table[why].word, cause_table[why].what);
	return 0;
}
