/* SPDX-License-Identifier: BSD-2-Clause */
/* A copy of what the last probe read and answered. It must not be used while the server refuses anything. */
#include "tests/sim/redis/probe_memo.h"

#include <string.h>

void span_keep(struct arena *a, struct span *text)
{
	text->p = text->n ? arena_copy(a, text->p, text->n) : "";
}

const struct probe *probe_copy(struct arena *a, const struct probe *from)
{
	struct probe *p = arena_alloc(a, sizeof(*p));

	*p = *from;
	span_keep(a, &p->marker);
	span_keep(a, &p->run_id);
	span_keep(a, &p->replid);
	span_keep(a, &p->version);
	span_keep(a, &p->role);
	span_keep(a, &p->policy);
	span_keep(a, &p->refusal);
	span_keep(a, &p->called);
	return p;
}

void memo_init(struct memo *m)
{
	*m = (struct memo){0};
	arena_init(&m->arena);
}

void memo_release(struct memo *m)
{
	arena_release(&m->arena);
}

void memo_forget(struct memo *m)
{
	m->known = false;
}

static bool memo_holds(const struct memo *m, const struct memo_read *r)
{
	return m->known && !r->model->error && m->evicted == r->model->evicted && m->fed == r->model->fed && span_equal(m->marker, r->marker) &&
	       span_equal(m->fence, r->fence) && span_equal(m->called, r->called) && strcmp(m->role, r->model->role) == 0 &&
	       strcmp(m->run_id, r->model->run_id) == 0 && strcmp(m->replid, r->model->replid) == 0;
}

bool memo_answer(struct memo *m, const struct memo_read *r, const struct call *call, int64_t wall_us, struct answer *ret_answer)
{
	if (!memo_holds(m, r) || ++m->asked % MEMO_TRUST == 0)
		return false;
	*ret_answer = m->answer;
	ret_answer->call = call->id;
	ret_answer->node = call->node;
	ret_answer->server_us = wall_us;
	return true;
}

static bool probes_agree(const struct probe *p, const struct probe *q)
{
	return span_equal(p->marker, q->marker) && span_equal(p->run_id, q->run_id) && span_equal(p->replid, q->replid) &&
	       span_equal(p->version, q->version) && span_equal(p->role, q->role) && span_equal(p->policy, q->policy) && span_equal(p->called, q->called) &&
	       p->maxmemory == q->maxmemory && p->evicted == q->evicted && p->loading == q->loading &&
	       p->defect == q->defect && span_equal(p->refusal, q->refusal) && p->lesser == q->lesser && p->own_data == q->own_data && p->unsaved == q->unsaved;
}

static bool answers_agree(const struct answer *a, const struct answer *b)
{
	return a->class == b->class && a->code == b->code && a->fence == b->fence && a->pttl_ms == b->pttl_ms && span_equal(a->found, b->found) &&
	       span_equal(a->text, b->text) && a->probe && probes_agree(a->probe, b->probe);
}

bool memo_keep(struct memo *m, const struct memo_read *r, const struct answer *answer)
{
	const struct model *model = r->model;

	if (memo_holds(m, r))
		return answers_agree(answer, &m->answer);
	m->known = answer->class == ANSWER_EXECUTED && answer->probe && answer->server_us == model->now_us && !model->error;
	if (!m->known)
		return true;
	arena_reset(&m->arena);
	memcpy(m->run_id, model->run_id, sizeof(m->run_id));
	memcpy(m->replid, model->replid, sizeof(m->replid));
	memcpy(m->role, model->role, sizeof(m->role));
	m->evicted = model->evicted;
	m->fed = model->fed;
	m->marker = r->marker;
	m->fence = r->fence;
	m->called = r->called;
	m->answer = *answer;
	span_keep(&m->arena, &m->marker);
	span_keep(&m->arena, &m->fence);
	span_keep(&m->arena, &m->called);
	span_keep(&m->arena, &m->answer.found);
	span_keep(&m->arena, &m->answer.text);
	m->answer.probe = probe_copy(&m->arena, answer->probe);
	return true;
}
