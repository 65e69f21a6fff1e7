/* SPDX-License-Identifier: BSD-2-Clause */
/* See files.h. A file that cannot be read or written is no part of any world: the simulator aborts. */
#include "tests/sim/world/files.h"

#include "daemon/base/buf.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 512
#define FILE_MOST ((size_t)1 << 28)

static void path_of(char *out, const char *dir, const char *name)
{
	snprintf(out, PATH_SIZE, "%s/%s", dir, name);
}

static void __attribute__((noreturn)) failed(const char *what)
{
	perror(what);
	abort();
}

/* Calls for each file. */
static void folder_visit(const char *dir, void (*visit)(void *context, const char *dir, const char *name), void *context)
{
	DIR *d = opendir(dir);

	if (!d)
		failed(dir);
	for (const struct dirent *e = readdir(d); e; e = readdir(d))
		if (e->d_name[0] != '.')
			visit(context, dir, e->d_name);
	closedir(d);
}

static void file_remove(void *context, const char *dir, const char *name)
{
	char path[PATH_SIZE];

	(void)context;
	path_of(path, dir, name);
	unlink(path);
}

void folder_remove(const char *dir)
{
	if (access(dir, F_OK) < 0)
		return;
	folder_visit(dir, file_remove, NULL);
	rmdir(dir);
}

void files_release(struct files *f)
{
	for (unsigned i = 0; i < f->count; i++)
		buf_release(&f->file[i].bytes);
	f->count = 0;
}

static void file_read(void *context, const char *dir, const char *name)
{
	struct files *f = context;
	struct file_left *one = &f->file[f->count++];
	char path[PATH_SIZE];
	int fd;

	if (f->count > FILES_MAX)
		abort();
	path_of(path, dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	buf_init(&one->bytes);
	if (fd < 0 || file_read_whole(fd, FILE_MOST, &one->bytes) < 0)
		failed(path);
	close(fd);
	snprintf(one->name, sizeof(one->name), "%s", name);
}

static int file_order(const void *a, const void *b)
{
	return strcmp(((const struct file_left *)a)->name, ((const struct file_left *)b)->name);
}

/* In the order of their names: a folder has none. */
void files_read(struct files *f, const char *dir)
{
	files_release(f);
	folder_visit(dir, file_read, f);
	qsort(f->file, f->count, sizeof(f->file[0]), file_order);
}

void files_write(const struct files *f, const char *dir)
{
	folder_visit(dir, file_remove, NULL);
	for (unsigned i = 0; i < f->count; i++) {
		const struct buf *b = &f->file[i].bytes;
		char path[PATH_SIZE];
		int fd;

		path_of(path, dir, f->file[i].name);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, buf_begin(b), buf_length(b)) != (ssize_t)buf_length(b))
			failed(path);
		close(fd);
	}
}

static const struct file_left *file_find(const struct files *f, const char *name)
{
	for (unsigned i = 0; i < f->count; i++)
		if (strcmp(f->file[i].name, name) == 0)
			return &f->file[i];
	return NULL;
}

static bool is_mapped(const char *name)
{
	return strncmp(name, "keys-", strlen("keys-")) == 0;
}

void files_tear(struct files *f, const struct files *before, struct stream *s, unsigned old_percent)
{
	static const char zero[8];

	for (unsigned i = 0; i < f->count; i++) {
		const struct file_left *old = file_find(before, f->file[i].name);
		char *to = buf_begin(&f->file[i].bytes);
		size_t had = old ? buf_length(&old->bytes) : 0;

		for (size_t at = 0; is_mapped(f->file[i].name) && at + 8 <= buf_length(&f->file[i].bytes); at += 8) {
			const char *was = at + 8 <= had ? buf_begin(&old->bytes) + at : zero;

			if (memcmp(to + at, was, 8) != 0 && stream_chance(s, old_percent))
				memcpy(to + at, was, 8);
		}
	}
}
