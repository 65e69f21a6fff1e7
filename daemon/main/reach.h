/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether clients on other hosts can reach this daemon. Such clients may still rely on their leases after this host has rebooted. */
#ifndef DAEMON_REACH_H
#define DAEMON_REACH_H

#include <stdbool.h>

/* tcp: the configured host; NULL: none. False for NULL and for the known names of loopback, true for every other host. */
bool reach_of_host(const char *tcp);
/* fd: a listening socket passed by the service manager. True if in doubt. */
bool reach_of_socket(int fd);

#endif
