/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole files. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "daemon/base/buf.h"

/*
 * Appends what fd holds from its position on. 0, or a negative errno: -EBADMSG it is no regular file, -EFBIG it has more than `most` bytes;
 * what was read until then stays in b.
 */
int file_read_whole(int fd, size_t most, struct buf *b) __attribute__((warn_unused_result));

#endif
