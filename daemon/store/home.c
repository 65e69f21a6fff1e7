/* SPDX-License-Identifier: BSD-2-Clause */
/* See home.h. */
#include "daemon/store/home.h"

#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"

struct home *home_new(const uint64_t seed[2])
{
	struct home *h = mem_alloc(sizeof(*h));

	ledger_init(&h->ledger, seed);
	rates_init(&h->rates, seed, &h->ledger);
	job_store_init(&h->jobs, seed, &h->ledger);
	return h;
}

void home_free(struct home *h)
{
	if (!h)
		return;
	buf_release(&h->name);
	buf_release(&h->result);
	rates_release(&h->rates);
	job_store_release(&h->jobs);
	ledger_release(&h->ledger);
	mem_free(h);
}

/* Whether the store has this name, or none yet. Each operation but n gives it the name; n does so only if asked to. */
static bool home_goes_by(struct home *h, struct span name, struct span words)
{
	struct span op;
	int64_t give = 0;
	bool named = buf_length(&h->name) > 0, asks = netstring_next(&words, &op) && span_equal(op, SPAN("n"));

	if (asks && !netstring_next_int(&words, &give))
		give = 0;
	if (!named && (!asks || give))
		buf_append(&h->name, name.p, name.n);
	return !named || span_equal(name, (struct span){buf_begin(&h->name), buf_length(&h->name)});
}

/* False: there is no such operation, or its arguments are malformed. */
static bool home_do(struct home *h, int64_t epoch_us, const struct call *c, struct instant now, struct answer *a)
{
	struct span rest = c->value, op;

	if (!netstring_next(&rest, &op) || op.n != 1)
		return false;
	switch (op.p[0]) {
	case 'n':
		a->code = 'H';
		buf_clear(&h->result);
		buf_append(&h->result, buf_begin(&h->name), buf_length(&h->name));
		return true;
	case 'r':
		return rate_call(&h->rates, epoch_us, c, rest, now, &h->result, a);
	case 'j':
		rates_sweep(&h->rates, now);
		jobs_call(&h->jobs, c, rest, &h->result, a);
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
	} else if (!home_goes_by(h, c->ticket, c->value)) {
		a->code = 'N';
		a->found = (struct span){buf_begin(&h->name), buf_length(&h->name)};
	} else if (home_do(h, epoch_us, c, now, a)) {
		a->found = (struct span){buf_begin(&h->result), buf_length(&h->result)};
	} else {
		a->class = ANSWER_UNKNOWN;
		a->text = SPAN("ERR no such operation");
	}
}
