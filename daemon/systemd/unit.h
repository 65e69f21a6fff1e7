/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the unit redlockd.service says about the files that the daemon reads: its user, and its credentials. For --check-config, which root runs: the service
 * may not be able to read what root reads. The unit and its drop-ins are read as files, so settings that systemd got in other ways stay unknown.
 */
#ifndef DAEMON_UNIT_H
#define DAEMON_UNIT_H

#include "conf/conf.h"

struct unit {
	char user[64];          /* "": there is no unit, or it runs as root */
	char credentials[2048]; /* their names, each between two line feeds; those that do not fit are left out */
};

/* root: the prefix of /etc and /usr: "" except in tests. */
void unit_read(struct unit *u, const char *root);
bool unit_loads(const struct unit *u, const char *name); /* whether a credential has this name */

/*
 * Warns of each file in this configuration that the user of the unit cannot read, unless it is loaded as a credential. Also of the configuration itself, at
 * `config`, NULL: none. Only root can check that; for others it does nothing.
 */
void unit_check(const struct unit *u, const struct conf *c, const char *config, struct conf_report *report);

#endif
