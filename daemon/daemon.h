/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon: the one place that knows both sides. It pumps events into the service and carries out its effects. */
#ifndef DAEMON_H
#define DAEMON_H

#include "conf/conf.h"

struct daemon_args {
	const char *config;      /* NULL: none */
	const char *const *sets; /* --set, in order */
	size_t set_count;
};

/* Runs until it is told to stop. conf is taken over. The process's exit status. */
int daemon_run(struct conf *conf, const struct daemon_args *args);

#endif
