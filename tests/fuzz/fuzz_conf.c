/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads any text as a configuration, and its first line as the argument of --set. An accepted configuration must be read from its own dump with the same
 * values. All messages must be printable.
 */
#include "conf/conf.h"
#include "conf/words.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void printable_check(const char *text, size_t n)
{
	for (size_t at = 0; at < n;) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t length = end ? (size_t)(end - text) - at : n - at;

		if (!text_printable(text + at, length))
			abort();
		at += length + 1;
	}
}

/* Checks and drops the messages. Returns whether there were errors. */
static bool report_take(struct conf_report *report, char **text, size_t *n)
{
	bool bad = report->errors > 0;

	conf_report_print(report);
	fclose(report->out);
	printable_check(*text, *n);
	free(*text);
	return bad;
}

static void change_refuse(void *context, const char *path, const char *from, const char *to, bool reloadable)
{
	(void)context, (void)reloadable;
	fprintf(stderr, "%s: %s became %s\n", path, from, to);
	abort();
}

static void dump_check(const struct conf *c)
{
	struct conf_report report = {0};
	struct conf again;
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	conf_dump(c, out);
	conf_summary(c, out);
	fclose(out);
	printable_check(text, n);
	conf_init(&again);
	if (conf_load_text(&again, "dump", text, (size_t)(strstr(text, "\nok: ") - text) + 1, &report) ||
	    conf_check(&again, &report))
		abort();
	(void)conf_diff(c, &again, change_refuse, NULL);
	conf_release(&again);
	free(text);
}

static void text_try(const char *bytes, size_t n, bool assignment)
{
	char *told = NULL, *line = strndup(bytes, n);
	size_t size;
	struct conf_report report = {.out = open_memstream(&told, &size)};
	struct conf c;

	conf_init(&c);
	if (assignment)
		(void)conf_set(&c, line, &report);
	else
		(void)conf_load_text(&c, "fuzz.yaml", bytes, n, &report);
	(void)conf_check(&c, &report);
	if (!report_take(&report, &told, &size))
		dump_check(&c);
	conf_release(&c);
	free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const char *text = (const char *)bytes, *end = n ? memchr(text, '\n', n) : NULL;

	text_try(n ? text : "", n, false);
	if (n)
		text_try(text, end ? (size_t)(end - text) : n, true);
	return 0;
}
