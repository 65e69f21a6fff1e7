/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether those who reach the daemon must show who they are. Internal to conf.
 */
#ifndef CONF_PROTECT_H
#define CONF_PROTECT_H

#include "conf/report.h"

/* Refuses an address beyond loopback that nothing protects. Warns of rules that nobody can meet. */
void protect_check(const struct conf *c, struct conf_report *report);

#endif
