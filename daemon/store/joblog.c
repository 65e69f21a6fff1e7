/* SPDX-License-Identifier: BSD-2-Clause */
/* See joblog.h. It knows nothing of jobs. */
#include "daemon/store/joblog.h"

#include "daemon/base/map.h"
#include "daemon/base/pack.h"
#include "daemon/base/size.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* renameat */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "jobs"
#define TEMP_NAME "jobs.new"
#define BAD_NAME  "jobs.bad"
#define MAGIC     "redlockQ"
#define VERSION   2U
#define HEADER    ((size_t)64)
#define HEAD      ((size_t)16) /* before the bytes of a record */
#define PAGE      ((size_t)4096)
#define CHUNK     ((size_t)128 << 10)

enum { AT_VERSION = 8, AT_SEED = 16, AT_SUM = 32 };

void joblog_init(struct joblog *l, int dir, const uint64_t seed[2])
{
	*l = (struct joblog){.dir = dir, .fd = -1, .most = JOBLOG_MOST, .seed = {seed[0], seed[1]}};
}

/* --- the file --- */

static int file_reserve(int fd, size_t from, size_t to)
{
	int r;

	do
		r = to > from ? posix_fallocate(fd, (off_t)from, (off_t)(to - from)) : 0;
	while (r == EINTR);
	return -r;
}

static int file_map(struct joblog *l, size_t size)
{
	void *at = l->at ? mremap(l->at, l->mapped, size, MREMAP_MAYMOVE) : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	l->at = at;
	l->mapped = l->size = size;
	return 0;
}

/* All pages at once: that is cheaper than a fault for each. A kernel before 5.14 does not know how, and faults. */
static int file_grow(struct joblog *l, size_t size)
{
	size_t before = l->mapped;
	int r = size > l->most ? -EFBIG : file_reserve(l->fd, l->size, size);

	if (!r)
		r = file_map(l, size);
#ifdef MADV_POPULATE_WRITE
	if (!r)
		(void)madvise(l->at + before, size - before, MADV_POPULATE_WRITE);
#endif
	return r;
}

void joblog_close(struct joblog *l)
{
	if (l->at)
		munmap(l->at, l->mapped);
	if (l->fd >= 0)
		close(l->fd);
	l->at = NULL;
	l->fd = -1;
	l->mapped = l->size = l->end = 0;
}

void joblog_remove(struct joblog *l)
{
	joblog_close(l);
	unlinkat(l->dir, FILE_NAME, 0);
}

/* An earlier jobs.bad goes: the last one is kept. */
static void joblog_set_aside(struct joblog *l)
{
	joblog_close(l);
	if (renameat(l->dir, FILE_NAME, l->dir, BAD_NAME) < 0)
		unlinkat(l->dir, FILE_NAME, 0);
}

void joblog_show(struct joblog *l)
{
	unlinkat(l->dir, BAD_NAME, 0);
	(void)!linkat(l->dir, FILE_NAME, l->dir, BAD_NAME, 0);
}

bool joblog_is_there(const struct joblog *l)
{
	struct stat st;

	return l->fd < 0 || (fstat(l->fd, &st) == 0 && st.st_nlink > 0 && (size_t)st.st_size >= l->size);
}

void joblog_move(struct joblog *l, int dir)
{
	l->dir = dir;
	(void)renameat(dir, FILE_NAME, dir, BAD_NAME);
}

/* --- frames --- */

static uint64_t head_word(size_t n)
{
	char word[8];
	uint64_t value;

	put_u32(word, (uint32_t)n);
	put_u32(word + 4, (uint32_t)checksum(word, 4));
	memcpy(&value, word, sizeof(value));
	return value;
}

size_t joblog_bytes(size_t record)
{
	return up_to(HEAD + record, 8);
}

char *joblog_begin(struct joblog *l)
{
	return l->at + l->end + HEAD;
}

