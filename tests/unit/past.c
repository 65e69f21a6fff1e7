/* SPDX-License-Identifier: BSD-2-Clause */
/* What the daemon does with its journal, in its order. */
#include "tests/unit/past.h"

#include "daemon/base/log.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct past past;

void past_start(void)
{
	strcpy(past.dir, "/tmp/journal.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(past.dir));
	snprintf(past.path, sizeof(past.path), "%s/journal", past.dir);
	snprintf(past.bad, sizeof(past.bad), "%s/journal.bad", past.dir);
	snprintf(past.temp, sizeof(past.temp), "%s/journal.new", past.dir);
	past.now = (struct instant){1000 * SEC};
	log_set_level(LOG_ERROR);
}

void past_stop(void)
{
	chmod(past.dir, 0700);
	unlink(past.path);
	unlink(past.bad);
	ck_assert_int_eq(rmdir(past.dir), 0);
}

void past_life(const char *boot)
{
	ck_assert_int_eq(journal_open(&past.j, past.dir, boot, past.now), 0);
}

void past_add(const char *text)
{
	journal_add(&past.j, span_of(text));
}

void past_write(const char *text)
{
	past_add(text);
	journal_write(&past.j, past.now);
}

void past_snapshot(const char *text)
{
	journal_begin(&past.j);
	if (text)
		past_add(text);
	journal_end(&past.j, past.now);
}

const char *past_read(void)
{
	static char text[4096];
	struct span record;
	size_t n = 0;

	while (journal_next(&past.j, &record)) {
		ck_assert_uint_lt(n + record.n + 1, sizeof(text));
		memcpy(text + n, record.p, record.n);
		n += record.n;
		text[n++] = '|';
	}
	text[n] = '\0';
	journal_forget(&past.j);
	return text;
}

const char *next_life_reads(const char *boot)
{
	const char *text;

	past_life(boot);
	text = past_read();
	journal_close(&past.j);
	return text;
}

off_t past_size(void)
{
	struct stat st;

	return stat(past.path, &st) < 0 ? -1 : st.st_size;
}

void past_write_three(void)
{
	past_life(PAST_BOOT);
	past_add("one");
	past_write("");
	past_write("three");
	journal_close(&past.j);
}
