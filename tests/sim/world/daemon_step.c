/* SPDX-License-Identifier: BSD-2-Clause */
/* One pass of a daemon: an event goes into its service, and the effects of that go out into the world. */
#include "tests/sim/world/world.h"

#include <stdlib.h>

bool daemon_is_killed(const struct sim_daemon *d)
{
	return d->store && d->store->killed;
}

static struct conn *daemon_conn(struct sim_daemon *d, uint64_t session)
{
	struct conn *c = d->slot[(uint32_t)session % 256];

	return c && c->session == session ? c : NULL;
}

static void effect_send(struct sim_daemon *d, const struct effect *e, int64_t depart)
{
	struct conn *c = daemon_conn(d, e->send.session);

	if (!c && (d->shutting || e->send.session == d->admin))
		return; /* the request came behind one that the shutdown answered, or was no client's */
	if (!c) {
		checker_fail(d->world, INVARIANT_S21, -1, "daemon %u sends to a session that is over", d->index);
		return;
	}
	world_note(d->world, 3, hash_bytes(e->send.bytes.p, e->send.bytes.n),
		   "d%u to c%u.%u: %.*s", d->index, c->client->index, c->number, (int)e->send.bytes.n - 1, e->send.bytes.p);
	track_line(c, e->send.bytes);
	conn_send(c, e->send.bytes.p, e->send.bytes.n, depart);
}

static void effect_call(struct sim_daemon *d, const struct call *call, int64_t depart)
{
	struct call mine = *call;

	mine.node = d->server_of[call->node];
	call = &mine;
	world_note(d->world, (uint64_t)call->kind << 8 | call->node,
		   hash_bytes(call->value.p ? call->value.p : "", call->value.n), "d%u calls n%u %s %.*s %.*s px=%lld %.*s", d->index,
		   call->node, call_word(call->kind), (int)call->name.n, call->name.p, (int)call->value.n, call->value.p,
		   (long long)call->px_ms, (int)call->ticket.n, call->ticket.p ? call->ticket.p : "");
	track_syncs(d->world, name_number(call->name));
	recount_call(d, call);
	link_call(&d->link[call->node], call, depart);
}

static void effect_carry_out(struct sim_daemon *d, const struct effect *e, int64_t depart)
{
	struct conn *c;

	switch (e->kind) {
	case EFFECT_SEND:
		effect_send(d, e, depart);
		break;
	case EFFECT_HANGUP:
		c = daemon_conn(d, e->hangup.session);
		if (c && span_equal(e->hangup.reason, SPAN("killed")))
			broken_hung_up(c);
		if (c)
			conn_hang_up(c, depart);
		break;
	case EFFECT_AWAIT:
		c = daemon_conn(d, e->await.session);
		if (c)
			conn_await(c);
		break;
	case EFFECT_READ:
		c = daemon_conn(d, e->read.session);
		if (c)
			conn_set_reading(c, e->read.on);
		break;
	case EFFECT_CALL:
		effect_call(d, &e->call, depart);
		break;
	case EFFECT_JOURNAL:
		journal_append(d, e->journal.record);
		if (e->journal.first && d->store && store_write(d->store))
			journal_written(d);
		break;
	case EFFECT_VERIFY: /* no world has users, or an audit log */
	case EFFECT_AUDIT:
		break;
	case EFFECT_LOG:
		world_log(d->world, d->index, e);
		break;
	}
}

/* Sets the timer of the service, which rings a little late, as timers do. */
void daemon_arm(struct sim_daemon *d)
{
	struct instant when;

	if (d->store && store_is_behind(d->store))
		world_at(d->world, &d->timer, AT_DAEMON, d->world->now + stream_skewed(&d->stream, 1, 300));
	else if (service_deadline(d->service, &when))
		world_at(d->world, &d->timer, AT_DAEMON, host_deadline(&d->host, when) + stream_skewed(&d->stream, 1, 300));
	else
		heap_cancel(&d->world->heap, &d->timer);
}

