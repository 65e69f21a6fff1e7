/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptor store of the service manager (FDSTORE in sd_notify(3)): it keeps descriptors of the unit while the unit restarts, and passes them to the next
 * process, by name. It drops them when the unit is stopped. Use it only if s->keeps. 0 or a negative errno. Not thread-safe.
 */
#ifndef FDSTORE_H
#define FDSTORE_H

#include "daemon/systemd/systemd.h"

/* Waits up to a second for the manager to read: -EAGAIN if it does not. name: begins with SYSTEMD_KEPT. The caller keeps its descriptor. */
int fdstore_put(const struct systemd *s, const char *name, int fd) __attribute__((warn_unused_result));
/* All of that name. Never waits: -EAGAIN if the socket of the manager is full. */
int fdstore_remove(const struct systemd *s, const char *name) __attribute__((warn_unused_result));
/* Waits until the manager has handled all earlier messages. -ETIMEDOUT if it has not by then. */
int fdstore_settle(const struct systemd *s, int64_t us) __attribute__((warn_unused_result));

#endif
