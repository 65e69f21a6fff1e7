/* SPDX-License-Identifier: BSD-2-Clause */
/* A key that readers hold together: lua/shares.lua and lua/sharing.lua in C. It knows no keys: it reads texts, and writes them. */
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

/* The shares in the text that are not over. False: it is no such text. */
bool share_list_read(struct share_list *s, struct span text, int64_t now_ms);
/* The one that ends last. There is one. */
const struct share_end *share_list_last(const struct share_list *s);
struct share_end *share_list_of(struct share_list *s, struct span value); /* NULL: it has none */
/* A share is that of a reader, or the mark of a semaphore, whose value tells the limit. Whether the others at the key are of the kind of this value. */
bool share_list_suits(const struct share_list *s, struct span value);
/* Takes out the shares of the call's values. Returns when the last of them ends, -1: there was none; and whether its new value was among them. */
int64_t share_list_take(struct share_list *s, const struct call *c, bool *ret_again);
void share_list_put(struct share_list *s, struct span value, int64_t ends_ms); /* at the end */
/* The text of the key, appended. Returns its TTL. */
int64_t share_list_write(const struct share_list *s, struct buf *out, int64_t now_ms);

#endif
