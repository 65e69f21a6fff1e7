/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads whole files. It must never read a file that is larger than the caller allows. */
#include "daemon/base/file.h"

#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_SIZE 65536

int file_read_whole(int fd, size_t most, struct buf *b)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if ((uint64_t)st.st_size > most)
		return -EFBIG;
	do {
		n = read(fd, buf_reserve(b, READ_SIZE), READ_SIZE);
		if (n > 0)
			buf_commit(b, (size_t)n);
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : 0;
}
