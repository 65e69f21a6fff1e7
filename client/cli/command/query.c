/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ls, clients, queues, jobs, nodes, stats, show, complete, recent and raw: each sends a request, or one per page, and prints the rows of the answer.
 */
#include "client/cli/io/invocation.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "client/lib/display.h"
#include "proto/proto.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <libsmartcols/libsmartcols.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_ROWS    1000
#define BUCKETS_MOST 64
#define COLUMNS_MAX  32
#define CELL_BYTES   600 /* enough for a whole name, unless most of it is escapes */
#define NOTE_SHOWN   60  /* a command line is cut */
#define FIELD_BYTES  40

/* --- a table --- */

/*
 * Prints tables as kubectl does, with libsmartcols: a header in capitals, two spaces between columns, no borders. It shows durations as ages. A
 * column in which no row has a value is hidden.
 */
struct rows {
	bool json, of_locks, failed;
	bool closed; /* no more columns may be added */
	char field[COLUMNS_MAX][FIELD_BYTES]; /* the field of each column */
	size_t columns, count;
	struct libscols_table *table;
	struct libscols_line *last;
};

/* Finds the column of a field, or adds it. COLUMNS_MAX: there is no room for it. */
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

/* libsmartcols takes no new column after the first row, so all columns are added at the start. False: out of memory. */
static bool table_begin(struct libscols_table *table)
{
	if (!table || scols_table_set_column_separator(table, "  "))
		return false;
	for (size_t i = 0; i < COLUMNS_MAX; i++)
		if (!scols_table_new_column(table, "", 0, SCOLS_FL_HIDDEN))
			return false;
	scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER); /* do not cut cells to the width of the terminal */
	scols_table_enable_noencoding(table, 1); /* shown_text has escaped them */
	scols_table_enable_minout(table, 1); /* no line ends in blanks */
	return true;
}

/* order: the fields that come first, separated by blanks. Other fields follow as they appear, or are left out. rows_end reports lack of memory. */
static void rows_begin(struct rows *rows, const struct invocation *in, const char *order, bool others)
{
	struct span rest = span_of(order), field;

	*rows = (struct rows){.json = in->json, .of_locks = command_id(in) == CLI_LS};
	if (!in->json)
		rows->failed = !table_begin(rows->table = scols_new_table());
	while (span_word(&rest, &field))
		column_find(rows, field);
	rows->closed = !others;
}

/* Sets a cell of the last row, unless it has a value. JSON has no cells. line: the line with the field; NULL: value is plain text. */
static void cell_set(struct rows *rows, const struct redlock_line *line, struct span field, struct span value)
{
	char text[CELL_BYTES];
	size_t at = rows->last ? column_find(rows, field) : COLUMNS_MAX;
	int64_t number;

	if (at == COLUMNS_MAX || scols_cell_get_data(scols_line_get_cell(rows->last, at)))
		return;
	number = line ? redlock_line_number(line, rows->field[at], -1) : -1;
	if (field_is_duration(field) && number >= 0)
		age_text(number, text);
	else
		shown_text(value, text, span_equal(field, SPAN("note")) ? NOTE_SHOWN : sizeof(text));
	rows->failed |= scols_line_set_data(rows->last, at, text) != 0;
	scols_column_set_flags(scols_table_get_column(rows->table, at), 0);
}

