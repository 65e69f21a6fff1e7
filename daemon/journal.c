/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes one file. It must never leave a file behind that lacks a record on which an answer relies: if a record cannot be written, the
 * file is removed. It must never read a clock. It must never end the daemon, which works without a journal as well.
 */
#include "daemon/journal.h"

#include "daemon/base/file.h"
#include "daemon/base/log.h"
#include "daemon/base/pack.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "journal"
#define TEMP_NAME "journal.new"
#define BAD_NAME  "journal.bad"
#define MAGIC     "redlockJ"
#define SPOILT    "unusable"
#define VERSION   1U
#define HEADER    ((size_t)96)
#define FRAME     ((size_t)16) /* before the bytes of a record */

enum { AT_VERSION = 8, AT_BOOT = 16, AT_MADE = 80, AT_SUM = 88 };

/* --- frames ------------------------------------------------------------------------------------------------------------ */

static uint32_t length_check(const char *frame)
{
	return (uint32_t)checksum(frame, 4);
}

static void frame_append(struct buf *b, struct span record)
{
	char *at = buf_reserve(b, FRAME + record.n);

	put_u32(at, (uint32_t)record.n);
	put_u32(at + 4, length_check(at));
	put_u64(at + 8, checksum(record.p, record.n));
	memcpy(at + FRAME, record.p, record.n);
	buf_commit(b, FRAME + record.n);
}

enum frame { FRAME_WHOLE, FRAME_TORN, FRAME_DAMAGED }; /* torn: the bytes end within the frame, or none are left */

static enum frame frame_next(struct span *bytes, struct span *ret_record)
{
	size_t n;

	if (bytes->n < FRAME)
		return FRAME_TORN;
	n = get_u32(bytes->p);
	if (get_u32(bytes->p + 4) != length_check(bytes->p))
		return FRAME_DAMAGED;
	if (n > bytes->n - FRAME)
		return FRAME_TORN;
	if (get_u64(bytes->p + 8) != checksum(bytes->p + FRAME, n))
		return FRAME_DAMAGED;
	*ret_record = (struct span){bytes->p + FRAME, n};
	*bytes = (struct span){bytes->p + FRAME + n, bytes->n - FRAME - n};
	return FRAME_WHOLE;
}

static void header_append(struct buf *b, const char *boot_id, struct instant now)
{
	char *at = memset(buf_reserve(b, HEADER), 0, HEADER);

	memcpy(at, MAGIC, strlen(MAGIC));
	put_u32(at + AT_VERSION, VERSION);
	memcpy(at + AT_BOOT, boot_id, strnlen(boot_id, JOURNAL_BOOT_MAX - 1));
	put_u64(at + AT_MADE, (uint64_t)now.us);
	put_u64(at + AT_SUM, checksum(at, AT_SUM));
	buf_commit(b, HEADER);
}

/* --- reading ------------------------------------------------------------------------------------------------------------ */

/* Why the file cannot be used; NULL: it can. */
static const char *header_fault(struct span file)
{
	if (file.n == 0 || span_starts(file, SPAN(SPOILT)))
		return "given up when it could not be written";
	if (file.n < HEADER)
		return "cut off";
	if (memcmp(file.p, MAGIC, strlen(MAGIC)) != 0)
		return "not a journal";
	if (get_u32(file.p + AT_VERSION) != VERSION)
		return "of another version";
	if (checksum(file.p, AT_SUM) != get_u64(file.p + AT_SUM) || file.p[AT_MADE - 1])
		return "damaged";
	return NULL;
}

/* CLOCK_BOOTTIME never goes back within a boot, so a file that was made later than now is of another boot. */
static bool header_is_of_this_boot(const struct journal *j, struct span file, struct instant now)
{
	return j->boot_id[0] && strcmp(file.p + AT_BOOT, j->boot_id) == 0 && now.us >= (int64_t)get_u64(file.p + AT_MADE);
}

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

/* Whether all records are whole. A torn last record is allowed and cut off. */
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

/* Whether the file can be restored from. */
static bool journal_take(struct journal *j, int r, struct instant now)
{
	struct span file = {buf_begin(&j->past), buf_length(&j->past)};
	const char *why = r < 0 ? strerror(-r) : header_fault(file);

	if (why) {
		journal_set_aside(j, why);
		return false;
	}
	if (!header_is_of_this_boot(j, file, now)) {
		journal_drop(j);
		return false;
	}
	j->rest = (struct span){file.p + HEADER, file.n - HEADER};
	if (!journal_scan(j)) {
		journal_set_aside(j, "damaged");
		return false;
	}
	j->size = file.n; /* snapshot_at is 0, so a snapshot is wanted at once */
	return true;
}

int journal_open(struct journal *j, const char *dir, const char *boot_id, struct instant now)
{
	int fd, r;

	*j = (struct journal){.fd = -1, .most = JOURNAL_FILE_MAX, .rest = SPAN(""), .pause_us = JOURNAL_PAUSE_US};
	memcpy(j->boot_id, boot_id, strnlen(boot_id, JOURNAL_BOOT_MAX - 1));
	j->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j->dir < 0)
		return -errno;
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
	journal_forget(j);
	buf_release(&j->pass);
	buf_release(&j->image);
	if (j->fd >= 0)
		close(j->fd);
	if (j->dir >= 0)
		close(j->dir);
	j->fd = j->dir = -1;
}

/* --- writing ------------------------------------------------------------------------------------------------------------ */

