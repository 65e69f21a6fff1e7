/* SPDX-License-Identifier: BSD-2-Clause */
/* The runtime directory. It contains the socket, the state file, the journal, and the lock file against a second daemon. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include "daemon/base/instant.h"
#include <stdbool.h>
#include <stddef.h>

struct runtime {
	char dir[4096];
	int lock, folder; /* descriptors of the lock file and of the directory; locked until runtime_close */
};

/*
 * configured: NULL for the choice of redlockd.yaml(5): $RUNTIME_DIRECTORY, /run/redlockd as root, $XDG_RUNTIME_DIR/redlockd, a private folder in /tmp.
 * Creates and locks the directory. Returns 0; -EWOULDBLOCK if another daemon uses it; -EPERM if it is another user's; else a negative errno. *ret_what,
 * a static string, names the step that failed.
 */
int runtime_open(struct runtime *r, const char *configured, const char **ret_what) __attribute__((warn_unused_result));
/* A restart: these descriptors lock the directory; -1: it is not locked. Errors as above. */
int runtime_go_on(struct runtime *r, const char *dir, int lock, int folder, const char **ret_what) __attribute__((warn_unused_result));
/* Whether a start would choose the same directory. *ret_chosen: only the name of the one that it would choose. */
bool runtime_is_chosen(const struct runtime *r, const char *configured, struct runtime *ret_chosen);
/* What such an error means. */
const char *runtime_trouble(int r);
/* 0; 1: somebody has removed or replaced the directory; a negative errno: it cannot be examined. */
int runtime_look(const struct runtime *r);
/* Makes and locks it again. Errors as runtime_open; then nothing has changed. */
int runtime_again(struct runtime *r) __attribute__((warn_unused_result));
void runtime_close(struct runtime *r);

#define RUNTIME_BOOT_ID "/proc/sys/kernel/random/boot_id"

/* Reads the boot id; "" if it cannot be read. */
void runtime_boot_id(char *out, size_t size);
/* The start of process 1 by CLOCK_BOOTTIME: of the boot, or of the container; 0 if unknown. */
struct instant runtime_began(void);

#endif
