/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one process hands over to the next, in a memfd: records of the journal (daemon/core/event/journal.h), each in a frame (daemon/files/frame.h). So a next
 * process of any build can read them. Descriptors are places in a list that goes beside.
 */
#ifndef DAEMON_RECORDS_H
#define DAEMON_RECORDS_H

#include "daemon/restart/carried.h"

/* c but its descriptors, and the frames of what the service has written. Returns a memfd, or -errno. */
int records_write(const struct carried *c, const struct buf *service) __attribute__((warn_unused_result));
/*
 * What the process before has written. NULL: *ret_why says why, for people. The descriptor stays open.
 */
struct carried *records_read(int fd, const char **ret_why);
/* The next record for the service; false: no more. Borrowed until carried_free. */
bool records_next(struct carried *c, struct span *ret_record);
void carried_free(struct carried *c); /* closes nothing */

#endif
