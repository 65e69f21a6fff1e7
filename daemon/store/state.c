/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes one small file. If in doubt, the previous run has crashed: an unreadable or damaged file never counts as a clean end. It must never read a
 * clock. The file must cover the present state at every moment: a new file is complete on the disk before it replaces the old one.
 */
#include "daemon/store/state.h"

#include "daemon/base/pack.h"
#include "daemon/store/keyfile.h"
#include "daemon/store/keyspace.h"
#include "daemon/store/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* renameat */
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "state"
#define TEMP_NAME "state.new"

enum boot { BOOT_SAME, BOOT_OTHER, BOOT_UNKNOWN };

static int fd_write(int fd, struct span bytes)
{
	size_t done = 0;
	ssize_t n;

	while (done < bytes.n) {
		n = pwrite(fd, bytes.p + done, bytes.n - done, (off_t)done);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			done += (size_t)n;
	}
	return 0;
}

static int fd_sync(int fd)
{
	return fsync(fd) < 0 ? -errno : 0;
}

/* Closes fd; returns the first error. */
static int fd_close(int fd, int r)
{
	if (close(fd) < 0 && !r && errno != EINTR)
		r = -errno;
	return r;
}

/* Writes a new file completely to the disk, then renames it over the old one. */
static int file_replace(const struct state *s, struct span bytes)
{
	int fd = openat(s->dir, TEMP_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), r;

	if (fd < 0)
		return -errno;
	r = fd_write(fd, bytes);
	if (!r)
		r = fd_sync(fd);
	r = fd_close(fd, r);
	if (!r && renameat(s->dir, TEMP_NAME, s->dir, FILE_NAME) < 0)
		r = -errno;
	if (r)
		unlinkat(s->dir, TEMP_NAME, 0);
	return r ? r : fd_sync(s->dir);
}

/* Overwrites the old file in place, which needs no space. A torn write leaves a damaged file, which counts as a crash. */
static int file_overwrite(const struct state *s, struct span bytes, bool sync)
{
	int fd = openat(s->dir, FILE_NAME, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), r;

	if (fd < 0)
		return -errno;
	r = fd_write(fd, bytes);
	if (!r && ftruncate(fd, (off_t)bytes.n) < 0)
		r = -errno;
	if (!r && sync)
		r = fd_sync(fd);
	return fd_close(fd, r);
}

/* 0; 1: there is no file; or a negative errno. */
static int file_read(struct state *s)
{
	int fd = openat(s->dir, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), r;

	if (fd < 0)
		return errno == ENOENT ? 1 : -errno;
	r = file_read_whole(fd, STATE_FILE_MAX, &s->file);
	close(fd);
	return r;
}

/* CLOCK_BOOTTIME never goes back within a boot: a file from later than now does not belong to this clock. */
static enum boot state_boot(const struct state *s, struct instant now)
{
	if (!s->mine.boot_id[0] || !s->past.boot_id[0])
		return BOOT_UNKNOWN;
	if (strcmp(s->mine.boot_id, s->past.boot_id) != 0)
		return BOOT_OTHER;
	return instant_before(now, s->past.written) ? BOOT_UNKNOWN : BOOT_SAME;
}

/* visit: keyfile_read. */
static enum state_found state_read_keys(struct state *s, void (*visit)(void *context, const void *object, size_t size), void *context)
{
	s->unread_error = keyfile_read(s->dir, s->past.keyfile, keyspace_layout(), visit, context);
	s->unread = s->unread_error < 0 ? s->past.keyfile : 0;
	return s->unread ? STATE_CRASH : STATE_KEPT;
}

/* Judges a valid record. The clock of the store continues. If this may be another boot, it continues from the latest time that it can have reached. */
static enum state_found state_judge(struct state *s, const struct state_conf *conf)
{
	enum boot boot = state_boot(s, conf->now);
	int64_t epoch = boot == BOOT_SAME ? s->past.epoch_us : s->past.clock_us - conf->now.us;

	if (epoch > s->epoch_us)
		s->epoch_us = epoch;
	if (boot == BOOT_OTHER && !s->past.remote)
		return STATE_FIRST;
	/* If this may be another boot, each deadline keeps its remaining time, from now: the time between the runs is unknown. */
	s->shift_us = boot == BOOT_SAME ? 0 : conf->now.us - s->past.written.us;
	s->clock_known = true;
	s->rebooted = boot == BOOT_OTHER && !s->past.clean;
	if (s->past.clean)
		return STATE_CLEAN;
	if (boot != BOOT_SAME || s->past.keyfile == 0)
		return STATE_CRASH;
	return state_read_keys(s, NULL, NULL);
}

/*
 * No file: a first start, unless a reboot, or the end of an earlier container, may have removed the file less than guard_us ago. CLOCK_BOOTTIME
 * begins with the boot. When an earlier container ended is unknown, so the start of this one counts.
 */
