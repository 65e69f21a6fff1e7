/* SPDX-License-Identifier: BSD-2-Clause */
/* Flights, and the store of spare ones. */
#include "daemon/redis/flight.h"
#include "daemon/base/mem.h"

#include <stdlib.h>

#define SPARE_MAX   16
#define SPARE_BYTES ((size_t)32 * 1024) /* a larger buffer of a spare flight is freed */

void flight_store_init(struct flight_store *s)
{
	TAILQ_INIT(&s->spare);
	s->spares = 0;
}

static void flight_free(struct flight *f)
{
	batch_release(&f->batch);
	free(f);
}

void flight_store_release(struct flight_store *s)
{
	struct flight *f;

	while ((f = TAILQ_FIRST(&s->spare))) {
		TAILQ_REMOVE(&s->spare, f, next);
		flight_free(f);
	}
	s->spares = 0;
}

struct flight *flight_get(struct flight_store *s, enum flight_kind kind)
{
	struct flight *f = TAILQ_FIRST(&s->spare);

	if (f) {
		TAILQ_REMOVE(&s->spare, f, next);
		s->spares--;
	} else {
		f = mem_alloc(sizeof(*f));
		batch_init(&f->batch);
	}
	f->kind = kind;
	f->again = false;
	return f;
}

void flight_put(struct flight_store *s, struct flight *f)
{
	if (s->spares == SPARE_MAX) {
		flight_free(f);
		return;
	}
	batch_reset(&f->batch);
	batch_trim(&f->batch, SPARE_BYTES);
	TAILQ_INSERT_HEAD(&s->spare, f, next);
	s->spares++;
}

void flight_put_all(struct flight_store *s, struct flight_list *list)
{
	struct flight *f;

	while ((f = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, f, next);
		flight_put(s, f);
	}
}

static bool batch_names(const struct batch *b, uint64_t hash)
{
	unsigned i;

	for (i = 0; i < b->count; i++) {
		if (batch_entry(b, i)->hash == hash)
			return true;
	}
	return false;
}

bool flight_list_names(const struct flight_list *list, uint64_t hash)
{
	const struct flight *f;

	TAILQ_FOREACH(f, list, next)
	{
		if (f->kind == FLIGHT_SCRIPT && batch_names(&f->batch, hash))
			return true;
	}
	return false;
}
