/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon binds clients and stores to the service: it turns what they send into events, and carries out the effects. */
#ifndef DAEMON_H
#define DAEMON_H

#include "conf/conf.h"
#include "daemon/main/program.h"

struct daemon_args {
	const char *config;      /* path of the configuration file; NULL: none */
	const char *const *sets; /* --set, in order */
	size_t set_count;
	const struct program *program; /* for a restart in place */
};

/* Runs until SIGTERM or SIGINT. Returns the exit status of the process (sysexits.h). conf is borrowed; a reload changes it. After log_init. */
int daemon_run(struct conf *conf, const struct daemon_args *args);

/* Whether enough servers accept a connection of a process with this configuration, within seconds. If not, standard error gets the reason of each other
 * server. */
bool stores_try(const struct conf *conf);

#endif
