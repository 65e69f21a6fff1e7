/* SPDX-License-Identifier: BSD-2-Clause */
/* The jobs and rate limits of the memory store, which outlast the daemon: their files in the runtime directory, and what the log tells of them. */
#include "daemon/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/core/quorum.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int lasting_open(struct daemon *d, uint32_t id)
{
	uint64_t seed[2];
	int r;

	rng_seed_from_system(seed);
	r = home_files_open(&d->lasting, d->runtime.dir, id, seed);
	if (!r && d->lasting.rates_error)
		log_event(LOG_WARN, "rates", "dir=%s error=\"%s\" note=\"rate limits end with the daemon\"", d->runtime.dir, strerror(-d->lasting.rates_error));
	return r;
}

void lasting_close(struct daemon *d)
{
	home_files_close(&d->lasting);
}

static void tell_jobs(const struct jobs_found *found)
{
	const struct joblog_found *l = &found->log;

	if (l->stays)
		log_event(LOG_ERROR, "jobs", "file=jobs error=\"%s\" note=\"redlockd does not start before it can be read: else its jobs would be lost\"",
		          strerror(-l->error));
	else if (l->error)
		log_event(LOG_ERROR, "jobs", "file=jobs error=\"%s\" moved_to=jobs.bad note=\"its jobs are lost, unless it can be repaired\"",
		          strerror(-l->error));
	else if (l->damaged || found->unknown)
		log_event(LOG_ERROR, "jobs",
		          "file=jobs jobs=%zu records=%zu damaged=%zu unknown=%zu error=\"damaged\" note=\"what is sound is kept: jobs may be missing, and "
		          "some that were done may come back. None is handed out before all leases of the run before are over. See jobs.bad\"",
		          found->jobs, l->records, l->damaged, found->unknown);
	else if (l->records > 0 || l->torn)
		log_event(l->torn ? LOG_WARN : LOG_INFO, "jobs", "file=jobs jobs=%zu records=%zu%s", found->jobs, l->records,
		          l->torn ? " note=\"the last record is torn\"" : "");
	if (found->error)
		log_event(LOG_ERROR, "jobs",
		          "file=jobs error=\"%s\" note=\"it cannot be written that leases end later by the clock of this run. If the daemon is "
		          "killed before it can be, jobs may be handed out while others run them\"",
		          strerror(-found->error));
}

/* Twice the lease, because clocks of clients may be slower. */
static struct instant all_leases_over(const struct daemon *d, struct instant now)
{
	int64_t mine = quarantine_us(d->conf->max_lease, d->conf->max_delay), before = 2 * d->state.past.lease_us;

	return instant_add(now, mine > before ? mine : before);
}

int lasting_restore(struct daemon *d)
{
	struct instant now = clock_boottime();
	const struct home_past past = {.jobs = {.later_ms = (state_later_us(&d->state) + MSEC - 1) / MSEC,
	                                        .hold_ms = memory_clock(d->memory, all_leases_over(d, now)) / MSEC},
	                               .known = d->state.clock_known,
	                               .shift_us = d->state.shift_us};
	struct home_found found;

	memory_restore_home(d->memory, &d->lasting, &past, now, &found);
	tell_jobs(&found.jobs);
	if (found.rates_error)
		log_event(LOG_WARN, "rates", "file=" KEYFILE_RATES "%08" PRIx32 " error=\"%s\" note=\"rate limits of the run before begin anew\"",
		          found.rates_id, keyfile_fault(found.rates_error));
	else if (found.rates > 0)
		log_event(LOG_INFO, "rates", "limits=%zu", found.rates);
	return found.jobs.log.stays ? found.jobs.log.error : 0;
}

void lasting_tick(struct daemon *d)
{
	int error = d->lasting.jobs.error;

	if (error == d->jobs_error)
		return;
	if (error)
		log_event(LOG_ERROR, "jobs", "file=jobs error=\"%s\" note=\"DEFER, or TAKE as well, is refused until it can be written\"",
		          strerror(-error));
	else
		log_event(LOG_NOTICE, "jobs", "file=jobs note=\"is written again\"");
	d->jobs_error = error;
}