static enum state_found state_without_file(struct state *s, const struct state_conf *conf, const char **ret_why)
{
	bool young = conf->remote && instant_before(conf->now, instant_add(conf->began, conf->guard_us));

	s->rebooted = conf->remote && instant_before(conf->now, (struct instant){conf->guard_us});
	if (young && !s->rebooted)
		*ret_why = "new-container";
	return young ? STATE_CRASH : STATE_FIRST;
}

/* The file is not from the run whose clients may still rely on their leases. */
static void state_is_elsewhere(struct state *s, const char **ret_why)
{
	if (s->found != STATE_FIRST && s->found != STATE_CLEAN)
		return;
	s->found = STATE_CRASH;
	s->rebooted = false;
	*ret_why = "another directory";
}

static void state_new_keys(struct state *s, const struct state_conf *conf)
{
	s->others = true;
	if (conf->keyfile)
		keyfile_new(s->dir, conf->keyfile, keyspace_layout(), &s->keys); /* state_look retries it */
}

int state_open(struct state *s, const struct state_conf *conf, enum state_found *ret_found, const char **ret_why)
{
	const char *why = "";
	int r;

	*s = (struct state){.epoch_us = conf->wall_us - conf->now.us, .due = conf->now, .opened = conf->now};
	s->dir = open(conf->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return -errno;
	if (s->epoch_us < 0)
		s->epoch_us = 0;
	s->remote = conf->remote;
	s->lease_us = conf->lease_us;
	memcpy(s->mine.boot_id, conf->boot_id, strnlen(conf->boot_id, STATEFILE_BOOT_MAX - 1));
	r = file_read(s);
	if (r < 0)
		why = strerror(-r);
	else if (r == 0)
		r = statefile_read((struct span){buf_begin(&s->file), buf_length(&s->file)}, &s->past, &why);
	s->unsound = r < 0;
	s->found = r < 0 ? STATE_CRASH : r > 0 ? state_without_file(s, conf, &why) : state_judge(s, conf);
	if (conf->elsewhere)
		state_is_elsewhere(s, &why);
	s->past_until = instant_add(conf->now, 2 * s->past.lease_us); /* twice the lease, because clocks of clients may be slower */
	state_new_keys(s, conf);
	*ret_found = s->found;
	*ret_why = why;
	return 0;
}

int64_t state_later_us(const struct state *s)
{
	return s->clock_known ? s->shift_us + s->epoch_us - s->past.epoch_us : 0;
}

static int64_t later_ms(const struct state *s)
{
	return (state_later_us(s) + MSEC - 1) / MSEC;
}

struct restoring {
	struct state *state;
	struct memory *memory;
};

/* Two keys may have one name: the run was killed while it replaced one by a longer one. The longer one counts. */
static void state_restore_key(void *context, const void *object, size_t size)
{
	const struct restoring *o = context;
	struct span name, value, other;
	struct instant until, now = o->state->opened;

	if (!keyspace_read(object, size, &name, &value, &until) || !instant_before(now, until))
		return;
	if (!memory_get(o->memory, name, now, &other, &(struct instant){0}) || other.n < value.n)
		memory_put_later(o->memory, name, value, until, later_ms(o->state));
}

void state_restore(struct state *s, struct memory *m)
{
	struct span names = s->past.names;
	struct statefile_name name;

	memory_set_fence(m, s->past.fence);
	while (s->found == STATE_CLEAN && statefile_next(&names, &name))
		memory_put_later(m, name.name, name.value, instant_add(name.until, s->shift_us), later_ms(s));
	if (s->found == STATE_KEPT)
		s->found = state_read_keys(s, state_restore_key, &(struct restoring){s, m});
	s->past.names = SPAN("");
	buf_release(&s->file);
}

bool state_loses_names(const struct state *s)
{
	return s->keys && keyfile_lost(s->keys);
}

/* After a crash without names, the names of the previous run are over once the store has joined. */
static bool state_knows_names(const struct state *s, const struct memory *m)
{
	return s->found != STATE_CRASH || span_starts(memory_marker(m), SPAN("j"));
}

static void state_record(struct state *s, const struct memory *m, struct instant now, bool clean)
{
	s->mine.clean = clean;
	s->mine.epoch_us = s->epoch_us;
	s->mine.clock_us = memory_clock(m, now) + (clean ? 0 : STATE_RESERVE_US);
	s->mine.fence = memory_fence(m);
	s->mine.written = now;
	s->mine.lease_us = s->lease_us;
	s->mine.remote = s->remote;
	s->mine.keyfile = clean || !state_knows_names(s, m) || !s->keys || keyfile_lost(s->keys) ? 0 : keyfile_id(s->keys);
	if (!instant_before(now, s->past_until))
		return;
	if (s->past.lease_us > s->lease_us)
		s->mine.lease_us = s->past.lease_us;
	s->mine.remote |= s->past.remote;
}

int state_mark(struct state *s, const struct memory *m, struct instant now)
{
	struct buf b = {0};
	struct span bytes;
	int r;

	state_record(s, m, now, false);
	statefile_begin(&b, &s->mine);
	statefile_end(&b);
	bytes = (struct span){buf_begin(&b), buf_length(&b)};
	r = s->marked ? file_overwrite(s, bytes, false) : file_replace(s, bytes);
	if (r && !s->marked && file_overwrite(s, bytes, true) == 0)
		r = 0;
	buf_release(&b);
	if (!r && s->others)
		keyfile_remove_others(s->dir, s->keys ? keyfile_id(s->keys) : 0);
	s->others &= r != 0;
	s->marked = !r;
	s->mark_size = bytes.n;
	s->due = instant_add(now, r ? STATE_RETRY_US : STATE_RENEW_US);
	return r;
}

struct instant state_due(const struct state *s, const struct memory *m)
{
	bool knows_since = s->marked && !s->mine.keyfile && !state_loses_names(s) && s->keys && state_knows_names(s, m);

	return knows_since ? s->opened : s->due;
}

static void state_move(struct state *s, const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	close(s->dir);
	s->dir = fd;
}

/* The mark is gone only if its file is certainly missing or incomplete. 0 or a negative errno. */
static int mark_look(const struct state *s, enum keyfile_sight *ret_sight)
{
	struct stat st;

	if (!s->marked)
		return 0;
	if (fstatat(s->dir, FILE_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return -errno;
		st.st_size = 0;
	}
	if (st.st_size < (off_t)s->mark_size)
		*ret_sight = KEYFILE_GONE;
	return 0;
}

enum keyfile_sight state_look(struct state *s, const char *dir, int *ret_error)
{
	enum keyfile_sight keys = KEYFILE_THERE;

	*ret_error = 0;
	if (dir)
		state_move(s, dir);
	if (s->keys)
		keys = keyfile_look(s->keys, s->dir, ret_error);
	if (keys == KEYFILE_CUT)
		return keys;
	if (keys == KEYFILE_GONE && keyfile_lost(s->keys) && !keyfile_nameless(s->keys))
		keys = KEYFILE_THERE;
	if (keys == KEYFILE_GONE)
		*ret_error = keyfile_renew(s->keys, s->dir);
	else if (!*ret_error)
		*ret_error = mark_look(s, &keys);
	s->marked &= keys == KEYFILE_THERE;
	return keys;
}

static void state_visit(void *context, struct span name, struct span value, struct instant until)
{
	statefile_add(context, &(struct statefile_name){name, value, until});
}

int state_finish(struct state *s, struct memory *m, struct instant now)
{
	struct buf b = {0};
	struct span bytes;
	int r;

	if (!state_knows_names(s, m))
		return STATE_UNSURE;
	state_record(s, m, now, true);
	statefile_begin(&b, &s->mine);
	memory_each(m, now, state_visit, &b);
	statefile_end(&b);
	bytes = (struct span){buf_begin(&b), buf_length(&b)};
	r = bytes.n > STATE_FILE_MAX ? -EFBIG : file_replace(s, bytes);
	buf_release(&b);
	if (!r && s->keys)
		keyfile_remove(s->dir, keyfile_id(s->keys));
	return r;
}

void state_close(struct state *s)
{
	if (s->dir >= 0)
		close(s->dir);
	s->dir = -1;
	keyfile_free(s->keys);
	s->keys = NULL;
	buf_release(&s->file);
}

/* --- the format. It must never use a byte before the checksum was verified, nor read beyond the end --------------------- */

#define MAGIC    "redlockS"
#define VERSION  3U
#define HEADER   ((size_t)144)
#define CHECKSUM ((size_t)8)
#define NAME     ((size_t)16) /* before the bytes of a name and its value */
#define REMOTE   1U

enum {
	AT_VERSION = 8,
	AT_KIND = 12,
	AT_EPOCH = 16,
	AT_CLOCK = 24,
	AT_FENCE = 32,
	AT_WRITTEN = 40,
	AT_FLAGS = 48,
	AT_KEYFILE = 52,
	AT_COUNT = 56,
	AT_BYTES = 64,
	AT_BOOT = 72,
	AT_LEASE = 136
};

static int64_t get_i64(const char *at)
{
	return (int64_t)get_u64(at);
}

void statefile_begin(struct buf *b, const struct statefile *record)
{
	char *at;

	assert(buf_length(b) == 0);
	at = memset(buf_reserve(b, HEADER), 0, HEADER);
	memcpy(at, MAGIC, strlen(MAGIC));
	put_u32(at + AT_VERSION, VERSION);
	put_u32(at + AT_KIND, record->clean ? 'C' : 'R');
	put_u64(at + AT_EPOCH, (uint64_t)record->epoch_us);
	put_u64(at + AT_CLOCK, (uint64_t)record->clock_us);
	put_u64(at + AT_FENCE, (uint64_t)record->fence);
	put_u64(at + AT_WRITTEN, (uint64_t)record->written.us);
	put_u32(at + AT_FLAGS, record->remote ? REMOTE : 0);
	put_u32(at + AT_KEYFILE, record->keyfile);
	memcpy(at + AT_BOOT, record->boot_id, strnlen(record->boot_id, STATEFILE_BOOT_MAX - 1));
	put_u64(at + AT_LEASE, (uint64_t)record->lease_us);
	buf_commit(b, HEADER);
}

void statefile_add(struct buf *b, const struct statefile_name *name)
{
	size_t n = NAME + name->name.n + name->value.n;
	char *at = buf_reserve(b, n);

	put_u32(at, (uint32_t)name->name.n);
	put_u32(at + 4, (uint32_t)name->value.n);
	put_u64(at + 8, (uint64_t)name->until.us);
	memcpy(at + NAME, name->name.p, name->name.n);
	memcpy(at + NAME + name->name.n, name->value.p, name->value.n);
	buf_commit(b, n);
	at = buf_begin(b);
	put_u64(at + AT_COUNT, get_u64(at + AT_COUNT) + 1);
	put_u64(at + AT_BYTES, get_u64(at + AT_BYTES) + n);
}

void statefile_end(struct buf *b)
{
	uint64_t sum = checksum(buf_begin(b), buf_length(b));

	put_u64(buf_reserve(b, CHECKSUM), sum);
	buf_commit(b, CHECKSUM);
}

bool statefile_next(struct span *names, struct statefile_name *ret_name)
{
	size_t name_n, value_n;

	if (names->n < NAME)
		return false;
	name_n = get_u32(names->p);
	value_n = get_u32(names->p + 4);
	if (name_n > names->n - NAME || value_n > names->n - NAME - name_n)
		return false;
	ret_name->name = (struct span){names->p + NAME, name_n};
	ret_name->value = (struct span){names->p + NAME + name_n, value_n};
	ret_name->until = (struct instant){get_i64(names->p + 8)};
	*names = (struct span){names->p + NAME + name_n + value_n, names->n - NAME - name_n - value_n};
	return true;
}

/* What is wrong with the file, or NULL. The version is checked before the checksum, which another version may compute differently. */
static const char *record_fault(struct span bytes)
{
	size_t body;

	if (bytes.n < HEADER + CHECKSUM)
		return "cut off";
	if (memcmp(bytes.p, MAGIC, strlen(MAGIC)) != 0)
		return "not a state file";
	if (get_u32(bytes.p + AT_VERSION) != VERSION)
		return "of another version";
	body = bytes.n - CHECKSUM;
	if (checksum(bytes.p, body) != get_u64(bytes.p + body))
		return "damaged";
	if (get_u64(bytes.p + AT_BYTES) != body - HEADER || bytes.p[AT_LEASE - 1])
		return "inconsistent";
	return NULL;
}

static bool record_names_whole(const struct statefile *record)
{
	struct span names = record->names;
	struct statefile_name name;
	uint64_t count = 0;

	while (statefile_next(&names, &name))
		count++;
	return names.n == 0 && count == record->count;
}

int statefile_read(struct span bytes, struct statefile *ret_record, const char **ret_why)
{
	const char *why = record_fault(bytes);
	struct statefile r = {0};

	if (!why) {
		r.clean = get_u32(bytes.p + AT_KIND) == 'C';
		r.remote = get_u32(bytes.p + AT_FLAGS) & REMOTE;
		r.keyfile = get_u32(bytes.p + AT_KEYFILE);
		r.epoch_us = get_i64(bytes.p + AT_EPOCH);
		r.clock_us = get_i64(bytes.p + AT_CLOCK);
		r.fence = get_i64(bytes.p + AT_FENCE);
		r.lease_us = get_i64(bytes.p + AT_LEASE);
		r.written.us = get_i64(bytes.p + AT_WRITTEN);
		r.count = get_u64(bytes.p + AT_COUNT);
		r.names = (struct span){bytes.p + HEADER, bytes.n - HEADER - CHECKSUM};
		memcpy(r.boot_id, bytes.p + AT_BOOT, STATEFILE_BOOT_MAX);
		why = record_names_whole(&r) ? NULL : "inconsistent";
	}
	if (why) {
		*ret_why = why;
		return -EBADMSG;
	}
	*ret_record = r;
	return 0;
}
