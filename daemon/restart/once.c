/* SPDX-License-Identifier: BSD-2-Clause */
/* See once.h. */
#include "daemon/restart/once.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "handover"
#define TEMP_NAME "handover.new"
#define TEXT_SIZE 34 /* 32 digits, LF, NUL */

static void mark_print(char text[TEXT_SIZE], const uint64_t mark[2])
{
	snprintf(text, TEXT_SIZE, "%016" PRIx64 "%016" PRIx64 "\n", mark[0], mark[1]);
}

static int file_write(int folder, const char *text)
{
	const size_t n = strlen(text);
	int fd = openat(folder, TEMP_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	ssize_t written;
	int r = 0;

	if (fd < 0)
		return -errno;
	written = write(fd, text, n);
	if (written != (ssize_t)n)
		r = written < 0 ? -errno : -ENOSPC;
	if (close(fd) && !r)
		r = -errno;
	if (!r && renameat(folder, TEMP_NAME, folder, FILE_NAME))
		r = -errno;
	if (r)
		unlinkat(folder, TEMP_NAME, 0);
	return r;
}

int once_put(const char *dir, const uint64_t mark[2])
{
	int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
	char text[TEXT_SIZE];

	if (folder < 0)
		return -errno;
	mark_print(text, mark);
	r = file_write(folder, text);
	close(folder);
	return r;
}

bool once_is_there(const char *dir)
{
	int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool there = folder >= 0 && faccessat(folder, FILE_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0;

	if (folder >= 0)
		close(folder);
	return there;
}

/* Reads the file, and removes it. "" if there is none. False: it could not be removed, so its content must not be trusted. */
static bool file_take(int folder, char text[TEXT_SIZE])
{
	int fd = openat(folder, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd >= 0 ? read(fd, text, TEXT_SIZE - 1) : 0;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return unlinkat(folder, FILE_NAME, 0) == 0 || errno == ENOENT;
}

bool once_take(const char *dir, const uint64_t mark[2], const char **ret_why)
{
	int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char found[TEXT_SIZE] = "", wanted[TEXT_SIZE];
	bool removed = folder >= 0 && file_take(folder, found);

	if (folder >= 0)
		close(folder);
	*ret_why = "nothing shows that it may be used once";
	if (!removed || !mark)
		return false;
	mark_print(wanted, mark);
	*ret_why = found[0] ? "it is of another restart" : "it was used before, or stood elsewhere";
	return strcmp(found, wanted) == 0;
}
