/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What daemons tell each other of the holder of a lock, by messages that a store publishes: a question, and a card, which answers it. A value machine. What it
 * reads may be anything, since whoever may publish at a store can write such a message. So a card is shown to people, and decides nothing.
 *
 *   question  <daemon-id> <name> <number>
 *   card      <daemon-id> <name> <number> <held_ms> <label> <peer> <pid> <uid> <owner> <note> <trace>
 *
 * Each word has its length in front, see netstring.h. Words behind these are left to later versions; earlier ones send no trace. The id is that of the
 * daemon that sends the message, and the number that of the value that stands at the stores, see value.h.
 */
#ifndef CORE_HOLDER_TEXT_H
#define CORE_HOLDER_TEXT_H

#include "daemon/base/buf.h"
#include "daemon/core/lock/remark.h"

#include <stdbool.h>
#include <stdint.h>

#define CARD_TEXT_MAX  256  /* bytes of a label, a peer or a note */
#define CARD_OWNER_MAX 640  /* bytes of an owner: that of the lock of a job is long, see job_owner() */
#define CARD_MAX       2560 /* bytes of a message: a longer one is none */

/* The texts are borrowed. Of a question only the first three are there. */
struct holder_text {
	struct span daemon, name;
	int64_t number;
	int64_t held_ms; /* at least 0 */
	struct span label, peer; /* "": none; a peer of a Unix socket is "unix" */
	int64_t pid, uid;        /* -1: not known */
	struct span owner; /* "": none */
	struct remark remark;
};

void holder_text_put_question(struct buf *out, const struct holder_text *c);
void holder_text_put(struct buf *out, const struct holder_text *c);
/* False: it is not sound. The texts of ret_card are those of the message. */
bool holder_text_read_question(struct span message, struct holder_text *ret_card);
bool holder_text_read(struct span message, struct holder_text *ret_card);

/* The label, as people are shown it: in quotes if it could be taken for what a daemon knows, pid=1, an address, or @host. At most two bytes longer. */
char *label_put(char *at, struct span label);
/* The client, as session_who() shows one: "label pid=1 uid=2", "label 10.0.0.5:51234". Returns the length, 0: not known; out has CARD_WHO_MAX bytes. */
#define CARD_WHO_MAX (2 * CARD_TEXT_MAX + 64)
size_t holder_text_who(const struct holder_text *c, char *out);

#endif
