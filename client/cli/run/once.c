/* SPDX-License-Identifier: BSD-2-Clause */
/* See once.h. */
#include "client/cli/run/once.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "client/cli/run/locks_held.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_BYTES 456

static const char *record_text(const struct redlock_run *r, const char *name, char out[TEXT_BYTES])
{
	char printable[SHOWN_BYTES], took[AGE_BYTES], rest[AGE_BYTES];

	snprintf(out, TEXT_BYTES, "%s ran on %s at %s for %s, status %d; it may begin again in %s", shown(name, printable), r->host, r->began,
		 age_text(r->took_ms, took), r->status, age_text(r->next_ms, rest));
	return out;
}

int once_status(const struct invocation *in)
{
	struct redlock *c = dial(in->addr);
	char text[TEXT_BYTES];
	struct redlock_run last;
	int r = c ? exit_of(c, redlock_once_status(c, in->operand, &last)) : EX_UNAVAILABLE;

	redlock_close(c);
	if (r)
		return r;
	if (!last.ran) {
		complain("%s: no run is known", in->operand);
		return EXIT_NO;
	}
	if (in->json) {
		json_print_text("{\"name\":", in->operand);
		json_print_text(",\"host\":", last.host);
		printf(",\"began\":\"%s\",\"took_ms\":%" PRId64 ",\"status\":%d,\"next_ms\":%" PRId64 "}\n", last.began, last.took_ms, last.status,
		       last.next_ms);
	} else {
		puts(record_text(&last, in->operand, text));
	}
	return output_end(last.status ? EXIT_NO : EXIT_SUCCESS);
}

bool once_is_due(const struct keeper_task *task, int *ret_exit)
{
	const struct redlock_run *last = &task->once->known.last;
	char text[TEXT_BYTES];
	int r = once_read(task->c, task->in->operand, &task->once->known);

	*ret_exit = r ? EXIT_FAILED : EXIT_SUCCESS;
	if (r)
		complain("%s", redlock_errmsg(task->c));
	else if (last->next_ms <= 0)
		return true;
	else if (!task->in->quiet)
		complain("%s", record_text(last, task->in->operand, text));
	return false;
}

/*
 * Stores the result, and again after the connection broke, because otherwise CMD runs again too early. A run that lost its lock does not count:
 * another host may run CMD already.
 */
void once_record(const struct keeper_task *task, int status)
{
	struct redlock_grant grant = task->grant;
	struct keeper_once *o = task->once;
	int r;

	once_end(&o->run, o->begun_us, task->in->every_ms, status);
	do {
		r = redlock_check(task->c, task->in->operand, &grant);
		if (!r)
			r = once_write(task->c, task->in->operand, &o->known, &o->run);
	} while (r == -ECONNABORTED && redlock_left_us(&grant) > 0);
	if (r && !loss_refused(task->c))
		complain("this run does not count: %s", redlock_errmsg(task->c));
}
