/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that the configuration names. Internal to conf. */
#ifndef CONF_FILE_H
#define CONF_FILE_H

#include "conf/conf.h"

/*
 * Where the file is that this key names: a relative name is looked up in $CREDENTIALS_DIRECTORY, then beside the configuration file, then in the working
 * directory. ret_path has PATH_MAX bytes. False with errno: the path is too long.
 */
bool file_path(const struct conf *c, enum conf_key key, char *ret_path);
/* Opens it for reading; how: further flags of open(2). -1 with errno. */
int file_open(const struct conf *c, enum conf_key key, int how);

#endif
