/* SPDX-License-Identifier: BSD-2-Clause */
/* See secret.h. */
#include "client/lib/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first line of the file, without its end. */
static int secret_read(const char *path, char secret[SECRET_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t r = 1;
	size_t n = 0;

	if (fd < 0)
		return -errno;
	while (r > 0 && n < SECRET_BYTES && !memchr(secret, '\n', n)) {
		r = read(fd, secret + n, SECRET_BYTES - n);
		if (r < 0 && errno == EINTR)
			r = 1;
		else if (r > 0)
			n += (size_t)r;
	}
	r = r < 0 ? -errno : 0;
	close(fd);
	if (r < 0)
		return (int)r;
	if (n == SECRET_BYTES && !memchr(secret, '\n', n))
		return -EINVAL;
	secret[n < SECRET_BYTES ? n : n - 1] = '\0';
	secret[strcspn(secret, "\r\n")] = '\0';
	return *secret ? 0 : -EINVAL;
}

int secret_find(const char **ret_user, char secret[SECRET_BYTES])
{
	const char *user = secure_getenv("REDLOCK_USER"), *path = secure_getenv("REDLOCK_SECRET_FILE"), *text = secure_getenv("REDLOCK_SECRET");

	if (!user || !*user)
		return 1;
	*ret_user = user;
	if (path && *path)
		return secret_read(path, secret);
	if (!text || !*text || strlen(text) >= SECRET_BYTES)
		return -EINVAL;
	memcpy(secret, text, strlen(text) + 1);
	return 0;
}
