/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares out the descriptors that this process may open. The stores, the journal and the log come first, so that clients cannot prevent the return of a quorum.
 * Connections of clients get the rest.
 */
#ifndef DAEMON_DESCRIPTORS_H
#define DAEMON_DESCRIPTORS_H

#include "conf/conf.h"

/* passed: the number of sockets that the service manager has passed. 0 if the limit of this process leaves none for clients. */
unsigned descriptors_for_clients(const struct conf *c, size_t passed);

/* Warns if limits.clients sessions need more descriptors than there are. */
void descriptors_warn(const struct conf *c, size_t passed);

/* Logs that the limit leaves none, and returns -EMFILE. */
int descriptors_lack(const struct conf *c, size_t passed);

#endif
