/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ls, clients, queues, jobs, nodes, stats, show, complete, recent and raw: each sends one request, or one per page, and prints the rows of the answer.
 */
#include "client/cli/io/invocation.h"
#include "client/cli/io/complaint.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/field.h"
#include "client/cli/io/terminal.h"
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
 * Prints tables as kubectl does, with libsmartcols: a header in capitals, two spaces between columns, no borders. A duration is shown as an age. A column
 * that no row has a value for is hidden.
 */
struct rows {
	bool json, failed;
	bool closed; /* no further columns */
	char field[COLUMNS_MAX][FIELD_BYTES]; /* of each column */
	size_t columns, count;
	struct libscols_table *table;
	struct libscols_line *last;
};

static void rows_free(struct rows *rows)
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

/* NULL: out of memory. order: the fields that come first, separated by blanks; other fields follow as they appear. */
static struct rows *rows_new(bool json, const char *order)
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

/* Leaves out all fields that order did not name. */
static void rows_close(struct rows *rows)
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

/* Adds a row or, as JSON, prints it. rows_end tells when memory ran out. */
static void rows_add(struct rows *rows, const struct redlock_line *line)
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

/* What the last row of a table has in this column of order, if it has nothing there. JSON has what the daemon sends. */
static void rows_fill(struct rows *rows, const char *field, struct span text)
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

/* Prints the table. 0 or -ENOMEM. */
static int rows_end(struct rows *rows)
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

/* --- rows of one request --- */

struct listing {
	struct redlock *c;
	struct rows *rows;
	size_t got;     /* how many rows this page had */
	size_t all;     /* … and all pages */
	bool of_people; /* rows of sessions, for people */
	bool held;      /* SHOW: somebody holds the lock, or it is kept for a while … */
	size_t former;  /* … and so many rows are of those who held it before */
	char host[128]; /* SHOW: the host of a holder elsewhere that is not known; "": there is none */
};

/* That has not told who it is. */
static void host_note(struct listing *l, const struct redlock_line *row)
{
	struct span holder = field_of(row, "holder");

	if (field_is(row, "role", "holder") && !field_of(row, "peer").p && holder.n > 1 && holder.p[0] == '@')
		shown_text((struct span){holder.p + 1, holder.n - 1}, l->host, sizeof(l->host));
}

/* Whoever has shown no user is known by its certificate or its uid. */
static void user_fill(struct listing *l, const struct redlock_line *row)
{
	struct span cert = field_of(row, "cert");
	int64_t uid = redlock_line_number(row, "uid", -1);
	char text[32];

	if (cert.p)
		rows_fill(l->rows, "user", cert);
	else if (uid >= 0 && snprintf(text, sizeof(text), "uid %" PRId64, uid) > 0)
		rows_fill(l->rows, "user", span_of(text));
}

static void listing_row(void *arg, const struct redlock_line *row)
{
	struct listing *l = arg;

	l->held |= field_is(row, "role", "holder") || field_is(row, "role", "kept");
	host_note(l, row);
	l->former += field_is(row, "role", "former");
	l->got++;
	l->all++;
	rows_add(l->rows, row);
	if (l->of_people)
		user_fill(l, row);
}

/* Prints what is left, and frees the connection and the rows whatever happens. */
static int listing_end(struct listing *l, int outcome)
{
	int r = exit_of(l->c, outcome), w;

	w = l->rows && !r ? rows_end(l->rows) : 0;
	if (w)
		complain("%s", strerror(-w));
	rows_free(l->rows);
	redlock_close(l->c);
	return w ? EX_UNAVAILABLE : r;
}

static int listing_begin(struct listing *l, const struct invocation *in, const char *order)
{
	memset(l, 0, sizeof(*l));
	l->c = dial(in->addr);
	if (!l->c)
		return EX_UNAVAILABLE;
	l->rows = rows_new(in->json, order);
	if (l->rows)
		return 0;
	redlock_close(l->c);
	complain("out of memory");
	return EX_UNAVAILABLE;
}

/* --- pages --- */

