/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that the configuration names. Internal to conf. */
#ifndef CONF_FILE_H
#define CONF_FILE_H

#include "conf/conf.h"

/* Opens it for reading; how: further flags of open(2). -1 with errno. */
int file_open(const struct conf *c, enum conf_key key, int how);

#endif
