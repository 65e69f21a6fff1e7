/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses as the configuration writes them. Internal to conf.
 */
#ifndef CONF_ADDRESS_H
#define CONF_ADDRESS_H

#include "conf/conf.h"

#define WHY_MAX         256
#define SOCKET_PATH_MAX 107 /* bytes of a Unix socket's path */
#define REDIS_PORT      6379

/* The outcome of a value; VALUE_BAD comes with a reason for people. */
#define VALUE_BAD    (-1)
#define VALUE_SECRET (-2) /* the same, and the line may hold a password */

/* Formats the reason; returns VALUE_BAD. */
int value_refuse(char why[WHY_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));

#define NODE_NAME_MAX 64 /* bytes of what a node is called */

/* host:port, host, [v6]:port, unix:/path, each with NAME= in front or without. On success *ret_address owns its strings. */
int address_parse(const char *text, struct conf_address *ret_address, char why[WHY_MAX]);
void address_release(struct conf_address *a);
bool address_has_port(const char *text); /* of a text that address_parse took */
/* What daemons call the node. */
static inline const char *address_name(const struct conf_address *a)
{
	return a->name ? a->name : a->label;
}
bool host_is_name(const char *host);
bool address_equal(const struct conf_address *a, const struct conf_address *b);
void sentinel_release(struct conf_sentinel *s); /* NULL is allowed */
bool sentinel_equal(const struct conf_sentinel *a, const struct conf_sentinel *b);

/* host:port or [v6]:port, port 0 allowed; usual is the default, for the hints. The caller frees *ret_host. */
int listener_parse(const char *text, const char *usual, char **ret_host, uint16_t *ret_port, char why[WHY_MAX]);
/* The same, or unix:/path. On success *ret_address owns its strings. */
int web_address_parse(const char *text, struct conf_address *ret_address, char why[WHY_MAX]);
/* Whether only this host reaches a listener there. A name that is not known to be loopback counts as one that is not. */
bool host_is_loopback(const char *host);

#endif
