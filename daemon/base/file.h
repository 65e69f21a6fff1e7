/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole files. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "daemon/base/buf.h"

/*
 * Appends the rest of the file to b. 0, or a negative errno: -EBADMSG if it is no regular file, -EFBIG if it has more than `most` bytes.
 * Bytes that were read before an error stay in b.
 */
int file_read_whole(int fd, size_t most, struct buf *b) __attribute__((warn_unused_result));

#endif
