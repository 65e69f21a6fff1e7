/* SPDX-License-Identifier: BSD-2-Clause */
/* See bundle.h. */
#include "client/bundle.h"
#include "client/line.h"
#include "client/repeat.h"

int bundle_begin(struct holds *holds, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct hold *h;
		int r = holds_reserve(holds, names[i]);

		if (r) {
			holds_unbundle(holds);
			return r;
		}
		h = holds_find(holds, span_of(names[i]));
		h->in_bundle = true;
		h->part.told = h->gone = false;
	}
	return 0;
}

void bundle_row(struct holds *holds, const struct reply_line *row)
{
	struct hold *h = holds_find(holds, reply_find(row, "name"));

	if (h && h->in_bundle)
		h->part = (struct hold_row){.told = true,
					    .fence = reply_number(row, "fence", 0),
					    .valid_ms = line_bounded(row, "valid_ms", 0),
					    .count = line_bounded(row, "count", 0)};
}

void bundle_given_up(struct holds *holds, const struct pending *p)
{
	struct hold *h;

	LIST_FOREACH(h, &holds->all, next) {
		if (!h->in_bundle)
			continue;
		h->in_bundle = false;
		if (h->state == HOLD_ASKED)
			h->state = HOLD_UNWANTED;
		else
			h->lock_given_up |= p->sent;
	}
}

const char *bundle_undecided(const struct holds *holds, const struct pending *p)
{
	const struct hold *h;

	LIST_FOREACH(h, &holds->all, next)
		if (h->in_bundle && !h->row.told && !h->gone && (p->sent || h->lock_given_up))
			return h->name;
	return NULL;
}

bool bundle_is_torn(const struct holds *holds, const struct pending *p, const struct hold *h)
{
	return h->in_bundle && p->kind == PENDING_LOCKALL && repeat_was_granted(h, p) && !repeat_has_all(holds, p);
}
