/* SPDX-License-Identifier: BSD-2-Clause */
/* See job_rows.h. */
#include "daemon/store/job_rows.h"

#include "daemon/base/mem.h"
#include "daemon/store/ledger.h"

#define JOB_BYTES   512 /* as in jobs.lua */
#define QUEUE_BYTES 2048

/* --- lists --- */

static int id_order(struct span a, struct span b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n > 0 ? memcmp(a.p, b.p, n) : 0;

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

static bool is_before(const struct job_row *j, int64_t ms, uint64_t number)
{
	return j->ms < ms || (j->ms == ms && j->number < number);
}

size_t job_list_place(const struct job_list *l, int64_t ms, uint64_t number)
{
	size_t low = 0, high = l->count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (is_before(l->row[mid], ms, number))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void job_row_leave(struct job_queue *q, struct job_row *j)
{
	struct job_list *l = &q->list[j->kind];
	size_t i = job_list_place(l, j->ms, j->number);

	memmove(&l->row[i], &l->row[i + 1], (l->count - i - 1) * sizeof(struct job_row *));
	l->count--;
}

void job_row_enter(struct job_queue *q, struct job_row *j, unsigned kind, int64_t ms)
{
	struct job_list *l = &q->list[kind];
	size_t i = job_list_place(l, ms, j->number);

	if (l->count == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 8;
		l->row = mem_grow(l->row, l->cap, sizeof(struct job_row *));
	}
	memmove(&l->row[i + 1], &l->row[i], (l->count - i) * sizeof(struct job_row *));
	l->row[i] = j;
	l->count++;
	j->kind = kind;
	j->ms = ms;
}

void job_row_move(struct job_queue *q, struct job_row *j, unsigned kind, int64_t ms)
{
	job_row_leave(q, j);
	job_row_enter(q, j, kind, ms);
}

/* --- jobs and queues --- */

struct span job_row_text_keep(struct span text)
{
	return (struct span){mem_copy(text.p, text.n), text.n};
}

void job_row_text_drop(struct span *text)
{
	mem_free((void *)(uintptr_t)text->p);
	*text = SPAN("");
	text->p = NULL;
}

void job_row_text_replace(struct span *text, struct span by)
{
	struct span kept = by.n > 0 ? job_row_text_keep(by) : (struct span){NULL, 0};

	job_row_text_drop(text);
	*text = kept;
}

static bool id_matches(const struct map_node *node, const void *key, size_t n)
{
	const struct job_row *j = container_of(node, struct job_row, by_id);

	return span_equal(j->id, (struct span){key, n});
}

struct job_row *job_row_find(const struct job_queue *q, struct span id)
{
	struct map_node *node = q ? map_find(&q->ids, map_hash(&q->ids, id.p, id.n), id.p, id.n, id_matches) : NULL;

	return node ? container_of(node, struct job_row, by_id) : NULL;
}

struct job_row *job_row_of(const struct job_queue *q, struct span value)
{
	for (size_t i = 0; q && i < q->list[LEASED].count; i++)
		if (span_equal(q->list[LEASED].row[i]->value, value))
			return q->list[LEASED].row[i];
	return NULL;
}

static void job_row_free(struct job_row *j)
{
	job_row_text_drop(&j->id);
	job_row_text_drop(&j->payload);
	job_row_text_drop(&j->lock);
	job_row_text_drop(&j->value);
	job_row_text_drop(&j->peer);
	mem_free(j);
}

int64_t job_row_bytes(struct span id, struct span payload, struct span lock, struct span peer)
{
	return (int64_t)(JOB_BYTES + 4 * id.n + payload.n + lock.n + peer.n);
}

int64_t job_queue_bytes(struct span name)
{
	return (int64_t)(QUEUE_BYTES + 8 * name.n);
}

void job_row_charge(struct job_store *s, const struct job_row *j, int sign)
{
	ledger_charge(s->ledger, j->peer, sign * job_row_bytes(j->id, j->payload, j->lock, j->peer));
}

struct job_row *job_row_add(struct job_store *s, struct job_queue *q, struct span id)
{
	struct job_row *j = mem_alloc(sizeof(*j));

	j->id = job_row_text_keep(id);
	j->queue = q;
	j->number = ++s->number;
	map_insert(&q->ids, &j->by_id, map_hash(&q->ids, id.p, id.n));
	return j;
}

void job_row_remove(struct job_queue *q, struct job_row *j)
{
	job_row_leave(q, j);
	map_remove(&q->ids, &j->by_id);
	job_row_free(j);
}

size_t job_rows_count(const struct job_queue *q)
{
	return q ? q->list[DUE].count + q->list[LEASED].count + q->list[DEAD].count : 0;
}

static size_t queue_place(const struct job_store *s, struct span name)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (id_order(s->queue[mid]->name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct job_queue *job_rows_find(const struct job_store *s, struct span name)
{
	size_t i = queue_place(s, name);

	return i < s->count && span_equal(s->queue[i]->name, name) ? s->queue[i] : NULL;
}

static struct job_queue *job_rows_new(const struct job_store *s, struct span name)
{
	struct job_queue *q = mem_alloc(sizeof(*q));

	q->name = job_row_text_keep(name);
	map_init(&q->ids, s->seed);
	return q;
}

struct job_queue *job_rows_add(struct job_store *s, struct span name, struct span peer)
{
	size_t i = queue_place(s, name);
	struct job_queue *q = job_rows_new(s, name);

	job_row_text_replace(&q->peer, peer);
	ledger_charge(s->ledger, peer, job_queue_bytes(name));
	if (s->count == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 8;
		s->queue = mem_grow(s->queue, s->cap, sizeof(struct job_queue *));
	}
	memmove(&s->queue[i + 1], &s->queue[i], (s->count - i) * sizeof(struct job_queue *));
	s->queue[i] = q;
	s->count++;
	return q;
}

static void job_rows_free(struct job_queue *q)
{
	for (unsigned k = 0; k < KINDS; k++) {
		for (size_t i = 0; i < q->list[k].count; i++)
			job_row_free(q->list[k].row[i]);
		mem_free(q->list[k].row);
	}
	map_release(&q->ids);
	job_row_text_drop(&q->name);
	job_row_text_drop(&q->peer);
	mem_free(q);
}

static void job_rows_drop(struct job_store *s, struct job_queue *q)
{
	size_t i = queue_place(s, q->name);

	memmove(&s->queue[i], &s->queue[i + 1], (s->count - i - 1) * sizeof(struct job_queue *));
	s->count--;
	heap_cancel(&s->dead, &q->dead);
	ledger_charge(s->ledger, q->peer, -job_queue_bytes(q->name));
	job_rows_free(q);
}

void job_rows_forget(struct job_store *s, struct job_queue *q, struct job_row *j)
{
	job_row_charge(s, j, -1);
	job_row_remove(q, j);
	if (job_rows_count(q) == 0)
		job_rows_drop(s, q);
}

/* --- DEFERs that were carried out --- */

static bool nonce_matches(const struct map_node *node, const void *key, size_t n)
{
	const struct job_note *note = container_of(node, struct job_note, by_nonce);

	return span_equal((struct span){note->nonce, note->n}, (struct span){key, n});
}

struct job_note *job_note_find(const struct job_store *s, struct span nonce)
{
	struct map_node *node = map_find(&s->deferred, map_hash(&s->deferred, nonce.p, nonce.n), nonce.p, nonce.n, nonce_matches);

	return node ? container_of(node, struct job_note, by_nonce) : NULL;
}

void job_note_add(struct job_store *s, struct span nonce, int64_t until_ms)
{
	struct job_note *note = mem_alloc(sizeof(*note) + nonce.n);

	memcpy(note->nonce, nonce.p, nonce.n);
	note->n = (uint32_t)nonce.n;
	note->until_ms = until_ms;
	map_insert(&s->deferred, &note->by_nonce, map_hash(&s->deferred, nonce.p, nonce.n));
	STAILQ_INSERT_TAIL(&s->notes, note, in_notes);
}

void job_note_remove_first(struct job_store *s)
{
	struct job_note *note = STAILQ_FIRST(&s->notes);

	STAILQ_REMOVE_HEAD(&s->notes, in_notes);
	map_remove(&s->deferred, &note->by_nonce);
	mem_free(note);
}

void job_store_init(struct job_store *s, const uint64_t seed[2], struct ledger *ledger)
{
	*s = (struct job_store){.seed = {seed[0], seed[1]}, .ledger = ledger};
	heap_init(&s->dead);
	TAILQ_INIT(&s->changed);
	map_init(&s->deferred, seed);
	STAILQ_INIT(&s->notes);
}

void job_store_release(struct job_store *s)
{
	for (size_t i = 0; i < s->count; i++)
		job_rows_free(s->queue[i]);
	while (!STAILQ_EMPTY(&s->notes))
		job_note_remove_first(s);
	map_release(&s->deferred);
	heap_release(&s->dead);
	mem_free(s->queue);
	mem_free(s->gone);
}
