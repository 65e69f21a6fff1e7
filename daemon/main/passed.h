/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a configuration needs for the sockets that the service manager passes. The checks of the configuration cover only its own addresses. A start, a reload,
 * and the trial before a restart in place use the same rule.
 */
#ifndef DAEMON_PASSED_H
#define DAEMON_PASSED_H

#include "conf/conf.h"
#include "daemon/systemd/systemd.h"

/* Whether clients on other hosts can reach this daemon. Such clients may still rely on their leases after this host has rebooted. */
/* tcp: the configured host; NULL: none. False for NULL and for the known names of loopback, true for every other host. */
bool reach_of_host(const char *tcp);
/* fd: a listening socket passed by the service manager. True if in doubt. */
bool reach_of_socket(int fd);
#define PASSED_OPTION "--passed=" /* before a number of these bits: tells the program on disk the kinds, at a trial */

enum passed_kind {
	PASSED_PLAIN = 1,    /* a plain socket that other hosts may reach */
	PASSED_TLS = 2,      /* a socket called tls */
	PASSED_TLS_OPEN = 4, /* a socket called tls that other hosts may reach */
};

bool passed_is_tls(const struct systemd_socket *s);
unsigned passed_kind(const struct systemd_socket *s);
unsigned passed_kinds(const struct systemd *s); /* of all passed sockets */

/* Why this configuration does not suit sockets of these kinds, for people; NULL: it does. */
const char *passed_flaw(const struct conf *c, unsigned kinds);

#endif
