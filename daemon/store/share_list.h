/* SPDX-License-Identifier: BSD-2-Clause */
/* A key that readers hold together: lua/shares.lua and lua/sharing.lua in C. It reads and writes texts, and does not know keys. */
#ifndef STORE_SHARE_LIST_H
#define STORE_SHARE_LIST_H

#include "daemon/base/buf.h"
#include "daemon/core/event/event.h"

#define SHARES_MOST 256

struct share_end {
	int64_t ends_ms;
	struct span value; /* in the text that was read, or what was put */
};

struct share_list {
	unsigned count;
	struct share_end share[SHARES_MOST + 1];
};

/* Reads the shares in the text that are not over. False: the text has no shares. */
bool share_list_read(struct share_list *s, struct span text, int64_t now_ms);
/* The share that ends last. There must be one. */
const struct share_end *share_list_last(const struct share_list *s);
struct share_end *share_list_of(struct share_list *s, struct span value); /* NULL: it has none */
/* A share belongs to a reader, or is the mark of a semaphore, whose value contains the limit. Whether the other shares are of the same kind as this value. */
bool share_list_suits(const struct share_list *s, struct span value);
/* Takes out the shares of the call's values. Returns when the last of them ends, -1: there was none; *ret_again: its new value was among them. */
int64_t share_list_take(struct share_list *s, const struct call *c, bool *ret_again);
void share_list_put(struct share_list *s, struct span value, int64_t ends_ms); /* at the end */
/* Appends the text of the key. Returns its TTL. */
int64_t share_list_write(const struct share_list *s, struct buf *out, int64_t now_ms);

#endif
