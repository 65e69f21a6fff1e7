/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a configuration must have for the sockets that the service manager passes: the checks of the configuration know its own addresses alone. A start, a
 * reload, and the trial before a restart in place judge by the same rule.
 */
#ifndef DAEMON_PASSED_H
#define DAEMON_PASSED_H

#include "conf/conf.h"
#include "daemon/systemd/systemd.h"

#define PASSED_OPTION "--passed=" /* in front of a number of these bits: how the daemon tells the program on disk, at a trial */

enum passed_kind {
	PASSED_PLAIN = 1,    /* a plain one that other hosts may reach */
	PASSED_TLS = 2,      /* one that is called tls */
	PASSED_TLS_OPEN = 4, /* such a one that other hosts may reach */
};

bool passed_is_tls(const struct systemd_socket *s);
unsigned passed_kind(const struct systemd_socket *s);
unsigned passed_kinds(const struct systemd *s); /* of all that were passed */

/* Why this configuration does not do for sockets of these kinds, for people; NULL: it does. */
const char *passed_flaw(const struct conf *c, unsigned kinds);

#endif
