/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program for the build, no part of the daemon. It copies redlockd(8) from standard input to standard output, and replaces the text
 * between the two marks of the page by the list of the figures of STATS.
 */
#include "daemon/core/event/metric.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 78

/* Prints lines of at most COLUMNS bytes, broken at blanks. */
static void text_print(const char *text)
{
	const char *stop;

	for (; strlen(text) > COLUMNS; text = stop + 1) {
		for (stop = text + COLUMNS; *stop != ' '; stop--)
			;
		printf("%.*s\n", (int)(stop - text), text);
	}
	puts(text);
}

static void figures_print(void)
{
	const struct metric_row *family = metric_table;
	int i;

	puts(".Bl -tag -width Ds -compact");
	for (i = 0; i < METRIC_N; i++) {
		const struct metric_row *row = &metric_table[i];

		if (row->source != METRIC_CELL)
			family = row;
		if (row->source == METRIC_CELL)
			printf(".It Cm %s Cm %s=%s\n", family->name, family->labels, row->name);
		else if (row->labels[0])
			printf(".It Cm %s Pq %s\n", row->name, row->labels);
		else
			printf(".It Cm %s\n", row->name);
		text_print(row->help);
	}
	puts(".El");
}

int main(void)
{
	char line[1024];
	bool inside = false, seen = false;

	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, ".\\\" END of the figures", 22))
			inside = false;
		if (!inside)
			fputs(line, stdout);
		if (!strncmp(line, ".\\\" BEGIN of the figures", 24)) {
			figures_print();
			inside = seen = true;
		}
	}
	if (!seen || inside)
		fputs("figures: the page lacks its marks\n", stderr);
	return seen && !inside ? EXIT_SUCCESS : EXIT_FAILURE;
}
