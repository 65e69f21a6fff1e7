/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints tables as kubectl does: a header in capitals, two spaces between columns, no borders. A duration is shown as an age.
 */
#include "client/rows.h"
#include "client/json.h"
#include "client/person.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 32
#define CELL_BYTES  600 /* enough for a whole name, unless most of it is escapes */
#define NOTE_SHOWN  60  /* a command line is cut */

struct column {
	char field[40];
	size_t width; /* 0: no row has this field */
};

struct rows {
	bool json, failed;
	bool closed;        /* no further columns */
	struct column column[COLUMNS_MAX];
	size_t columns;
	char **cells; /* rows of COLUMNS_MAX; NULL where a row has no such field */
	size_t count, room;
};

void rows_free(struct rows *rows)
{
	size_t i;

	if (!rows)
		return;
	for (i = 0; rows->cells && i < rows->count * COLUMNS_MAX; i++)
		free(rows->cells[i]);
	free(rows->cells);
	free(rows);
}

static bool is_duration(struct span field)
{
	return field.n > 3 && !memcmp(field.p + field.n - 3, "_ms", 3);
}

/* The title of a duration does not show the unit. */
static size_t title_n(const char *field)
{
	struct span span = span_of(field);

	return is_duration(span) ? span.n - 3 : span.n;
}

/* Adds the column if it is new. COLUMNS_MAX: there is no room for it. */
static size_t column_find(struct rows *rows, struct span field)
{
	struct column *column;
	size_t i;

	for (i = 0; i < rows->columns; i++)
		if (span_equal(span_of(rows->column[i].field), field))
			return i;
	if (rows->closed || i == COLUMNS_MAX || field.n >= sizeof(column->field))
		return COLUMNS_MAX;
	column = &rows->column[rows->columns++];
	memcpy(column->field, field.p, field.n);
	column->field[field.n] = '\0';
	return i;
}

struct rows *rows_new(bool json, const char *order)
{
	struct rows *rows = calloc(1, sizeof(*rows));
	size_t n;

	if (!rows)
		return NULL;
	rows->json = json;
	for (; *order; order += n + (order[n] == ' ')) {
		n = strcspn(order, " ");
		column_find(rows, (struct span){order, n});
	}
	return rows;
}

void rows_close(struct rows *rows)
{
	rows->closed = true;
}

static char *cell_make(struct span field, struct span value, int64_t number)
{
	char text[CELL_BYTES], age[AGE_BYTES];

	if (is_duration(field) && number >= 0)
		return strdup(age_text(number, age));
	shown_text(value, text, span_equal(field, SPAN("note")) ? NOTE_SHOWN : sizeof(text));
	return strdup(text);
}

static void column_widen(struct column *column, const char *cell)
{
	size_t width = shown_width(span_of(cell)), least = title_n(column->field);

	if (width < least)
		width = least;
	if (width > column->width)
		column->width = width;
}

static bool rows_grow(struct rows *rows)
{
	size_t room = rows->room ? 2 * rows->room : 64;
	char **cells;

	if (rows->count < rows->room)
		return true;
	cells = reallocarray(rows->cells, room, COLUMNS_MAX * sizeof(*cells));
	if (!cells)
		return false;
	rows->cells = cells;
	rows->room = room;
	return true;
}

static void cells_fill(struct rows *rows, char **cells, const struct redlock_line *line)
{
	size_t i, at;

	for (i = 0; i < redlock_line_fields(line); i++) {
		struct redlock_bytes name = redlock_line_name(line, i), value = redlock_line_value(line, i);
		struct span field = {name.p, name.n};

		at = column_find(rows, field);
		if (at == COLUMNS_MAX || cells[at])
			continue;
		cells[at] =
			cell_make(field, (struct span){value.p, value.n}, redlock_line_number(line, rows->column[at].field, -1));
		if (cells[at])
			column_widen(&rows->column[at], cells[at]);
		else
			rows->failed = true;
	}
}

void rows_add(struct rows *rows, const struct redlock_line *line)
{
	char **cells;

	if (rows->json) {
		json_print_line(line, false);
		rows->count++;
		return;
	}
	if (rows->failed || !rows_grow(rows)) {
		rows->failed = true;
		return;
	}
	cells = rows->cells + rows->count++ * COLUMNS_MAX;
	memset(cells, 0, COLUMNS_MAX * sizeof(*cells));
	cells_fill(rows, cells, line);
}

void rows_fill(struct rows *rows, const char *field, struct span text)
{
	size_t at = column_find(rows, span_of(field));
	char **cell;

	if (rows->json || rows->failed || at == COLUMNS_MAX)
		return;
	cell = &rows->cells[(rows->count - 1) * COLUMNS_MAX + at];
	if (*cell)
		return;
	*cell = cell_make(span_of(field), text, -1);
	if (*cell)
		column_widen(&rows->column[at], *cell);
	else
		rows->failed = true;
}

static void pad(size_t n)
{
	while (n--)
		putchar(' ');
}

/* Blanks are printed when a cell follows, so that no line ends in blanks. */
static void cell_print(const struct column *column, const char *text, size_t *blanks)
{
	if (*text) {
		pad(*blanks);
		fputs(text, stdout);
		*blanks = 0;
	}
	*blanks += column->width + 2 - shown_width(span_of(text));
}

static void row_print(const struct rows *rows, char *const *cells)
{
	size_t blanks = 0, i;

	for (i = 0; i < rows->columns; i++)
		if (rows->column[i].width)
			cell_print(&rows->column[i], cells[i] ? cells[i] : "", &blanks);
	putchar('\n');
}

static bool is_shown(const struct rows *rows, const char *field)
{
	for (size_t i = 0; i < rows->columns; i++)
		if (rows->column[i].width && !strcmp(rows->column[i].field, field))
			return true;
	return false;
}

/* Beside held_ms, for how long, held is how many slots of a semaphore are in use: a heading of the same length, so that widths hold. */
static const char *heading(const struct rows *rows, const char *field)
{
	return !strcmp(field, "held") && is_shown(rows, "held_ms") ? "used" : field;
}

static void header_print(const struct rows *rows)
{
	size_t blanks = 0, i, j;
	char title[sizeof(rows->column[0].field)];

	for (i = 0; i < rows->columns; i++) {
		if (!rows->column[i].width)
			continue;
		snprintf(title, sizeof(title), "%s", heading(rows, rows->column[i].field));
		title[title_n(title)] = '\0';
		for (j = 0; title[j]; j++)
			title[j] = title[j] == '_' ? '-' : (char)toupper((unsigned char)title[j]);
		cell_print(&rows->column[i], title, &blanks);
	}
	putchar('\n');
}

int rows_end(struct rows *rows)
{
	size_t i;

	if (rows->failed)
		return -ENOMEM;
	if (!rows->json && rows->count) {
		header_print(rows);
		for (i = 0; i < rows->count; i++)
			row_print(rows, rows->cells + i * COLUMNS_MAX);
	}
	return 0;
}
