/* SPDX-License-Identifier: BSD-2-Clause */
/* See home.h. */
#include "daemon/store/home.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"

#include <stdlib.h>

struct home *home_new(const uint64_t seed[2])
{
	struct home *h = mem_alloc(sizeof(*h));

	rates_init(&h->rates, seed);
	jobs_init(&h->jobs, seed);
	return h;
}

void home_free(struct home *h)
{
	if (!h)
		return;
	buf_release(&h->name);
	buf_release(&h->said);
	rates_release(&h->rates);
	jobs_release(&h->jobs);
	free(h);
}

/* Whether this is what the store is called. The first daemon decides. */
static bool home_goes_by(struct home *h, struct span name)
{
	if (buf_length(&h->name) == 0)
		buf_append(&h->name, name.p, name.n);
	return span_equal(name, (struct span){buf_begin(&h->name), buf_length(&h->name)});
}

/* False: there is no such operation, or its arguments are not sound. */
static bool home_do(struct home *h, int64_t epoch_us, const struct call *c, struct instant now, struct answer *a)
{
	struct span rest = c->value, op;

	if (!netstring_next(&rest, &op) || op.n != 1)
		return false;
	switch (op.p[0]) {
	case 'r':
		return rate_call(&h->rates, epoch_us, c, rest, now, &h->said, a);
	case 'j':
		jobs_call(&h->jobs, c, rest, &h->said, a);
		return true;
	default:
		return false;
	}
}

void home_call(struct home *h, struct span marker, int64_t epoch_us, const struct call *c, struct instant now, struct answer *a)
{
	a->class = ANSWER_EXECUTED;
	if (!span_equal(marker, c->marker)) {
		a->code = 'Q';
		a->found = marker;
	} else if (!home_goes_by(h, c->ticket)) {
		a->code = 'N';
		a->found = (struct span){buf_begin(&h->name), buf_length(&h->name)};
	} else if (home_do(h, epoch_us, c, now, a)) {
		a->found = (struct span){buf_begin(&h->said), buf_length(&h->said)};
	} else {
		a->class = ANSWER_UNKNOWN;
		a->text = SPAN("ERR no such operation");
	}
}
