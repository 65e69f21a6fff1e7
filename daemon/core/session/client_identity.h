/* SPDX-License-Identifier: BSD-2-Clause */
/* The client of a session: what is known of its peer, and how people are told. */
#ifndef CORE_CLIENT_IDENTITY_H
#define CORE_CLIENT_IDENTITY_H

#include "daemon/core/session/session.h"

#define WHO_MAX 384 /* bytes of session_who: the longest label, and the peer */

/* Of a session that was just opened. */
void session_set_peer(struct session_table *t, struct session *s, const struct peer *peer);
/* Of a session without identity: its groups, if its peer has some. */
void session_set_groups(struct session *s, const struct peer *peer);
/* Made if need be. */
struct identity *session_identity(struct session *s);
/* The peer's address; "": it is not known. */
struct span session_address(const struct session *s);
/* Whose clients they are that limits count together, the same at all hosts: "uid 33@host", "10.0.0.5", "2001:db8::/64". Returns the length. */
size_t session_origin(const struct core *core, const struct session *s, char out[PEER_MAX]);
/* It is root, or the user of the daemon: limits of one peer do not bind it. */
bool session_is_owner(const struct core *core, const struct session *s);
/* The subject of the certificate that the peer has shown, as in "CN=db3"; "": none. */
struct span session_subject(const struct session *s);
/* With label_put(): "label pid=1 uid=2", "label 10.0.0.5:51234"; of the previous run "label session=3". Returns the length; out has WHO_MAX bytes. */
size_t session_who(const struct session *s, char *out);
/* Logs that a session did not end by its own wish. */
void session_ended(struct session_table *t, const struct session *s, const char *reason);

#endif
