/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The user of this process and its secret: $REDLOCK_USER, and the first line of the file $REDLOCK_SECRET_FILE, or $REDLOCK_SECRET. Never from a command line,
 * which everybody can read.
 */
#ifndef CLIENT_SECRET_H
#define CLIENT_SECRET_H

#include "client/lib/redlock.h"

#define SECRET_BYTES 1025

/*
 * 0; 1: there is no user; -EINVAL: a user without a secret, or a secret that is empty, binary or too long; else an errno of reading the file. The caller wipes
 * the secret. *ret_user is borrowed from the environment.
 */
int secret_find(const char **ret_user, char secret[SECRET_BYTES]) REDLOCK_MUST;

#endif
