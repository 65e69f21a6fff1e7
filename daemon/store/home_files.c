/* SPDX-License-Identifier: BSD-2-Clause */
/* See home_files.h. */
#include "daemon/store/home_files.h"

#include "daemon/base/mem.h"
#include "daemon/store/keyfile.h"
#include "daemon/store/memory_part.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int home_files_open(struct home_files *f, const char *dir, uint32_t id, const uint64_t seed[2])
{
	*f = (struct home_files){.dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	if (f->dir < 0)
		return -errno;
	joblog_init(&f->jobs, f->dir, seed);
	f->rates_error = keyfile_new(f->dir, KEYFILE_RATES, id, keyspace_layout(), &f->rates);
	return 0;
}

void home_files_close(struct home_files *f)
{
	if (f->dir < 0)
		return;
	joblog_close(&f->jobs);
	keyfile_free(f->rates);
	close(f->dir);
	*f = (struct home_files){.dir = -1};
}

struct restoring {
	struct memory *memory;
	const struct home_past *past;
	struct instant now;
	size_t count;
};

static void rate_restore(void *context, const void *object, size_t size)
{
	struct restoring *o = context;
	struct span name, value;
	struct instant until;

	if (!keyspace_read(object, size, &name, &value, &until))
		return;
	/* What it held is not known: it is full until the end of its window, which only the clock of that run tells. The sum may be beyond all numbers. */
	if (value.n == 0)
		until.us = o->past->known ? instant_diff(until, (struct instant){-o->past->shift_us}) : INT64_MIN;
	o->count += rate_put(&o->memory->home->rates, o->memory->epoch_us, name, value, until, o->now);
}

static void rates_restore(struct memory *m, struct home_files *f, const struct home_past *past, struct instant now, struct home_found *ret)
{
	struct restoring o = {m, past, now, 0};
	uint32_t mine = f->rates ? keyfile_id(f->rates) : 0, id = 0;

	while ((id = keyfile_next(f->dir, KEYFILE_RATES, id))) {
		int r = id != mine ? keyfile_read(f->dir, KEYFILE_RATES, id, keyspace_layout(), rate_restore, &o) : 0;

		if (r < 0) {
			ret->rates_error = r;
			ret->rates_id = id;
		}
	}
	ret->rates = o.count;
	keyfile_remove_others(f->dir, KEYFILE_RATES, mine);
}

void memory_restore_home(struct memory *m, struct home_files *f, const struct home_past *past, struct instant now, struct home_found *ret)
{
	struct segment *before = mem_use(m->segment);

	*ret = (struct home_found){.rates_error = 0};
	jobs_restore(&m->home->jobs, &f->jobs, &past->jobs, &ret->jobs);
	rates_restore(m, f, past, now, ret);
	mem_use(before);
}

static void home_files_move(struct home_files *f, const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	close(f->dir);
	f->dir = fd;
	joblog_move(&f->jobs, fd);
}

void memory_look_home(struct memory *m, struct home_files *f, const char *dir, struct home_sight *ret)
{
	struct segment *before = mem_use(m->segment);
	enum keyfile_sight rates;

	*ret = (struct home_sight){0};
	if (dir)
		home_files_move(f, dir);
	ret->jobs = jobs_look(&m->home->jobs, dir != NULL);
	rates = f->rates ? keyfile_look(f->rates, f->dir, KEYFILE_RATES) : KEYFILE_THERE;
	ret->rates_cut = rates == KEYFILE_CUT;
	ret->rates_gone = rates == KEYFILE_GONE && !keyfile_lost(f->rates) && keyfile_renew(f->rates, f->dir, KEYFILE_RATES) < 0;
	mem_use(before);
}

int memory_go_on_home(struct memory *m, struct home_files *f)
{
	struct segment *before = mem_use(m->segment);
	int r = jobs_go_on(&m->home->jobs, &f->jobs);

	keyfile_remove_others(f->dir, KEYFILE_RATES, f->rates ? keyfile_id(f->rates) : 0);
	mem_use(before);
	return r;
}
