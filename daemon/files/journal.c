/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes one file. It must never leave a file that lacks a record on which an answer relies: if a record cannot be written, the file is removed. It
 * must never read a clock. It must never end the daemon, which works without a journal as well.
 */
#include "daemon/files/journal.h"

#include "daemon/base/file.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/offload.h"
#include "daemon/files/frame.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "journal"
#define TEMP_NAME "journal.new"
#define BAD_NAME  "journal.bad"
/* --- reading ------------------------------------------------------------------------------------------------------------ */

/* Keeps a damaged file under another name, so that the administrator can examine it. */
static void journal_set_aside(struct journal *j, const char *why)
{
	bool moved = renameat(j->dir, FILE_NAME, j->dir, BAD_NAME) == 0;

	log_event(LOG_WARN, "journal", "file=%s error=\"%s\"%s note=\"nothing of it is resumed\"", FILE_NAME, why, moved ? " moved_to=" BAD_NAME : "");
}

/* Removes a file of another boot. If the directory survives reboots, such a file is normal. */
static void journal_drop(struct journal *j)
{
	bool gone = unlinkat(j->dir, FILE_NAME, 0) == 0;

	log_event(LOG_INFO, "journal", "file=%s %s note=\"of another boot, nothing of it is resumed\"", FILE_NAME, gone ? "removed=yes" : "removed=no");
}

/* Whether all records are whole. A torn last record is allowed, and cut off. */
static bool journal_scan(struct journal *j)
{
	struct span rest = j->rest, record;
	size_t records = 0;
	enum frame last;

	while ((last = frame_next(&rest, &record)) == FRAME_WHOLE)
		records++;
	if (last == FRAME_DAMAGED)
		return false;
	j->rest.n -= rest.n;
	if (rest.n > 0)
		log_event(LOG_WARN, "journal", "file=%s records=%zu cut=%zu note=\"the last record is torn\"", FILE_NAME, records, rest.n);
	else
		log_event(LOG_INFO, "journal", "file=%s records=%zu", FILE_NAME, records);
	return true;
}

/* Whether the file can be used for a restore. */
static bool journal_take(struct journal *j, int r, struct instant now)
{
	struct span file = {buf_begin(&j->past), buf_length(&j->past)};
	const char *why = r < 0 ? strerror(-r) : frame_header_fault(file);

	if (why) {
		journal_set_aside(j, why);
		return false;
	}
	if (!frame_header_is_of(file, j->boot_id, now)) {
		journal_drop(j);
		return false;
	}
	j->rest = (struct span){file.p + FRAME_HEADER, file.n - FRAME_HEADER};
	if (!journal_scan(j)) {
		journal_set_aside(j, "damaged");
		return false;
	}
	j->size = file.n; /* snapshot_at is 0, so a snapshot is wanted at once */
	return true;
}

static int journal_begin_run(struct journal *j, const char *dir, const char *boot_id)
{
	*j = (struct journal){.fd = -1, .image_fd = -1, .most = JOURNAL_FILE_MAX, .rest = SPAN(""), .pause_us = JOURNAL_PAUSE_US};
	memcpy(j->boot_id, boot_id, strnlen(boot_id, JOURNAL_BOOT_MAX - 1));
	j->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j->dir < 0)
		return -errno;
	j->offload = offload_new();
	return 0;
}

