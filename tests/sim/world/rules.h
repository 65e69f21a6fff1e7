/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets of rules for daemons. Everybody may look, and is an administrator; some names may not be locked, by some or by all. What a set denies is said twice: as
 * rules for the daemon, and in the few words of sim_rules_deny() for the checker.
 */
#ifndef SIM_RULES_H
#define SIM_RULES_H

#include "proto/span.h"

#include <stdbool.h>

struct rules;

#define RULE_SETS 10

const struct rules *sim_rules(unsigned set); /* 0: all is allowed */
bool sim_rules_deny(unsigned set, bool is_unix, struct span name); /* to lock it; is_unix: a peer of the Unix socket */

#endif