/* Adds a row. With JSON, prints it instead. */
static void rows_add(void *arg, const struct redlock_line *line)
{
	struct rows *rows = arg;

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

/* Shows no unit for a duration. "held" becomes "used", because next to held_ms it means the slots of a semaphore in use. */
static bool heading_set(struct rows *rows, size_t column)
{
	bool used = rows->of_locks && !strcmp(rows->field[column], "held");
	struct span field = span_of(used ? "used" : rows->field[column]);
	char title[FIELD_BYTES] = "";

	field.n -= field_is_duration(field) ? 3 : 0;
	for (size_t i = 0; i < field.n; i++)
		title[i] = field.p[i] == '_' ? '-' : (char)toupper((unsigned char)field.p[i]);
	return scols_column_set_name(scols_table_get_column(rows->table, column), title) == 0;
}

/* Returns the exit code. Prints the table, unless the exit code is not 0 already. */
static int rows_end(struct rows *rows, int exit)
{
	locale_t before = uselocale(utf8_locale());

	for (size_t i = 0; rows->table && i < rows->columns; i++)
		rows->failed |= !heading_set(rows, i);
	if (!exit && (rows->failed || (rows->table && rows->count > 0 && scols_print_table(rows->table)))) {
		complain("out of memory");
		exit = EX_UNAVAILABLE;
	}
	uselocale(before);
	scols_unref_table(rows->table);
	return exit;
}

/* --- lists --- */

/* A session without a user is shown with its certificate or its uid. */
static void session_row(void *arg, const struct redlock_line *row)
{
	struct span cert = field_of(row, "cert");
	int64_t uid = redlock_line_number(row, "uid", -1);
	char text[32];

	rows_add(arg, row);
	if (cert.p)
		cell_set(arg, NULL, SPAN("user"), cert);
	else if (uid >= 0 && snprintf(text, sizeof(text), "uid %" PRId64, uid) > 0)
		cell_set(arg, NULL, SPAN("user"), span_of(text));
}

/* People who see no rows wonder whether it worked, so this tells them. Programs need no text. */
static void none_complain(const struct invocation *in)
{
	char name[SHOWN_BYTES];

	if (in->json || !isatty(STDOUT_FILENO) || !stderr_is_ready())
		return;
	shown(in->operand ? in->operand : "", name);
	if (command_id(in) == CLI_LS)
		complain("through this daemon nobody holds a lock, or waits for one%s%s", in->operand ? ", whose name begins with " : "", name);
	else
		complain("there are no %s%s%s", in->command->word, in->operand ? " of " : "", name);
}

static int list(struct redlock *c, const struct invocation *in, enum redlock_listing what, const char *order, bool others)
{
	struct redlock_page page = {.size = sizeof(page), .prefix = in->operand, .limit = PAGE_ROWS};
	struct rows rows;
	int64_t astray;
	int r;

	rows_begin(&rows, in, order, others);
	r = list_all(c, what, &page, what == REDLOCK_SESSIONS && !others ? session_row : rows_add, &rows);
	astray = r ? 0 : redlock_line_number(redlock_answer(c), "astray", 0);
	r = rows_end(&rows, exit_of(c, r));
	if (!r && !rows.count)
		none_complain(in);
	if (!r && astray > 0)
		complain("%" PRId64 " %s jobs at a store that is not %s home, and nobody takes them: see CHANGING THE SERVERS in redlockd(8)", astray,
		         astray == 1 ? "queue has" : "queues have", astray == 1 ? "its" : "their");
	return r;
}

int ls_ask(struct redlock *c, const struct invocation *in)
{
	if (in->whole)
		return list(c, in, REDLOCK_LOCKS, "name holder held_ms valid_ms ttl_ms fence count mode holders waiters session", true);
	return list(c, in, REDLOCK_LOCKS, "name holder held_ms mode holders kind limit held waiters alarm", false);
}

int clients_ask(struct redlock *c, const struct invocation *in)
{
	if (in->whole)
		return list(c, in, REDLOCK_SESSIONS, "session name user cert pid uid peer held waiting age_ms idle_ms", true);
	return list(c, in, REDLOCK_SESSIONS, "session name user pid peer held waiting age_ms detached_ms", false);
}

int queues_ask(struct redlock *c, const struct invocation *in)
{
	return list(c, in, REDLOCK_QUEUES, "queue due leased dead next_ms", true);
}

int jobs_ask(struct redlock *c, const struct invocation *in)
{
	return list(c, in, REDLOCK_JOBS, "job state due_ms lease_ms dead_ms failed name payload", true);
}

int nodes_ask(struct redlock *c, const struct invocation *in)
{
	return list(c, in, REDLOCK_NODES, "node address state rtt_us left_ms fence reason", true);
}

/* --- names --- */

/* Prints a name. If it has blanks or control characters, it is quoted as in the protocol, so that it can be used again. */
static void name_row(void *arg, const struct redlock_line *row)
{
	struct redlock_bytes name = redlock_line_find(row, "name");
	char quoted[4 * NAME_MAX_BYTES + 3];
	const bool *json = arg;

	if (*json)
		json_print_line(row, false);
	else if (name.p && !redlock_quote(name, quoted, sizeof(quoted)))
		puts(quoted);
}

int complete_ask(struct redlock *c, const struct invocation *in)
{
	bool json = in->json;

	return exit_of(c, redlock_complete(c, in->operand, PAGE_ROWS, name_row, &json));
}

int recent_ask(struct redlock *c, const struct invocation *in)
{
	bool json = in->json;

	return exit_of(c, redlock_recent(c, in->operand, 0, name_row, &json));
}

/* --- stats --- */

/* The buckets of a histogram are for programs. People see quantiles next to its count. */
struct stats {
	struct rows rows;
	size_t buckets;
	struct {
		char le[24];
		int64_t count; /* the count up to this bound */
	} bucket[BUCKETS_MOST];
};

static bool ends_with(struct span name, const char *end)
{
	size_t n = strlen(end);

	return name.n > n && !memcmp(name.p + name.n - n, end, n);
}

/* Sets the bound that at least that percentage of the values does not exceed. */
static void quantile_fill(struct stats *s, struct span field, int percent)
{
	int64_t all = s->buckets ? s->bucket[s->buckets - 1].count : 0;
	size_t i = 0;

	if (all == 0)
		return;
	while (i < s->buckets - 1 && (double)s->bucket[i].count * 100 < (double)all * percent)
		i++;
	cell_set(&s->rows, NULL, field, span_of(s->bucket[i].le));
}

static void stats_row(void *arg, const struct redlock_line *row)
{
	struct span metric = field_of(row, "metric"), le = field_of(row, "le");
	struct stats *s = arg;

	if (!s->rows.json && ends_with(metric, "_bucket")) {
		if (s->buckets == BUCKETS_MOST || !le.p)
			return;
		snprintf(s->bucket[s->buckets].le, sizeof(s->bucket->le), "%.*s", (int)le.n, le.p);
		s->bucket[s->buckets++].count = redlock_line_number(row, "value", 0);
		return;
	}
	rows_add(&s->rows, row);
	if (ends_with(metric, "_count")) {
		quantile_fill(s, SPAN("p50"), 50);
		quantile_fill(s, SPAN("p99"), 99);
		s->buckets = 0;
	}
}

int stats_ask(struct redlock *c, const struct invocation *in)
{
	struct stats s = {0};

	rows_begin(&s.rows, in, "metric value p50 p99", true);
	return rows_end(&s.rows, exit_of(c, redlock_request(c, "STATS all", 0, stats_row, &s)));
}

/* --- show --- */

struct show {
	struct rows rows;
	bool held;      /* somebody holds the lock, or it is kept for a while */
	size_t former;  /* how many rows are about former holders */
	char host[128]; /* the host of a holder elsewhere that has not reported who it is; "": there is none */
};

static void show_row(void *arg, const struct redlock_line *row)
{
	struct span holder = field_of(row, "holder");
	struct show *s = arg;

	rows_add(&s->rows, row);
	s->held |= field_is(row, "role", "holder") || field_is(row, "role", "kept");
	s->former += field_is(row, "role", "former");
	if (field_is(row, "role", "holder") && !field_of(row, "peer").p && holder.n > 1 && holder.p[0] == '@')
		shown_text((struct span){holder.p + 1, holder.n - 1}, s->host, sizeof(s->host));
}

int show_ask(struct redlock *c, const struct invocation *in)
{
	const struct redlock_view view = {.size = sizeof(view), .all = true, .former = true};
	struct show s = {.held = false};
	char name[SHOWN_BYTES];
	bool known;
	int r;

	rows_begin(&s.rows, in,
		   "role pos holder kept_by name pid uid peer session held_ms seen_ms waited_ms priority "
		   "kept_ms ended_ms end valid_ms ttl_ms fence count mode owner note", true);
	r = redlock_show(c, in->operand, &view, show_row, &s);
	known = r || !field_of(redlock_answer(c), "known").p;
	r = rows_end(&s.rows, exit_of(c, r));
	shown(in->operand, name);
	if (!r && s.host[0] && !in->json && isatty(STDERR_FILENO) && stderr_is_ready())
		complain("%s does not report the holder: redlock --addr %s:7420 show %s", s.host, s.host, name);
	if (r || s.held)
		return r;
	if (!known) {
		complain("it is not known who has %s: too few stores answer, or they disagree", name);
		return EX_UNAVAILABLE;
	}
	if (s.rows.count == s.former && !in->json)
		complain("%s is free", name);
	return EXIT_NO;
}

/* --- raw --- */

/* Prints the line as it arrived: the protocol quotes control characters. */
static void raw_row(void *arg, const struct redlock_line *row)
{
	const bool *json = arg;
	struct redlock_bytes text = redlock_line_text(row);

	if (*json) {
		json_print_line(row, true);
		return;
	}
	fwrite(text.p, 1, text.n, stdout);
	putchar('\n');
}

int raw_ask(struct redlock *c, const struct invocation *in)
{
	const struct redlock_line *push;
	bool json = in->json;
	/* The line itself says how long the daemon may wait. Without a wait the answer is due at once. */
	int r = redlock_request(c, in->operand, strcasestr(in->operand, "wait=") ? REDLOCK_FOREVER : 0, raw_row, &json);

	if (r >= 0)
		raw_row(&json, redlock_answer(c));
	while ((push = redlock_next_push(c)))
		raw_row(&json, push);
	if (r >= 0)
		return r ? EXIT_NO : EXIT_SUCCESS;
	complain("%s%s", redlock_errmsg(c), silence_hint(r));
	return r == -EINVAL || r == -EMSGSIZE ? EX_USAGE : EX_UNAVAILABLE;
}
