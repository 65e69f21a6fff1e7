/* SPDX-License-Identifier: BSD-2-Clause */
/* See audit_file.h. It must never end the daemon. The daemon waits only for its one write per pass. */
#include "daemon/files/audit_file.h"

#include "daemon/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOG_EVERY (10 * SEC)

static int file_open(struct audit_file *f)
{
	struct stat st;

	f->fd = open(f->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
	if (f->fd < 0) {
		f->failing = true;
		return -errno;
	}
	f->torn &= fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > 0;
	return 0;
}

int audit_file_open(struct audit_file *f, const char *path)
{
	*f = (struct audit_file){.path = path, .fd = -1};
	return path ? file_open(f) : 0;
}

/* Whether a file could be made at this path, where there is none. */
static int folder_check(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
	char folder[PATH_MAX] = ".";

	if (n >= sizeof(folder))
		return -ENAMETOOLONG;
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)n, path);
	return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) ? -errno : 0;
}

/* Opens nothing: a reader of a pipe would think that the daemon has come. */
int audit_file_check(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno == ENOENT ? folder_check(path) : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) ? -errno : 0;
}

static void audit_complain(struct audit_file *f, struct instant now, int error)
{
	if (instant_before(now, f->quiet_until))
		return;
	f->quiet_until = instant_add(now, LOG_EVERY);
	log_event(LOG_ERROR, "audit", "file=%s error=\"%s\" left_out=%" PRIu64 " note=\"the daemon goes on without these lines\"", f->path,
	          strerror(error), f->left_out);
}

void audit_file_reopen(struct audit_file *f, struct instant now)
{
	int r;

	if (!f->path)
		return;
	if (f->fd >= 0)
		close(f->fd);
	f->quiet_until = INSTANT_PAST;
	r = file_open(f);
	if (r < 0)
		audit_complain(f, now, -r);
}

void audit_file_look(struct audit_file *f, struct instant now, int64_t wall_us)
{
	struct stat st;

	if (!f->path)
		return;
	if (f->fd >= 0 && fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0) {
		log_event(LOG_ERROR, "audit", "file=%s note=\"somebody had removed the file: it is made again, without the lines that it had\"", f->path);
		audit_file_reopen(f, now);
	}
	if (f->failing)
		audit_file_write(f, now, wall_us);
}

void audit_file_close(struct audit_file *f)
{
	if (f->path && f->fd >= 0)
		close(f->fd);
	buf_release(&f->lines);
	f->path = NULL;
}

/* "2026-11-26T03:00:00.123456Z" */
static void time_write(char *out, size_t size, int64_t wall_us)
{
	time_t seconds = (time_t)(wall_us / SEC);
	struct tm tm;
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, size - n, ".%06dZ", (int)(wall_us % SEC));
}

void audit_file_add(struct audit_file *f, struct span rest, int64_t wall_us)
{
	char time[40];

	if (!f->path)
		return;
	time_write(time, sizeof(time), wall_us);
	buf_printf(&f->lines, "{\"time\":\"%s\"", time);
	buf_append(&f->lines, rest.p, rest.n);
	f->count++;
}

/* The line with the number of missing lines comes before those of this pass. */
static void gap_write(struct audit_file *f, int64_t wall_us, char *out, size_t size)
{
	char time[40];

	out[0] = '\0';
	if (f->left_out == 0)
		return;
	time_write(time, sizeof(time), wall_us);
	snprintf(out, size, "%s{\"time\":\"%s\",\"event\":\"gap\",\"left_out\":%" PRIu64 "}\n", f->torn ? "\n" : "", time, f->left_out);
}

/* Cuts off a part of a line. False: it is still there, since pipes and append-only files keep it. */
static bool part_takes_back(const struct audit_file *f, size_t n)
{
	struct stat st;

	/* The file has no other writer, so its end is what was just written. */
	return fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(f->fd, st.st_size - (off_t)n) == 0;
}

/* All or nothing, where that is possible. *ret_kept: bytes that stay although the rest is missing. 0 or an errno. */
static int all_write(struct audit_file *f, const char *bytes, size_t n, size_t *ret_kept)
{
	ssize_t written = write(f->fd, bytes, n), rest;
	int error = errno;

	if (written >= 0 && written < (ssize_t)n) {
		rest = write(f->fd, bytes + written, n - (size_t)written); /* it returns the cause of the short write */
		error = rest < 0 ? errno : ENOSPC;
		written += rest > 0 ? rest : 0;
	}

	*ret_kept = 0;
	if (written == (ssize_t)n) {
		f->torn = false;
		return 0;
	}
	if (written > 0 && !part_takes_back(f, (size_t)written)) {
		*ret_kept = (size_t)written;
		f->torn = bytes[written - 1] != '\n';
	}
	return error;
}

static unsigned lines_in(const char *bytes, size_t n)
{
	unsigned lines = 0;

	for (size_t i = 0; i < n; i++)
		lines += bytes[i] == '\n';
	return lines;
}

static int lines_write(struct audit_file *f, int64_t wall_us)
{
	char gap[120];
	size_t kept;
	int error;

	if (f->fd < 0 && file_open(f) < 0)
		return errno;
	gap_write(f, wall_us, gap, sizeof(gap));
	if (gap[0]) {
		error = all_write(f, gap, strlen(gap), &kept);
		if (error)
			return error;
		f->left_out = 0;
	}
	if (!audit_file_has_news(f))
		return 0;
	error = all_write(f, buf_begin(&f->lines), buf_length(&f->lines), &kept);
	f->count -= lines_in(buf_begin(&f->lines), kept);
	return error;
}

void audit_file_write(struct audit_file *f, struct instant now, int64_t wall_us)
{
	int error = lines_write(f, wall_us);

	if (error && audit_file_has_news(f)) {
		f->left_out += f->count;
		audit_complain(f, now, error);
	}
	if (!error && f->failing)
		log_event(LOG_NOTICE, "audit", "file=%s note=\"it can be written again\"", f->path);
	f->failing = error != 0;
	buf_clear(&f->lines);
	f->count = 0;
}
