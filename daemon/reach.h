/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether clients of other hosts can reach this daemon: what they believe outlives a reboot of this one. */
#ifndef DAEMON_REACH_H
#define DAEMON_REACH_H

#include <stdbool.h>

/* tcp: the configured host, NULL when there is none. Only a spelling of loopback that is known for certain stays within this host. */
bool reach_of_host(const char *tcp);
/* A listening socket that was passed. */
bool reach_of_socket(int fd);

#endif
