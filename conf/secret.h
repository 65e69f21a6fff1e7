/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that the configuration names. Internal to conf.
 */
#ifndef CONF_SECRET_H
#define CONF_SECRET_H

#include "conf/conf.h"

/*
 * Opens the file that this FILENAME names: a relative name is looked up in $CREDENTIALS_DIRECTORY, then beside the configuration file, then in the working
 * directory. The descriptor, or -1 with errno.
 */
int secret_open(const struct conf *c, enum conf_key key, const char *name, int how);

#endif
