/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of the memory store in memory that survives the process: `<runtime_dir>/keys-<id>`, a file that is mapped and shared. When a process is killed, its
 * stores have been made in program order, and the kernel keeps the pages. So this needs no call and no copy for a key.
 *   0 magic   8 version   12 layout of a key   16 id   20 lost: some keys are not in the file   24 the end of the last slab
 *   then, from 4096 on, slabs: a header of 64 bytes (magic, size of an object, bytes of the slab), and objects
 * It protects against a crash of the daemon, not of the host: nothing is synced. All space is reserved before it is mapped, so a full device is an error here
 * and no SIGBUS later. Errors are negative errnos. Not thread-safe.
 */
#ifndef STORE_KEYFILE_H
#define STORE_KEYFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEYFILE_MAX ((int64_t)1 << 34) /* bytes; beyond that size no slab is added, so keys are lost */

#define KEYFILE_KEYS "keys-" /* the beginning of each file name */

struct keyfile;

/*
 * layout: files of another layout are not read. id: not 0. The folder must stay open. If the process is killed in here, there is no file of this id, or a whole
 * one. keyfile_remove_others removes any other remains. On an error *ret has no name, and loses all keys until keyfile_renew has made the file.
 */
int keyfile_new(int dir, uint32_t id, uint32_t layout, struct keyfile **ret);
void keyfile_free(struct keyfile *f); /* unmaps and closes it; the file stays */
/* A slab for objects of this size, zero-filled, aligned to 16 bytes. NULL: there is no space. */
void *keyfile_slab(struct keyfile *f, size_t object, size_t *ret_bytes);
void keyfile_lose(struct keyfile *f); /* a key is not in the file, so the file no longer holds all */
void keyfile_retry(struct keyfile *f); /* there may be space for slabs again */
void keyfile_complete(struct keyfile *f); /* every key that was missing is now in the file, or deleted */
bool keyfile_lost(const struct keyfile *f); /* it does not hold all, or has no name */
int keyfile_nameless(const struct keyfile *f); /* why it could not be made, a negative errno; 0: it has a name */
/* Checks whether somebody has removed the file, or has cut it. After a cut the mapped memory cannot be read any more. */
enum keyfile_sight { KEYFILE_THERE, KEYFILE_GONE, KEYFILE_CUT };
/* The file is gone: makes another one with the same contents, mapped at the same addresses. 0 or an error: then it has no name until a retry succeeds. */
int keyfile_renew(struct keyfile *f, int dir);
/* *ret_error: why the check failed, a negative errno; else 0. */
enum keyfile_sight keyfile_look(const struct keyfile *f, int dir, int *ret_error);
uint32_t keyfile_id(const struct keyfile *f);

/* Visits all objects of a file that another run has left. -ENOENT; -EBADMSG: it is damaged, or of another layout; -EXDEV: it does not hold all keys. */
int keyfile_read(int dir, uint32_t id, uint32_t layout, void (*visit)(void *context, const void *object, size_t size), void *context)
	__attribute__((warn_unused_result));
const char *keyfile_fault(int error); /* the text for an error of keyfile_read */
void keyfile_remove(int dir, uint32_t id);
void keyfile_remove_others(int dir, uint32_t id); /* those of earlier runs */

#endif