int journal_open(struct journal *j, const char *dir, const char *boot_id, struct instant now)
{
	int fd, r = journal_begin_run(j, dir, boot_id);

	if (r < 0)
		return r;
	fd = openat(j->dir, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return 0;
	r = fd < 0 ? -errno : file_read_whole(fd, JOURNAL_FILE_MAX, &j->past);
	if (fd >= 0)
		close(fd);
	if (!journal_take(j, r, now))
		journal_forget(j);
	return 0;
}

static void image_remove(struct journal *j)
{
	if (j->image_fd < 0)
		return;
	unlinkat(j->dir, TEMP_NAME, 0);
	close(j->image_fd);
	j->image_fd = -1;
}

/* Gives up the snapshot that is being written. */
static void image_drop(struct journal *j)
{
	j->in_image = false;
	buf_release(&j->image);
	image_remove(j);
}

bool journal_is_there(const struct journal *j)
{
	struct stat named, open;

	if (j->fd < 0)
		return true;
	if (fstatat(j->dir, FILE_NAME, &named, AT_SYMLINK_NOFOLLOW))
		return errno != ENOENT;
	return fstat(j->fd, &open) == 0 && named.st_dev == open.st_dev && named.st_ino == open.st_ino && (size_t)open.st_size >= j->size;
}

bool journal_next(struct journal *j, struct span *ret_record)
{
	return frame_next(&j->rest, ret_record) == FRAME_WHOLE;
}

void journal_forget(struct journal *j)
{
	j->rest = SPAN("");
	buf_release(&j->past);
}

void journal_close(struct journal *j)
{
	image_drop(j);
	journal_forget(j);
	buf_release(&j->pass);
	if (j->fd >= 0)
		close(j->fd);
	if (j->dir >= 0)
		close(j->dir);
	j->fd = j->dir = -1;
	offload_free(j->offload);
	j->offload = NULL;
}

/* --- writing ------------------------------------------------------------------------------------------------------------ */

/* After a short write the next one returns the cause: the device may be full, or the file may have reached its limit. */
static int fd_write(int fd, struct span bytes, size_t at)
{
	size_t done = 0;
	ssize_t n;

	while (done < bytes.n) {
		n = pwrite(fd, bytes.p + done, bytes.n - done, (off_t)(at + done));
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}


/* The file size at which the next snapshot is due. Half of the remaining room must suffice until then. */
static size_t next_snapshot(const struct journal *j)
{
	return MIN(MAX(JOURNAL_GROWTH * j->size, JOURNAL_SNAPSHOT), j->size + (j->most - j->size) / 2);
}

/* A new file, with its header. */
static int image_open(struct journal *j, struct instant now)
{
	char header[FRAME_HEADER];

	j->image_fd = openat(j->dir, TEMP_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (j->image_fd < 0)
		return -errno;
	frame_header_put(header, j->boot_id, now);
	return fd_write(j->image_fd, (struct span){header, sizeof(header)}, 0);
}

/* Appends the new records of the snapshot to its file. */
static int image_write(struct journal *j, struct instant now)
{
	struct span news = {buf_begin(&j->image), buf_length(&j->image)};
	size_t at = FRAME_HEADER + j->image_size;

	j->image_size += news.n;
	if (!j->image_error && j->image_fd < 0)
		j->image_error = image_open(j, now);
	if (!j->image_error && news.n > 0)
		j->image_error = at + news.n > j->most ? -EFBIG : fd_write(j->image_fd, news, at);
	buf_clear(&j->image);
	if (j->image_error)
		image_remove(j); /* the old file, which goes on, may need the room */
	return j->image_error;
}

struct old_file {
	struct task task;
	int fd;
};

static void old_file_empty(struct task *t)
{
	struct old_file *old = (struct old_file *)t;

	(void)!ftruncate(old->fd, 0); /* the name may still lead to it */
	close(old->fd);
	old->fd = -1;
}

static void old_file_end(struct task *t, bool wanted)
{
	(void)wanted;
	if (t->error)
		old_file_empty(t);
	free(t);
}

/* Empties and closes the file, which nobody needs any more. In a thread, because to free 100 MiB takes 25 ms. */
static void file_let_go(struct journal *j)
{
	struct old_file *old;

	if (j->fd < 0)
		return;
	old = mem_alloc(sizeof(*old));
	old->task = (struct task){.work = old_file_empty, .end = old_file_end};
	old->fd = j->fd;
	j->fd = -1;
	offload_begin(j->offload, &old->task);
	offload_collect(j->offload); /* earlier ones, and this one if there is no thread */
}

/* Writes the rest of the new file and renames it over the old one. */
static int image_replaces(struct journal *j, struct instant now)
{
	int r = image_write(j, now);

	if (!r && renameat(j->dir, TEMP_NAME, j->dir, FILE_NAME) < 0)
		r = -errno;
	if (r)
		return r;
	file_let_go(j);
	j->fd = j->image_fd;
	j->image_fd = -1;
	j->size = FRAME_HEADER + j->image_size;
	j->snapshot_at = next_snapshot(j);
	return 0;
}

/* On a read-only file system unlinkat(2) fails even if there is no file, so its error counts only if there may be one. */
static int file_remove(struct journal *j)
{
	int error = unlinkat(j->dir, FILE_NAME, 0) < 0 ? errno : 0;

	if (error && (faccessat(j->dir, FILE_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT))
		return -error;
	file_let_go(j);
	j->size = 0;
	return 0;
}

/* Overwrites or empties the file, and removes it. One of these may succeed where another fails. None needs space. */
static bool file_spoil(struct journal *j)
{
	bool spoilt;

	if (j->fd < 0)
		j->fd = openat(j->dir, FILE_NAME, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	spoilt = j->fd >= 0 && (fd_write(j->fd, SPAN(FRAME_SPOILT), 0) == 0 || ftruncate(j->fd, 0) == 0);
	file_let_go(j);
	return file_remove(j) == 0 || spoilt;
}

void journal_begin_anew(struct journal *j, const char *dir, struct instant now)
{
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	image_drop(j);
	if (fd >= 0) {
		close(j->dir);
		j->dir = fd;
	}
	if (j->fd < 0 && !j->unusable)
		return;
	/* The rest of the file would count if the daemon were killed before the snapshot is complete. */
	j->stale = !file_spoil(j);
	j->size = 0;
	buf_clear(&j->pass); /* the snapshot will have them */
	j->unusable = true;
	j->retry_at = now;
}

/* A retry stops the loop while it writes all live records. So the pause grows with them. */
static int64_t pause_of(const struct journal *j)
{
	int64_t least = (int64_t)(MAX(j->size, j->live) >> 20) * JOURNAL_PAUSE_MIB_US;

	return least > j->pause_us ? least : j->pause_us;
}

static void journal_fail(struct journal *j, int r, struct instant now)
{
	int64_t pause_us = pause_of(j);

	image_drop(j);
	buf_clear(&j->pass);
	if (!j->unusable || j->stale)
		j->stale = !file_spoil(j);
	j->retry_at = instant_add(now, j->stale ? j->pause_us : pause_us); /* a stale file must go soon */
	j->pause_us = 2 * j->pause_us < JOURNAL_PAUSE_MAX_US ? 2 * j->pause_us : JOURNAL_PAUSE_MAX_US;
	if (!j->unusable)
		log_event(LOG_ERROR, "journal", "file=%s error=\"%s\"%s note=\"nothing can be resumed after a restart; it is tried again\"", FILE_NAME,
		          strerror(-r), j->stale ? " stale=yes" : "");
	j->unusable = true;
}

static void journal_recover(struct journal *j)
{
	if (j->unusable)
		log_event(LOG_NOTICE, "journal", "file=%s note=\"is written again\"", FILE_NAME);
	j->unusable = j->stale = j->grudge = false;
	j->pause_us = JOURNAL_PAUSE_US;
}

void journal_add(struct journal *j, struct span record)
{
	if (j->in_image)
		frame_append(&j->image, record);
	if (!j->unusable)
		frame_append(&j->pass, record);
}

/* To write at the former end would hide the cut from all but the next start. */
static bool file_was_cut(const struct journal *j)
{
	struct stat st;

	return fstat(j->fd, &st) == 0 && (size_t)st.st_size < j->size;
}

static int file_append(const struct journal *j, struct span pass)
{
	return j->size + pass.n > j->most ? -EFBIG : fd_write(j->fd, pass, j->size);
}

/* The first file is a snapshot of these records. */
static int file_begin(struct journal *j, struct span pass, struct instant now)
{
	int r;

	journal_begin(j);
	buf_append(&j->image, pass.p, pass.n);
	r = image_replaces(j, now);
	image_drop(j);
	return r;
}

void journal_write(struct journal *j, struct instant now)
{
	struct span pass = {buf_begin(&j->pass), buf_length(&j->pass)};
	bool append = j->fd >= 0;
	int r;

	if (j->in_image && buf_length(&j->image) > 0)
		(void)image_write(j, now); /* journal_end reports an error */
	if (j->in_image && !append) /* at a start: the snapshot has these records, and replaces the file of the previous run */
		buf_clear(&j->pass);
	if (buf_length(&j->pass) == 0)
		return;
	assert(append || j->size == 0); /* a file of the previous run is replaced by a snapshot first */
	if (append && file_was_cut(j)) {
		log_event(LOG_ERROR, "journal", "file=%s note=\"somebody had cut the file: it is written anew\"", FILE_NAME);
		journal_begin_anew(j, NULL, now);
		return;
	}
	r = append ? file_append(j, pass) : file_begin(j, pass, now);
	if (r)
		journal_fail(j, r, now);
	else if (append)
		j->size += pass.n;
	buf_clear(&j->pass);
}

/* --- snapshots ---------------------------------------------------------------------------------------------------------- */

/* Assumes that the average record is as long as in the last snapshot. */
static size_t live_now(const struct journal *j)
{
	return j->live_count > 0 ? (size_t)((double)j->live * (double)j->count / (double)j->live_count) : j->live;
}

/*
 * If the live records fill more than half of the file, a snapshot gains too little for the time that it stops the loop. It would be due again and again, after
 * less and less growth. So the file then grows until it is full.
 */
static bool snapshot_pays(const struct journal *j)
{
	return MIN(j->live, live_now(j)) <= j->most / 2;
}

bool journal_wants_snapshot(const struct journal *j, struct instant now)
{
	if (j->unusable)
		return !instant_before(now, j->retry_at) && (j->stale || live_now(j) <= j->most);
	return j->size > 0 && j->size >= j->snapshot_at && snapshot_pays(j);
}

void journal_begin(struct journal *j)
{
	image_drop(j);
	j->in_image = true;
	j->image_size = 0;
	j->image_error = 0;
}

void journal_keep(struct journal *j, struct span record)
{
	frame_append(&j->image, record);
}

/* After a failed write even an empty snapshot is written first: only a write shows that the device works again. */
static int snapshot_write(struct journal *j, struct instant now)
{
	bool empty = j->image_size + buf_length(&j->image) == 0;
	int r = !empty || j->unusable ? image_replaces(j, now) : 0;

	return !r && empty ? file_remove(j) : r;
}

/* The old file remains in use: it is complete, only longer than necessary. */
static void snapshot_fail(struct journal *j, int r)
{
	if (!j->grudge)
		log_event(LOG_WARN, "journal", "file=%s bytes=%zu error=\"%s\" note=\"could not be made shorter\"", FILE_NAME, j->size, strerror(-r));
	j->grudge = true;
	j->snapshot_at = j->size + MAX(j->size / 2, JOURNAL_SNAPSHOT);
}

void journal_end(struct journal *j, struct instant now)
{
	int r;

	if (!j->in_image)
		return; /* given up */
	r = snapshot_write(j, now);
	j->live = j->image_size;
	j->live_count = j->count;
	image_drop(j);
	if (!r) {
		buf_clear(&j->pass);
		journal_recover(j);
	} else if (j->unusable || j->fd < 0) {
		journal_fail(j, r, now);
	} else {
		snapshot_fail(j, r);
	}
}

bool journal_has_turned(struct journal *j, bool *ret_usable)
{
	if (j->reported == j->unusable)
		return false;
	j->reported = j->unusable;
	*ret_usable = !j->unusable;
	return true;
}