/* A person who sees nothing asks whether all went well. A program reads no rows. */
static void none_say(const char *what, const struct invocation *in)
{
	char shown[200];

	if (in->json || !isatty(STDOUT_FILENO) || !stderr_is_ready())
		return;
	shown_text(span_of(in->operand ? in->operand : ""), shown, sizeof(shown));
	if (!strcmp(what, "locks") && in->operand)
		complain("through this daemon nobody holds a lock, or waits for one, whose name begins with %s", shown);
	else if (!strcmp(what, "locks"))
		complain("through this daemon nobody holds a lock, or waits for one");
	else
		complain("there are no %s%s%s", what, in->operand ? " of " : "", shown);
}

static void astray_say(int64_t n)
{
	bool one = n == 1;

	complain("%" PRId64 " %s jobs at a store that is not %s home, and nobody takes them: see CHANGING THE SERVERS in redlockd(8)", n,
	         one ? "queue has" : "queues have", one ? "its" : "their");
}

/* A page without rows is the last, even if the daemon announces more. */
static int pages_ask(struct listing *l, enum redlock_listing what, const char *prefix)
{
	struct redlock_page page = {.size = sizeof(page), .prefix = prefix, .limit = PAGE_ROWS};
	int r = 0;

	do {
		l->got = 0;
		r = redlock_list(l->c, what, &page, listing_row, l);
	} while (!r && l->got && page.more > 0);
	return r;
}

/* brief: rows have the fields of order only. */
static int pages_of(const struct invocation *in, enum redlock_listing what, const char *word, const char *order, bool brief)
{
	struct listing l;
	int64_t astray;
	int r = listing_begin(&l, in, order);

	if (r)
		return r;
	if (brief)
		rows_close(l.rows);
	l.of_people = brief && what == REDLOCK_SESSIONS;
	r = pages_ask(&l, what, in->operand);
	astray = r ? 0 : redlock_line_number(redlock_answer(l.c), "astray", 0);
	r = listing_end(&l, r);
	if (!r && !l.all)
		none_say(word, in);
	if (!r && astray > 0)
		astray_say(astray);
	return r;
}

/* --- the commands --- */

int ls_main(const struct invocation *in)
{
	if (in->whole)
		return pages_of(in, REDLOCK_LOCKS, "locks", "name holder held_ms valid_ms ttl_ms fence count mode holders waiters session", false);
	return pages_of(in, REDLOCK_LOCKS, "locks", "name holder held_ms mode holders kind limit held waiters alarm", true);
}

int clients_main(const struct invocation *in)
{
	if (in->whole)
		return pages_of(in, REDLOCK_SESSIONS, "sessions", "session name user cert pid uid peer held waiting age_ms idle_ms", false);
	return pages_of(in, REDLOCK_SESSIONS, "sessions", "session name user pid peer held waiting age_ms detached_ms", true);
}

int queues_main(const struct invocation *in)
{
	return pages_of(in, REDLOCK_QUEUES, "queues", "queue due leased dead next_ms", false);
}

int jobs_main(const struct invocation *in)
{
	return pages_of(in, REDLOCK_JOBS, "jobs", "job state due_ms lease_ms dead_ms failed name payload", false);
}

int nodes_main(const struct invocation *in)
{
	return pages_of(in, REDLOCK_NODES, "nodes", "node address state rtt_us left_ms fence reason", false);
}

/* A name with blanks or control characters is quoted as the protocol does, so that it can be used again. */
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

static int names_print(const struct invocation *in, bool recent)
{
	struct redlock *c = dial(in->addr);
	bool json = in->json;
	int r;

	if (!c)
		return EX_UNAVAILABLE;
	r = exit_of(c, recent ? redlock_recent(c, in->operand, 0, name_row, &json) : redlock_complete(c, in->operand, PAGE_ROWS, name_row, &json));
	redlock_close(c);
	return r;
}

int complete_main(const struct invocation *in)
{
	return names_print(in, false);
}

int recent_main(const struct invocation *in)
{
	return names_print(in, true);
}

/* The buckets of a histogram are for programs: people see the quantiles beside its count. */
struct stats {
	struct rows *rows;
	size_t buckets;
	struct {
		char le[24];
		int64_t count; /* of all up to there */
	} bucket[BUCKETS_MOST];
};

