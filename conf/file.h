/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that the configuration names. Internal to conf. */
#ifndef CONF_FILE_H
#define CONF_FILE_H

#include "conf/conf.h"

/*
 * Opens the file that this key names, for reading; how: further flags of open(2). A relative name is looked up in $CREDENTIALS_DIRECTORY, then beside the
 * configuration file, then in the working directory. -1 with errno.
 */
int file_open(const struct conf *c, enum conf_key key, int how);

#endif