/* The process may be killed between any two stores: the record is there with the last of them. */
void joblog_end(struct joblog *l, size_t n)
{
	char *frame = l->at + l->end;

	assert(n <= JOBLOG_RECORD && l->end + joblog_bytes(n) <= l->size);
	put_u64(frame + 8, siphash(l->file_seed, frame + HEAD, n));
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n((uint64_t *)(void *)frame, head_word(n), __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	l->end += joblog_bytes(n);
}

/* The bytes of the frame at this place; 0: none is there. */
static size_t frame_at(const struct joblog *l, size_t place, struct span *ret_record)
{
	const char *frame = l->at + place;
	size_t n;

	if (l->size - place < HEAD)
		return 0;
	n = get_u32(frame);
	if (n == 0 || n > JOBLOG_RECORD || n > l->size - place - HEAD || get_u32(frame + 4) != (uint32_t)checksum(frame, 4))
		return 0;
	if (get_u64(frame + 8) != siphash(l->file_seed, frame + HEAD, n))
		return 0;
	*ret_record = (struct span){frame + HEAD, n};
	return joblog_bytes(n);
}

/* Behind the last sound record all is zero from now on: a record that was torn must not be found among those to come. */
static void tail_clear(struct joblog *l, struct joblog_found *found)
{
	for (size_t i = l->end; i < l->size; i++)
		if (l->at[i]) {
			found->torn = l->size - i;
			memset(l->at + i, 0, l->size - i);
			return;
		}
}

static void log_read(struct joblog *l, void (*visit)(void *context, struct span record), void *context, struct joblog_found *found)
{
	size_t place = HEADER, n;
	struct span record;

	l->end = HEADER;
	while (place < l->size) {
		n = frame_at(l, place, &record);
		if (n == 0) {
			place += 8;
			continue;
		}
		found->damaged += place - l->end;
		found->records++;
		if (visit)
			visit(context, record);
		l->end = least_of(place += n, l->size);
	}
}

/* --- the file of another run --- */

static bool header_is_sound(const char *header)
{
	return memcmp(header, MAGIC, strlen(MAGIC)) == 0 && get_u32(header + AT_VERSION) == VERSION && get_u64(header + AT_SUM) == checksum(header, AT_SUM);
}

static void header_put(struct joblog *l)
{
	memcpy(l->at, MAGIC, strlen(MAGIC));
	put_u32(l->at + AT_VERSION, VERSION);
	put_u64(l->at + AT_SEED, l->file_seed[0]);
	put_u64(l->at + AT_SEED + 8, l->file_seed[1]);
	put_u64(l->at + AT_SUM, checksum(l->at, AT_SUM));
}

/* What is no log gets no space either. */
static int header_take(struct joblog *l, off_t *ret_size)
{
	char header[HEADER];
	struct stat st;

	if (fstat(l->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || pread(l->fd, header, sizeof(header), 0) != (ssize_t)sizeof(header) || !header_is_sound(header))
		return -EBADMSG;
	if (st.st_size > (off_t)l->most)
		return -EFBIG;
	l->file_seed[0] = get_u64(header + AT_SEED);
	l->file_seed[1] = get_u64(header + AT_SEED + 8);
	*ret_size = st.st_size;
	return 0;
}

/* A file with holes, or one that was cut, gets all its space again: else only what is there may be read, and nothing added. */
static int file_take(struct joblog *l)
{
	off_t size = 0;
	int r = header_take(l, &size);
	size_t whole;

	if (r)
		return r;
	whole = up_to((size_t)size, PAGE);
	l->error = file_reserve(l->fd, 0, whole);
	return file_map(l, l->error ? (size_t)size / 8 * 8 : whole);
}

/* Half of the room that is left must suffice until the next snapshot. */
void joblog_put_off(struct joblog *l, size_t live)
{
	size_t later = least_of(most_of(JOBLOG_GROWTH * live, JOBLOG_SNAPSHOT), l->end + CHUNK + (l->most - l->end) / 2);

	l->snapshot_at = least_of(later, l->most - JOBLOG_SPARE - CHUNK);
}

/* All bytes of the file, with zeros where it has holes. NULL: an error, which is *ret. */
static char *file_copy(const struct joblog *l, int *ret)
{
	char *copy = mmap(NULL, l->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t done = 0;
	ssize_t n = 1;

	*ret = -ENOMEM;
	if (copy == MAP_FAILED)
		return NULL;
	while (done < l->size && n > 0) {
		n = pread(l->fd, copy + done, l->size - done, (off_t)done);
		done += n > 0 ? (size_t)n : 0;
	}
	*ret = n < 0 ? -errno : 0;
	if (n >= 0)
		return copy;
	munmap(copy, l->size);
	return NULL;
}

/* The page behind a hole of a map needs space even to be read, in a tmpfs: without any, the process would be killed. */
static int log_read_copy(struct joblog *l, void (*visit)(void *context, struct span record), void *context, struct joblog_found *found)
{
	char *map = l->at;
	int r;

	l->at = file_copy(l, &r);
	if (l->at) {
		log_read(l, visit, context, found);
		munmap(l->at, l->size);
	}
	l->at = map;
	l->size = l->end; /* what is behind may have no space */
	return r;
}

/* Another start may succeed, perhaps after somebody has changed something. */
static bool error_may_pass(int error)
{
	switch (-error) {
	case EACCES:
	case EAGAIN:
	case EINTR:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case EPERM:
		return true;
	default:
		return false;
	}
}

bool joblog_open(struct joblog *l, void (*visit)(void *context, struct span record), void *context, struct joblog_found *ret)
{
	*ret = (struct joblog_found){0};
	unlinkat(l->dir, TEMP_NAME, 0);
	l->fd = openat(l->dir, FILE_NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (l->fd < 0 && errno == ENOENT)
		return false;
	ret->error = l->fd < 0 ? -errno : file_take(l);
	if (!ret->error && l->error)
		ret->error = log_read_copy(l, visit, context, ret);
	if (ret->error) {
		ret->stays = error_may_pass(ret->error);
		if (ret->stays)
			joblog_close(l);
		else
			joblog_set_aside(l);
		return false;
	}
	if (!l->error) {
		log_read(l, visit, context, ret);
		tail_clear(l, ret);
	}
	joblog_put_off(l, l->end);
	return true;
}

/* --- room, and snapshots --- */

int joblog_room(struct joblog *l, size_t bytes, size_t spare)
{
	size_t least = l->end + bytes + spare;

	if (least <= l->size)
		return l->error = 0;
	l->error = file_grow(l, up_to(most_of(least + CHUNK, l->mapped + l->mapped / 4), PAGE));
	if (l->error)
		l->error = file_grow(l, up_to(most_of(least, l->mapped), PAGE));
	return l->error;
}

int joblog_new(struct joblog *l, size_t live, size_t spare, struct joblog *ret_new)
{
	size_t size = up_to(HEADER + live + spare + CHUNK, PAGE);
	int r;

	joblog_init(ret_new, l->dir, l->seed);
	ret_new->most = l->most;
	ret_new->file_seed[0] = l->seed[0];
	ret_new->file_seed[1] = l->seed[1];
	ret_new->fd = openat(l->dir, TEMP_NAME, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = ret_new->fd < 0 ? -errno : file_grow(ret_new, size);
	if (r) {
		joblog_close(ret_new);
		unlinkat(l->dir, TEMP_NAME, 0);
		l->snapshot_at = l->end + CHUNK;
		l->error = r;
		return r;
	}
	header_put(ret_new);
	ret_new->end = HEADER;
	return 0;
}

int joblog_replace(struct joblog *l, struct joblog *by)
{
	if (renameat(l->dir, TEMP_NAME, l->dir, FILE_NAME) < 0) {
		l->error = -errno;
		l->snapshot_at = l->end + CHUNK;
		joblog_close(by);
		unlinkat(l->dir, TEMP_NAME, 0);
		return l->error;
	}
	joblog_close(l);
	*l = *by;
	l->seed[1]++;
	joblog_put_off(l, l->end);
	return 0;
}
