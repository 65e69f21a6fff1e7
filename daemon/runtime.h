/* SPDX-License-Identifier: BSD-2-Clause */
/* The runtime directory: where the socket, the state file and the lock against a second daemon live. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include "daemon/base/instant.h"
#include <stddef.h>

struct runtime {
	char dir[4096];
	int lock; /* held as long as the daemon lives */
};

/*
 * configured: NULL for the choice of redlockd.yaml(5): $RUNTIME_DIRECTORY, /run/redlockd as root, $XDG_RUNTIME_DIR/redlockd, a private folder in /tmp.
 * Creates it. 0; -EWOULDBLOCK when another daemon lives there; else the errno of what failed, with *ret_what naming it.
 */
int runtime_open(struct runtime *r, const char *configured, const char **ret_what) __attribute__((warn_unused_result));
void runtime_close(struct runtime *r);

#define RUNTIME_BOOT_ID "/proc/sys/kernel/random/boot_id"

/* What stands there; "" if it cannot be read. */
void runtime_boot_id(char *out, size_t size);
/* When process 1 began, by CLOCK_BOOTTIME: that of the boot or of the container; 0 if that is not told. */
struct instant runtime_began(void);

#endif