/* One pwrite(2). A short write means that the device is full. */
static int fd_write(int fd, struct span bytes, size_t at)
{
	ssize_t n;

	do
		n = pwrite(fd, bytes.p, bytes.n, (off_t)at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == bytes.n ? 0 : -ENOSPC;
}

static int file_write_new(const struct journal *j, int fd, struct span records, struct instant now)
{
	struct buf b = {0};
	int r;

	header_append(&b, j->boot_id, now);
	buf_append(&b, records.p, records.n);
	r = buf_length(&b) > j->most ? -EFBIG : fd_write(fd, (struct span){buf_begin(&b), buf_length(&b)}, 0);
	buf_release(&b);
	return r;
}

static size_t least_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The file size at which the next snapshot is due. Live records may nearly fill the file, so half of the room that is left must suffice until then. */
static size_t next_snapshot(const struct journal *j)
{
	size_t grown = JOURNAL_GROWTH * j->size, room = j->most - j->size;

	return least_of(grown > JOURNAL_SNAPSHOT ? grown : JOURNAL_SNAPSHOT, j->size + room / 2);
}

/* Writes a complete new file and renames it over the old one. */
static int file_replace(struct journal *j, struct span records, struct instant now)
{
	int fd = openat(j->dir, TEMP_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), r;

	if (fd < 0)
		return -errno;
	r = file_write_new(j, fd, records, now);
	if (!r && renameat(j->dir, TEMP_NAME, j->dir, FILE_NAME) < 0)
		r = -errno;
	if (r) {
		unlinkat(j->dir, TEMP_NAME, 0);
		close(fd);
		return r;
	}
	if (j->fd >= 0)
		close(j->fd);
	j->fd = fd;
	j->size = HEADER + records.n;
	j->snapshot_at = next_snapshot(j);
	return 0;
}

/* On a read-only file system unlinkat(2) fails even if there is no file, so its error counts only if there may be one. */
static int file_remove(struct journal *j)
{
	int error = unlinkat(j->dir, FILE_NAME, 0) < 0 ? errno : 0;

	if (error && (faccessat(j->dir, FILE_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT))
		return -error;
	if (j->fd >= 0)
		close(j->fd);
	j->fd = -1;
	j->size = 0;
	return 0;
}

/* Empties or overwrites the file, and removes it. One of these may succeed where another fails, and none needs space. */
static bool file_spoil(struct journal *j)
{
	int fd = j->fd >= 0 ? j->fd : openat(j->dir, FILE_NAME, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool spoilt = fd >= 0 && (ftruncate(fd, 0) == 0 || fd_write(fd, SPAN(SPOILT), 0) == 0);

	if (fd >= 0)
		close(fd);
	j->fd = -1;
	return file_remove(j) == 0 || spoilt;
}

static void journal_fail(struct journal *j, int r, struct instant now)
{
	buf_clear(&j->pass);
	j->retry_at = instant_add(now, j->pause_us);
	j->pause_us = 2 * j->pause_us < JOURNAL_PAUSE_MAX_US ? 2 * j->pause_us : JOURNAL_PAUSE_MAX_US;
	if (!j->unusable || j->stale)
		j->stale = !file_spoil(j);
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
	else if (!j->unusable)
		frame_append(&j->pass, record);
}

static int file_append(const struct journal *j, struct span pass)
{
	return j->size + pass.n > j->most ? -EFBIG : fd_write(j->fd, pass, j->size);
}

void journal_write(struct journal *j, struct instant now)
{
	struct span pass = {buf_begin(&j->pass), buf_length(&j->pass)};
	bool append = j->fd >= 0;
	int r;

	if (pass.n == 0)
		return;
	assert(append || j->size == 0); /* a file of the previous run is replaced by a snapshot first */
	r = append ? file_append(j, pass) : file_replace(j, pass, now);
	if (r)
		journal_fail(j, r, now);
	else if (append)
		j->size += pass.n;
	buf_clear(&j->pass);
}

/* --- snapshots ---------------------------------------------------------------------------------------------------------- */

bool journal_wants_snapshot(const struct journal *j, struct instant now)
{
	return j->unusable ? !instant_before(now, j->retry_at) : j->size > 0 && j->size >= j->snapshot_at;
}

void journal_begin(struct journal *j)
{
	j->in_image = true;
}

/* After a failed write even an empty snapshot is written first: only a write shows that the device works again. */
static int snapshot_write(struct journal *j, struct instant now)
{
	struct span image = {buf_begin(&j->image), buf_length(&j->image)};
	int r = image.n > 0 || j->unusable ? file_replace(j, image, now) : 0;

	return !r && image.n == 0 ? file_remove(j) : r;
}

/* The old file remains in use: it is complete, only longer than necessary. */
static void snapshot_fail(struct journal *j, int r)
{
	if (!j->grudge)
		log_event(LOG_WARN, "journal", "file=%s bytes=%zu error=\"%s\" note=\"could not be made shorter\"", FILE_NAME, j->size, strerror(-r));
	j->grudge = true;
	j->snapshot_at = j->size + JOURNAL_SNAPSHOT;
}

void journal_end(struct journal *j, struct instant now)
{
	int r = snapshot_write(j, now);

	j->in_image = false;
	buf_release(&j->image);
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
	if (j->told == j->unusable)
		return false;
	j->told = j->unusable;
	*ret_usable = !j->unusable;
	return true;
}
