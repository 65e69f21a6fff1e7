/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The password. It is in a file of its own; it must never be a value of the configuration, nor part of a message.
 */
#include "conf/secret.h"

#include "conf/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PASSWORD_MAX 4096

/* Joins folder[0..n), "/" and name; false if the path is too long. */
static bool path_join(const char *folder, size_t n, const char *name, char ret_path[PATH_MAX])
{
	int length = snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)n, folder, name);

	errno = ENAMETOOLONG; /* if it is too long */
	return length > 0 && length < PATH_MAX;
}

int secret_open(const struct conf *c, enum conf_key key, const char *name, int how)
{
	const char *credentials = getenv("CREDENTIALS_DIRECTORY");
	const struct conf_source *source = c->origin[key].source;
	const char *slash = source ? strrchr(source->label, '/') : NULL;
	char path[PATH_MAX];
	int fd = -1;

	if (*name == '/')
		return open(name, how);
	if (credentials && path_join(credentials, strlen(credentials), name, path))
		fd = open(path, how);
	if (fd >= 0 || (credentials && errno != ENOENT))
		return fd;
	if (slash && path_join(source->label, (size_t)(slash - source->label), name, path))
		return open(path, how);
	return open(name, how);
}

static ssize_t password_read(int fd, char *text, size_t size)
{
	ssize_t n = 0, r = 1;

	while (r && (size_t)n < size) {
		r = read(fd, text + n, size - (size_t)n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		n += r;
	}
	return n;
}

/* Takes one line without its end. */
static int password_take(const char *text, size_t n, char **ret_password)
{
	size_t length = strcspn(text, "\r\n");
	size_t rest = length + strspn(text + length, "\r\n");

	if (!length || n > PASSWORD_MAX || rest != n)
		return -EINVAL;
	*ret_password = conf_strndup(text, length);
	return 0;
}

static int password_of(int fd, char **ret_password)
{
	char text[PASSWORD_MAX + 2] = "";
	ssize_t n = password_read(fd, text, sizeof(text) - 1);
	int r;

	r = n < 0 ? (int)n : password_take(text, (size_t)n, ret_password);
	explicit_bzero(text, sizeof(text));
	return r;
}

static int password_get(const struct conf *c, bool again, char **ret_password)
{
	struct stat st;
	int fd, r;

	if (!c->redis.password_file) {
		*ret_password = NULL;
		return 0;
	}
	fd = secret_open(c, KEY_REDIS_PASSWORD_FILE, c->redis.password_file, O_RDONLY | O_CLOEXEC | (again ? O_NONBLOCK : 0));
	if (fd < 0)
		return -errno;
	r = again && (fstat(fd, &st) || !S_ISREG(st.st_mode)) ? -ENOTSUP : password_of(fd, ret_password);
	close(fd);
	return r;
}

int conf_password(const struct conf *c, char **ret_password)
{
	return password_get(c, false, ret_password);
}

int conf_password_again(const struct conf *c, char **ret_password)
{
	return password_get(c, true, ret_password);
}
