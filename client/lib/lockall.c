/* SPDX-License-Identifier: BSD-2-Clause */
/* See lockall.h. */
#include "client/lib/lockall.h"
#include "client/lib/line.h"

int lockall_begin(struct holds *holds, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct hold *h;
		int r = holds_reserve(holds, names[i]);

		if (r) {
			holds_end_lockall(holds);
			return r;
		}
		h = holds_find(holds, span_of(names[i]));
		h->in_bundle = true;
		h->rank = (unsigned)i;
		h->part.told = false;
	}
	return 0;
}

void lockall_row(struct holds *holds, const struct reply_line *row)
{
	struct hold *h = holds_find(holds, reply_find(row, "name"));

	if (h && h->in_bundle)
		h->part = (struct hold_row){.told = true,
					    .fence = reply_number(row, "fence", 0),
					    .valid_ms = line_bounded(row, "valid_ms", 0)};
}
