/* SPDX-License-Identifier: BSD-2-Clause */
/* The jobs of the memory store, which outlast the daemon: where their file is, and what the log tells of it. */
#include "daemon/main/internal.h"

#include "daemon/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LOOK_EVERY SEC

/* A folder that is missing is made when the daemon starts, not its parents. What is wrong with it shows at each look. */
void lasting_open(struct daemon *d)
{
	const char *systemd = getenv("STATE_DIRECTORY"), *dir = d->conf->state_dir;
	char first[JOBS_PATH];

	snprintf(first, sizeof(first), "%.*s", (int)strcspn(systemd ? systemd : "", ":"), systemd ? systemd : "");
	if (!dir)
		dir = *first ? first : d->runtime.dir;
	(void)mkdir(dir, 0700);
	job_file_init(&d->jobs, dir, d->runtime.dir);
}

void lasting_close(struct daemon *d)
{
	job_file_close(&d->jobs);
}

/* What there is to tell of a file that was set aside: once. */
static const char *moved(struct daemon *d)
{
	bool aside = d->jobs.aside;

	d->jobs.aside = false;
	return aside ? " moved_to=jobs.db.bad" : "";
}

static void tell_lost(struct daemon *d)
{
	int why = d->jobs.lost;
	const char *note = why == JOBS_SPARE_LOST ? "redlockd makes it again" :
			   d->jobs.failed ? "redlockd has its jobs in memory alone until it can put them into a new one; a kill before that may lose some" :
					    "redlockd has put its jobs into a new one";

	d->jobs.lost = 0;
	if (why)
		log_event(LOG_ERROR, "jobs", "dir=%s error=\"%s\"%s note=\"%s\"", d->jobs.dir, jobs_trouble(why), moved(d), note);
}

static void tell(struct daemon *d)
{
	int error = job_file_trouble(&d->jobs);
	const char *note = d->jobs.unread     ? "all requests about jobs are refused until it can be read" :
			   error == JOBS_SHUT ? "jobs are written as before" :
						"DEFER and TAKE are refused until it can be written";

	tell_lost(d);
	if (error == d->jobs_error)
		return;
	if (error)
		log_event(LOG_ERROR, "jobs", "dir=%s error=\"%s\" note=\"%s\"", d->jobs.dir, jobs_trouble(error), note);
	else
		log_event(LOG_NOTICE, "jobs", "dir=%s%s note=\"is written again\"", d->jobs.dir, moved(d));
	d->jobs_error = error;
}

/* Sessions that were carried here are worth more than a file that cannot be read: jobs are refused until it can, and tell() says why. */
int lasting_restore(struct daemon *d)
{
	struct jobs_found found;

	memory_restore_jobs(d->memory, &d->jobs, (state_later_us(&d->state) + MSEC - 1) / MSEC, &found);
	if (found.stays && d->carried)
		return 0;
	if (found.stays)
		log_event(LOG_ERROR, "jobs", "dir=%s error=\"%s\" note=\"redlockd does not start before it can be read: else its jobs would be lost\"",
		          d->jobs.dir, jobs_trouble(found.error));
	else if (found.error)
		log_event(LOG_ERROR, "jobs",
		          "dir=%s error=\"%s\" moved_to=jobs.db.bad note=\"its jobs are lost, unless `sqlite3 jobs.db.bad .recover` has them\"",
		          d->jobs.dir, jobs_trouble(found.error));
	else if (found.jobs > 0)
		log_event(LOG_INFO, "jobs", "dir=%s jobs=%zu", d->jobs.dir, found.jobs);
	if (found.unsaid)
		log_event(LOG_ERROR, "jobs",
		          "dir=%s error=\"%s\" note=\"it cannot be written that leases end later by the clock of this run. If the daemon is killed before it "
		          "can be, jobs may be handed out while others run them\"",
		          d->jobs.dir, jobs_trouble(found.unsaid));
	d->jobs.aside = false;
	tell_lost(d);
	return found.stays ? found.error : 0;
}

void lasting_tick(struct daemon *d)
{
	struct instant now = clock_boottime();

	if (d->memory && !instant_before(now, d->jobs_at))
		d->jobs_at = memory_look(d->memory) ? now : instant_add(now, LOOK_EVERY);
	tell(d);
}

void lasting_stop(struct daemon *d)
{
	(void)memory_look(d->memory);
	(void)memory_write_jobs(d->memory);
	tell(d);
}