/*
 * The service may refuse an event that comes too late: an answer after NODE_DOWN, for a call that was sent after the connection broke; or a line or a read of a
 * session that was cut off for its silence in the same step.
 */
static bool may_be_refused(struct sim_daemon *d, const struct event *event)
{
	return event->kind == EVENT_ANSWER || event->kind == EVENT_GONE ||
	       ((event->kind == EVENT_LINE || event->kind == EVENT_TOO_LONG || event->kind == EVENT_EOF || event->kind == EVENT_SENT) &&
		!daemon_conn(d, event->session.id));
}

/* Sanitizers make a step several times slower. */
#ifdef __SANITIZE_ADDRESS__
#define STEP_MOST_NS (200 * 1000 * 1000)
#else
#define STEP_MOST_NS (2 * 1000 * 1000)
#endif

#define STEPS_SAMPLED 64

/* malloc sorts what was freed when it looks for a large piece, some 10,000 pieces at a time. A crowd of clients may have freed ten times as many. */
static void heap_sort(void)
{
	for (unsigned i = 0; i < 16; i++) {
		void *volatile large = malloc(100 * 1024);

		free(large);
	}
}

static int step_watched(struct sim_daemon *d, const struct event *event)
{
	struct step_watch *watch = d->world->watch;
	int64_t began, took;
	int r;

	if (!watch)
		return service_step(d->service, event, &d->effects);
	if (watch->heap_is_sorted)
		heap_sort();
	if (watch->steps++ % STEPS_SAMPLED == 0)
		watch->sampled_ns = watch->processor_ns();
	began = watch->elapsed_ns();
	r = service_step(d->service, event, &d->effects);
	took = watch->elapsed_ns() - began;
	if (took > STEP_MOST_NS && watch->processor_ns() - watch->sampled_ns > STEP_MOST_NS && watch->count < SLOW_STEPS)
		watch->slow[watch->count++] = (struct slow_step){watch->steps, took, d->world->now, d->index};
	return r;
}

static void daemon_step_once(struct sim_daemon *d, struct event *event, int64_t depart)
{
	struct world *w = d->world;
	bool refused;

	event->now = daemon_boot(d);
	event->wall_us = host_wall(&d->host, w->now);
	w->checker.step++;
	refused = step_watched(d, event) != 0;
	for (size_t i = 0; i < d->effects.count; i++)
		effect_carry_out(d, &d->effects.item[i], depart);
	for (unsigned i = 0; i < w->plan->nodes; i++)
		if (d->link[i].batch)
			link_flush(&d->link[i]);
	effects_reset(&d->effects);
	if (refused && !may_be_refused(d, event))
		checker_fail(w, INVARIANT_S21, -1, "daemon %u refused event %d", d->index, (int)event->kind);
	track_syncs(w, -1);
	recount_step(d);
	reply_time_check(d);
	daemon_metrics_step(d);
	daemon_drain_step(d);
	daemon_rules_step(d);
}

static void daemon_step_with_store(struct sim_daemon *d, struct event *event, int64_t depart)
{
	d->pass_depart = depart;
	daemon_step_once(d, event, depart);
	store_pass(d->store);
	d->pass_depart = 0;
}

void daemon_step(struct sim_daemon *d, struct event *event)
{
	int64_t depart;

	if (d->pass_depart) { /* the answer to a call of this pass */
		daemon_step_once(d, event, d->pass_depart);
		return;
	}
	if (daemon_is_killed(d))
		return;
	depart = d->state == DAEMON_STOPPING ? d->thaw_at : d->world->now + stream_skewed(&d->stream, 2, 60);
	journal_pass(d, depart);
	if (d->store)
		daemon_step_with_store(d, event, depart);
	else
		daemon_step_once(d, event, depart);
	if (daemon_is_killed(d))
		return;
	daemon_arm(d);
	journal_settle(d);
}
