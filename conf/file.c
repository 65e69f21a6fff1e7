/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and reads files that the configuration names. It must never wait for a file. */
#include "conf/file.h"

#include "conf/report.h"
#include "conf/schema.h"
#include "conf/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (1024 * 1024) /* bytes */

const char *conf_file_name(const struct conf *c, enum conf_key key)
{
	const void *field = (const char *)c + setting_table[key].offset;

	return *(char *const *)field;
}

/* Joins folder[0..n), "/" and name; false if the path is too long. */
static bool path_join(const char *folder, size_t n, const char *name, char ret_path[PATH_MAX])
{
	int length = snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)n, folder, name);

	errno = ENAMETOOLONG; /* if it is too long */
	return length > 0 && length < PATH_MAX;
}

/* Something is there, even if it cannot be looked at. */
static bool is_there(const char *path)
{
	struct stat st;

	return !stat(path, &st) || errno != ENOENT;
}

bool conf_file_path(const struct conf *c, enum conf_key key, char *ret_path)
{
	const char *name = conf_file_name(c, key), *credentials = getenv("CREDENTIALS_DIRECTORY");
	const struct conf_source *source = c->origin[key].source;
	const char *slash = source ? strrchr(source->label, '/') : NULL;

	if (*name != '/' && credentials && path_join(credentials, strlen(credentials), name, ret_path) && is_there(ret_path))
		return true;
	if (*name != '/' && slash)
		return path_join(source->label, (size_t)(slash - source->label), name, ret_path);
	errno = ENAMETOOLONG; /* if it is too long */
	return snprintf(ret_path, PATH_MAX, "%s", name) < PATH_MAX;
}

int file_open(const struct conf *c, enum conf_key key, int how)
{
	char path[PATH_MAX];

	return conf_file_path(c, key, path) ? open(path, how | O_RDONLY | O_CLOEXEC) : -1;
}

/* Reads size bytes, or as many as there are. */
static ssize_t file_read(int fd, char *text, size_t size)
{
	size_t n = 0;
	ssize_t r = 1;

	while (n < size && r) {
		r = read(fd, text + n, size - n);
		if (r < 0 && errno != EINTR)
			return -errno;
		n += r > 0 ? (size_t)r : 0;
	}
	return (ssize_t)n;
}

static int file_take(int fd, char **ret_text, size_t *ret_n)
{
	struct stat st;
	char *text;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -ENOTSUP;
	if (st.st_size > FILE_MAX)
		return -EFBIG;
	text = conf_alloc((size_t)st.st_size + 1);
	n = file_read(fd, text, (size_t)st.st_size);
	if (n < 0) {
		free(text);
		return (int)n;
	}
	text[n] = '\0';
	*ret_text = text;
	*ret_n = (size_t)n;
	return 0;
}

int conf_file(const struct conf *c, enum conf_key key, char **ret_text, size_t *ret_n)
{
	int fd, r;

	*ret_text = NULL;
	*ret_n = 0;
	if (!conf_file_name(c, key))
		return 0;
	fd = file_open(c, key, O_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = file_take(fd, ret_text, ret_n);
	close(fd);
	return r;
}