static bool ends_with(struct span name, const char *end)
{
	size_t n = strlen(end);

	return name.n > n && !memcmp(name.p + name.n - n, end, n);
}

static void bucket_note(struct stats *s, const struct redlock_line *row)
{
	struct span le = field_of(row, "le");

	if (s->buckets == BUCKETS_MOST || !le.p)
		return;
	snprintf(s->bucket[s->buckets].le, sizeof(s->bucket->le), "%.*s", (int)le.n, le.p);
	s->bucket[s->buckets++].count = redlock_line_number(row, "value", 0);
}

/* The bound that so many per cent do not exceed. */
static void quantile_fill(const struct stats *s, const char *field, int percent)
{
	int64_t all = s->buckets ? s->bucket[s->buckets - 1].count : 0;
	size_t i = 0;

	if (all == 0)
		return;
	while (i < s->buckets - 1 && (double)s->bucket[i].count * 100 < (double)all * percent)
		i++;
	rows_fill(s->rows, field, span_of(s->bucket[i].le));
}

static void stats_row(void *arg, const struct redlock_line *row)
{
	struct span metric = field_of(row, "metric");
	struct stats *s = arg;

	if (ends_with(metric, "_bucket")) {
		bucket_note(s, row);
		return;
	}
	rows_add(s->rows, row);
	if (ends_with(metric, "_count")) {
		quantile_fill(s, "p50", 50);
		quantile_fill(s, "p99", 99);
		s->buckets = 0;
	}
}

int stats_main(const struct invocation *in)
{
	struct listing l;
	struct stats s = {0};
	int r = listing_begin(&l, in, "metric value p50 p99");

	if (r)
		return r;
	s.rows = l.rows;
	return listing_end(&l, in->json ? redlock_request(l.c, "STATS all", 0, listing_row, &l) : redlock_request(l.c, "STATS all", 0, stats_row, &s));
}

int show_main(const struct invocation *in)
{
	const struct redlock_view view = {.size = sizeof(view), .all = true, .former = true};
	char shown[200];
	struct listing l;
	bool known;
	int r = listing_begin(&l, in,
			      "role pos holder kept_by name pid uid peer session held_ms seen_ms waited_ms priority "
			      "kept_ms ended_ms end valid_ms ttl_ms fence count mode owner note");

	if (r)
		return r;
	r = redlock_show(l.c, in->operand, &view, listing_row, &l);
	known = r || !field_of(redlock_answer(l.c), "known").p;
	r = listing_end(&l, r);
	shown_text(span_of(in->operand), shown, sizeof(shown));
	if (!r && l.host[0] && !in->json && isatty(STDERR_FILENO) && stderr_is_ready())
		complain("%s does not report the holder: redlock --addr %s:7420 show %s", l.host, l.host, shown);
	if (r || l.held)
		return r;
	if (!known) {
		complain("it is not known who has %s: too few stores answer, or they disagree", shown);
		return EX_UNAVAILABLE;
	}
	if (l.got == l.former && !in->json)
		complain("%s is free", shown);
	return EXIT_NO;
}

/* Prints the line as it came: the protocol quotes control characters. */
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

static int raw_exit(int outcome)
{
	if (outcome == -EINVAL || outcome == -EMSGSIZE)
		return EX_USAGE;
	if (outcome < 0)
		return EX_UNAVAILABLE;
	return outcome ? EXIT_NO : EXIT_SUCCESS;
}

int raw_main(const struct invocation *in)
{
	struct redlock *c = dial(in->addr);
	const struct redlock_line *push;
	bool json = in->json;
	int r;

	if (!c)
		return EX_UNAVAILABLE;
	/* The line itself says how long the daemon may wait; without a wait the answer is due at once. */
	r = redlock_request(c, in->operand, strcasestr(in->operand, "wait=") ? REDLOCK_FOREVER : 0, raw_row, &json);
	if (r >= 0)
		raw_row(&json, redlock_answer(c));
	while ((push = redlock_next_push(c)))
		raw_row(&json, push);
	if (r < 0)
		complain("%s%s", redlock_errmsg(c), silence_hint(r));
	redlock_close(c);
	return raw_exit(r);
}
