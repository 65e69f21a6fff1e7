/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints tables as kubectl does, with libsmartcols: a header in capitals, two spaces between columns, no borders. A duration is shown as an age. A column
 * that no row has a value for is hidden.
 */
#include "client/cli/io/rows.h"
#include "client/cli/io/field.h"
#include "client/lib/display.h"

#include <ctype.h>
#include <errno.h>
#include <libsmartcols/libsmartcols.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 32
#define CELL_BYTES  600 /* enough for a whole name, unless most of it is escapes */
#define NOTE_SHOWN  60  /* a command line is cut */
#define FIELD_BYTES 40

struct rows {
	bool json, failed;
	bool closed; /* no further columns */
	char field[COLUMNS_MAX][FIELD_BYTES]; /* of each column */
	size_t columns, count;
	struct libscols_table *table;
	struct libscols_line *last;
};

void rows_free(struct rows *rows)
{
	if (!rows)
		return;
	scols_unref_table(rows->table);
	free(rows);
}

static bool is_duration(struct span field)
{
	return field.n > 3 && !memcmp(field.p + field.n - 3, "_ms", 3);
}

/* Adds the column if it is new. COLUMNS_MAX: there is no room for it. */
static size_t column_find(struct rows *rows, struct span field)
{
	size_t i;

	for (i = 0; i < rows->columns; i++)
		if (span_equal(span_of(rows->field[i]), field))
			return i;
	if (rows->closed || i == COLUMNS_MAX || field.n >= FIELD_BYTES)
		return COLUMNS_MAX;
	memcpy(rows->field[rows->columns++], field.p, field.n);
	return i;
}

/* libsmartcols takes no column behind the first row, so all are there from the start. */
static bool table_begin(struct rows *rows)
{
	struct libscols_table *table = rows->table = scols_new_table();
	int r = table ? scols_table_set_column_separator(table, "  ") : -ENOMEM;

	for (size_t i = 0; !r && i < COLUMNS_MAX; i++)
		r = scols_table_new_column(table, "", 0, SCOLS_FL_HIDDEN) ? 0 : -ENOMEM;
	if (r)
		return false;
	scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER); /* no cell is cut to the width of a terminal */
	scols_table_enable_noencoding(table, 1); /* shown_text has escaped them */
	scols_table_enable_minout(table, 1); /* no line ends in blanks */
	return true;
}

struct rows *rows_new(bool json, const char *order)
{
	struct rows *rows = calloc(1, sizeof(*rows));
	struct span rest = span_of(order), field;

	if (!rows || (!json && !table_begin(rows))) {
		rows_free(rows);
		return NULL;
	}
	rows->json = json;
	while (span_word(&rest, &field))
		column_find(rows, field);
	return rows;
}

void rows_close(struct rows *rows)
{
	rows->closed = true;
}

/* Unless the last row has something there. line: where the field is from; NULL: from no line, and it is a text. */
static void cell_set(struct rows *rows, const struct redlock_line *line, struct span field, struct span value)
{
	char text[CELL_BYTES];
	size_t at = column_find(rows, field);
	int64_t number;

	if (at == COLUMNS_MAX || scols_cell_get_data(scols_line_get_cell(rows->last, at)))
		return;
	number = line ? redlock_line_number(line, rows->field[at], -1) : -1;
	if (is_duration(field) && number >= 0)
		age_text(number, text);
	else
		shown_text(value, text, span_equal(field, SPAN("note")) ? NOTE_SHOWN : sizeof(text));
	rows->failed |= scols_line_set_data(rows->last, at, text) != 0;
	scols_column_set_flags(scols_table_get_column(rows->table, at), 0);
}

void rows_add(struct rows *rows, const struct redlock_line *line)
{
	rows->count++;
	if (rows->json) {
		json_print_line(line, false);
		return;
	}
	rows->last = rows->failed ? NULL : scols_table_new_line(rows->table, NULL);
	rows->failed = !rows->last;
	for (size_t i = 0; !rows->failed && i < redlock_line_fields(line); i++) {
		struct redlock_bytes name = redlock_line_name(line, i), value = redlock_line_value(line, i);

		cell_set(rows, line, (struct span){name.p, name.n}, (struct span){value.p, value.n});
	}
}

void rows_fill(struct rows *rows, const char *field, struct span text)
{
	if (!rows->json && !rows->failed)
		cell_set(rows, NULL, span_of(field), text);
}

static bool is_shown(const struct rows *rows, const char *field)
{
	for (size_t i = 0; i < rows->columns; i++)
		if (!strcmp(rows->field[i], field))
			return !scols_column_is_hidden(scols_table_get_column(rows->table, i));
	return false;
}

/* The unit of a duration is not shown. Beside held_ms, for how long, held is how many slots of a semaphore are in use. */
static bool heading_set(struct rows *rows, size_t column)
{
	bool used = !strcmp(rows->field[column], "held") && is_shown(rows, "held_ms");
	struct span field = span_of(used ? "used" : rows->field[column]);
	char title[FIELD_BYTES] = "";

	field.n -= is_duration(field) ? 3 : 0;
	for (size_t i = 0; i < field.n; i++)
		title[i] = field.p[i] == '_' ? '-' : (char)toupper((unsigned char)field.p[i]);
	return scols_column_set_name(scols_table_get_column(rows->table, column), title) == 0;
}

int rows_end(struct rows *rows)
{
	locale_t before;
	int r;

	if (rows->json || !rows->count)
		return 0;
	for (size_t i = 0; i < rows->columns; i++)
		rows->failed |= !heading_set(rows, i);
	if (rows->failed)
		return -ENOMEM;
	before = uselocale(utf8_locale());
	r = scols_print_table(rows->table);
	uselocale(before);
	return r ? -ENOMEM : 0;
}
