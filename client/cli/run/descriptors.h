/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process that stays in the background lets go of: whoever waits for the end of an output, or for a lock of a file that
 * redlock inherited, does not wait for this process.
 */
#ifndef CLIENT_DESCRIPTORS_H
#define CLIENT_DESCRIPTORS_H

#include <stddef.h>

/* The standard streams become /dev/null. Closes all other descriptors but the n kept ones; -1 among these means none. */
void descriptors_drop(const int kept[], size_t n);

#endif
