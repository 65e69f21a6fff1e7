/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node whose address sentinels tell: {sentinel: {master: locks, addresses: [10.0.0.1:26379]}}, with name: beside it or without. Internal to conf.
 */
#ifndef CONF_SENTINEL_H
#define CONF_SENTINEL_H

#include "conf/address.h"
#include "conf/yaml.h"

/*
 * The present event begins a mapping: reads it to its end. 0, and *ret_node owns its strings; or VALUE_BAD, reported.
 */
int sentinel_read(struct yaml *y, struct conf_address *ret_node);
void sentinel_print(const struct conf_address *node, FILE *out);

#endif
