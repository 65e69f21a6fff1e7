/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program for the build, no part of the daemon. It copies redlockd(8) from standard input to standard output, and replaces the text
 * between the two marks of the page by the list of the figures of STATS.
 */
#include "daemon/core/event/metric.h"
#include "proto/manual.h"

#define COLUMNS 78

static bool figures_print(const char *name)
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
		manual_text(row->help, strlen(row->help), COLUMNS);
	}
	puts(".El");
	return strcmp(name, "the figures") == 0;
}

int main(void)
{
	return manual_render(figures_print, 1);
}
