/* SPDX-License-Identifier: BSD-2-Clause */
/* What a command did to the keys of a node: whom the node voted for, what was overwritten, when keys end. */
#include "tests/sim/world/world.h"

#include "daemon/core/event/value.h"
#include "daemon/core/member/members.h"

/* The value that a call leaves alone may belong to a daemon of another configuration. If that daemon is gone, the longest lease of all may be meant. */
static int64_t longest_lease(const struct world *w, struct span value)
{
	int64_t writer = 0, all = w->plan->max_lease_us;

	for (unsigned i = 0; i < w->plan->daemons; i++) {
		const struct sim_daemon *d = &w->daemon[i];

		all = later(all, d->conf.max_lease_us);
		if (daemon_wrote(d, value))
			writer = later(writer, d->conf.max_lease_us);
	}
	return writer ? later(writer, w->plan->max_lease_us) : all;
}

/*
 * What is left of the mark of a semaphore stands until nobody relies on the permit any more, by a clock that is as slow as can be: the daemon counts the
 * drift to that moment by its own clock, and that of the time until then by the clock of the store.
 */
static int64_t drift_of_mark(struct span value, int64_t lease_us)
{
	return value_limit(value) > 0 ? 2 * drift_us(lease_us + drift_us(lease_us)) : 0;
}

static void key_check(struct server *s, const struct call *call)
{
	struct world *w = s->world;
	int64_t name = name_number(call->name), expires, most;
	struct span value;

	if (!sim_node_get(s->node, call->name, server_wall(s), &value, &expires) || value.n == 0 ||
	    !memchr(value.p, ':', value.n))
		return;
	most = longest_lease(w, value);
	most += drift_of_mark(value, most) + w->plan->delay_us + s->stepped_us;
	if (name < 0) /* of readers, groups and permits: no account of what is left behind on purpose */
		most = later(most, w->daemon[0].conf.max_keep_us);
	else if (call->kind == CALL_EXTEND && call->exact && expires * MSEC <= server_wall(s) + w->daemon[0].conf.max_keep_us + 2 * MSEC)
		s->kept_ms[name] = expires; /* UNLOCK keep= */
	if (expires <= 0 || (expires * MSEC > server_wall(s) + most + 2 * MSEC && (name < 0 || expires != s->kept_ms[name])))
		checker_fail(w, INVARIANT_S16, name, "%.*s: node %u keeps the key until %lld ms by its clock, which shows %lld us",
			     (int)call->name.n, call->name.p, s->index, (long long)expires, (long long)server_wall(s));
}

/* The value as the call would have it: alone, or among shares. What is left behind may be broken, and stays so. */
static bool stands_as_asked(const struct call *call, struct span key, struct span value)
{
	const char *at;

	if ((call->exact || call->at_most) && span_starts(key, SPAN("!")))
		key = (struct span){key.p + 1, key.n - 1};
	if (call->form == FORM_ALONE)
		return span_equal(key, value);
	if (span_equal(key, value))
		return call->kind == CALL_ACQUIRE; /* a renewal of a newer connection has it alone already */
	at = span_starts(key, SPAN("R ")) ? memmem(key.p, key.n, value.p, value.n) : NULL;
	return at && at[-1] == ',' && (at + value.n == key.p + key.n || at[value.n] == ' ');
}

/* S9: a node that votes has the value, unless a later call of the same command removed it. */
static void value_check(struct server *s, const struct flight *f, unsigned i)
{
	const struct call *call = &f->call[i];
	struct span want = call->kind == CALL_EXTEND ? call->new_value : call->value, value;
	int64_t expires;

	for (unsigned j = i + 1; j < f->count; j++)
		if (span_equal(f->call[j].name, call->name))
			return;
	if (!sim_node_get(s->node, call->name, server_wall(s), &value, &expires) || !stands_as_asked(call, value, want))
		checker_fail(s->world, INVARIANT_S9, name_number(call->name),
			     "node %u votes for daemon %u and does not have its value", s->index, f->daemon->index);
}

static bool is_only_call(const struct flight *f, unsigned i)
{
	for (unsigned j = 0; j < f->count; j++)
		if (j != i && span_equal(f->call[j].name, f->call[i].name))
			return false;
	return true;
}

/*
 * S23: commands of a newer connection overtake those of an older one. A command that runs late takes nothing from what was promised meanwhile: a key that stood
 * there ends no earlier than before, unless the command leaves it behind on purpose.
 */
static void end_check(struct server *s, const struct flight *f, unsigned i)
{
	const struct call *call = &f->call[i];
	int64_t name = name_number(call->name), expires;
	struct span value;

	if (name < 0 || !s->live[name] || s->taken[name] || call->exact || !is_only_call(f, i))
		return;
	if (sim_node_get(s->node, call->name, server_wall(s), &value, &expires) && expires > 0 && expires < s->ends_ms[name])
		checker_fail(s->world, INVARIANT_S23, name, "%s: node %u votes for daemon %u, and that makes the key end %lld ms earlier", name_of(name),
			     s->index, f->daemon->index, (long long)(s->ends_ms[name] - expires));
}

/* S17: a node never votes for daemons of two configurations at a time. Its marker shows that, and, while timing holds, what it voted before. */
static void membership_check(struct server *s, const struct flight *f, const struct call *call)
{
	struct world *w = s->world;
	int kind = f->strange;
	int64_t until;

	if (s->marked_by >= 0 && s->marked_by != kind)
		checker_fail(w, INVARIANT_S17, name_number(call->name), "node %u has a marker of the other configuration and votes for daemon %u", s->index,
			     f->daemon->index);
	if (w->class == CLASS_T && s->counted_until[!kind] > w->now)
		checker_fail(w, INVARIANT_S17, name_number(call->name),
			     "node %u votes for daemon %u, and daemons of another configuration count its vote until %lld us", s->index,
			     f->daemon->index, (long long)s->counted_until[!kind]);
	until = host_true(&f->daemon->host, recount_vote(w, call, f->emitted));
	if (until > s->counted_until[kind])
		s->counted_until[kind] = until;
}

static void vote_check(struct server *s, const struct flight *f, unsigned i)
{
	const struct answer *a = &f->answer[i];
	const struct call *call = &f->call[i];
	struct world *w = s->world;
	int64_t lease = f->strange ? f->daemon->conf.max_lease_us : w->plan->max_lease_us; /* S17 covers what daemons of another configuration count */
	bool votes = is_vote(a);

	if (votes)
		value_check(s, f, i);
	if (votes)
		end_check(s, f, i);
	if (votes)
		membership_check(s, f, call);
	if (votes && s->lost_at >= 0 && w->now - s->lost_at < lease - lease / 100)
		checker_fail(w, INVARIANT_S10, name_number(f->call[i].name), "node %u lost its memory at %lld us and votes before MAXLEASE is over",
			     s->index, (long long)s->lost_at);
}

/* S8: a key that changes held a value of the daemon whose command runs. */
static void key_changed(void *context, struct span key, struct span before, struct span after)
{
	struct server *s = context;
	const struct flight *f = s->running;
	struct span prefix = SPAN("lock:"), bare = broken_bare(before);
	int64_t name;
	bool live;

	if (!f || !span_starts(key, prefix))
		return;
	name = name_number((struct span){key.p + prefix.n, key.n - prefix.n});
	if (name >= 0)
		places_key(s, name, before.n > 0, after.n > 0);
	live = name >= 0 && (s->live[name] || !(s->named >> name & 1)); /* a key that no call names is not to be touched, live or not */
	if (live && before.n > 0 && !span_equal(before, after) && (bare.n < 16 || memcmp(bare.p, f->sender, 16)) && !broken_allows(f, name, before, after))
		checker_fail(s->world, INVARIANT_S8, name, "%s: daemon %u replaced the value %.*s of another on node %u",
			     name_of(name), f->daemon->index, (int)before.n, before.p, s->index);
}

void keys_watch(struct server *s)
{
	sim_node_watch(s->node, key_changed, s);
}

void keys_before(struct server *s, const struct flight *f)
{
	struct span value;
	int64_t expires, wall_us = server_wall(s);

	s->running = f;
	s->named = 0;
	for (unsigned i = 0; i < f->count; i++) {
		int64_t name = name_number(f->call[i].name);

		if (name < 0 || (s->named >> name & 1))
			continue;
		s->named |= (uint16_t)(1u << name);
		s->live[name] = sim_node_get(s->node, name_span(name), wall_us, &value, &expires);
		s->ends_ms[name] = s->live[name] ? expires : 0;
		s->was_broken[name] = s->live[name] && span_starts(value, SPAN("!"));
		s->taken[name] = false;
	}
}

/* A node refuses an acquire that comes too late. The slack: the daemon estimates the node's clock, and one slow reply spoils that. */
static void lateness_check(struct server *s, const struct flight *f, const struct answer *a)
{
	struct world *w = s->world;
	int64_t late = w->now - f->wanted_at - w->plan->timeout_us;

	if (a->class == ANSWER_EXECUTED && a->code == 'G' && late > 2500 * MSEC && s->stepped_us == 0 && w->class == CLASS_T)
		checker_fail(w, INVARIANT_L8, name_number(f->call[0].name), "node %u ran an acquire %lld us too late",
			     s->index, (long long)late);
}

/*
 * S18: no range reaches beyond now + SKEW, so that the floor of a join is above every token ever issued. A single token may, or setting a clock back would stop
 * all grants.
 */
static void range_check(struct server *s, const struct flight *f)
{
	for (unsigned i = 0; i < f->count; i++)
		if (f->call[i].kind == CALL_ACQUIRE && f->answer[i].code == 'G' && f->call[i].range > 0 &&
		    f->answer[i].fence + f->call[i].range > server_wall(s) + f->daemon->conf.skew_us + 2 * f->daemon->conf.clock_tol_us)
			checker_fail(s->world, INVARIANT_S18, name_number(f->call[i].name),
				     "node %u reserves tokens up to %lld, beyond its clock + skew + tolerance", s->index,
				     (long long)(f->answer[i].fence + f->call[i].range));
}

/* A daemon has set a marker. L12: it does not quarantine a node that lost nothing. */
static void marker_check(struct server *s, const struct flight *f, struct span marker)
{
	bool same = s->marked_by == f->strange;

	s->marked_by = f->strange;
	if (marker.p[0] == 'q' && same && s->blameless && !s->tainted && !node_may_be_doubted(f->daemon, s))
		checker_fail(s->world, INVARIANT_L12, -1, "daemon %u quarantines node %u, which lost nothing", f->daemon->index, s->index);
	s->was_taken |= f->strange;
	s->knows_set = !f->strange || marker.p[marker.n - 1] != '|';
	s->blameless = marker.p[0] == 'j' && sim_node_is_named(s->node, marker);
}

/*
 * The markers hold the longest lease that was promised. redlockd(8) does not promise that a new generation with a shorter lease waits for it where a majority
 * has lost its markers and no other node is in reach.
 */
static bool lease_is_forgotten(const struct sim_daemon *d)
{
	const struct world *w = d->world;
	unsigned lost = 0;

	if (d->conf.max_lease_us + d->conf.max_delay_us >= w->plan->max_lease_us + w->plan->delay_us)
		return false;
	for (unsigned i = 0; i < w->plan->nodes; i++) {
		if (!daemon_has_server(d, i))
			continue;
		if (w->server[i].lease_lost)
			lost++;
		else if (d->link[i].up)
			return false;
	}
	return 2 * lost > d->conf.nodes;
}

/* The next generation joins a server of both sets, while none that it reaches tells of the set before: see server.knows_set. */
static bool set_is_forgotten(const struct server *s, const struct flight *f, struct span marker)
{
	const struct world *w = s->world;

	if (!f->strange || marker.p[0] != 'j' || !server_is_of_both(w->plan, s->index))
		return false;
	for (unsigned i = 0; i < w->plan->nodes; i++)
		if (server_is_of_both(w->plan, i) && f->daemon->link[i].up && w->server[i].knows_set)
			return false;
	return true;
}

/*
 * A daemon of the generation before joins a server that stays and that the next generation had taken over: the server has forgotten that. Together with servers
 * that were removed, the old set may then have a majority again. redlockd(8) asks to have the servers that stay with their data when the new generation is
 * started. It says nothing of a server that forgets its data while daemons of the generation before still run.
 */
static bool set_comes_back(const struct server *s, const struct flight *f, struct span marker)
{
	return !f->strange && marker.p[0] == 'j' && s->was_taken && server_is_of_both(s->world->plan, s->index);
}

static void exclusion_is_over(struct world *w)
{
	w->class = CLASS_X;
	w->exclusion_is_safe = false;
}

/* Each set grants by itself, and its servers never see the tokens of the other. */
static void sets_are_apart(struct world *w)
{
	exclusion_is_over(w);
	w->tokens_are_safe = false;
}

/* trust-first-start takes a quorum without markers for new, even when the other nodes are out of reach. If it was not new, exclusion is no longer promised. */
static void joined(struct server *s, const struct flight *f, unsigned i)
{
	marker_check(s, f, f->call[i].new_marker);
	if (f->strange && lease_is_forgotten(f->daemon))
		exclusion_is_over(s->world);
	if (set_is_forgotten(s, f, f->call[i].new_marker) || set_comes_back(s, f, f->call[i].new_marker))
		sets_are_apart(s->world);
	if (!f->strange)
		s->lease_lost = false;
	if (s->lost_at < 0 || !f->daemon->conf.trust_first_start || known_node_all(f->daemon))
		return;
	s->lost_at = -1;
	exclusion_is_over(s->world);
}

void keys_after(struct server *s, const struct flight *f)
{
	int64_t fence = sim_node_fence(s->node);

	s->running = NULL;
	scripts_ran(s, f);
	if (s->world->plan->rates)
		metered_ran(s, f);
	if (s->world->plan->chores)
		chores_ran(s, f);
	if (fence < s->fence)
		checker_fail(s->world, INVARIANT_S18, -1, "node %u: its fence fell from %lld to %lld", s->index,
			     (long long)s->fence, (long long)fence);
	s->fence = fence;
	if (fence > s->fence_most)
		s->fence_most = fence;
	range_check(s, f);
	for (unsigned i = 0; i < f->count; i++) {
		if (f->call[i].kind == CALL_MARK && f->answer[i].code == 'J')
			joined(s, f, i);
		if (f->call[i].kind == CALL_PROBE || f->call[i].kind == CALL_MARK)
			continue;
		vote_check(s, f, i);
		extended_ran(s, f, i);
		places_ran(s, f, i);
		readers_ran(s, f, i);
		lateness_check(s, f, &f->answer[i]);
		released_ran(s, f, i);
		broken_ran(s, f, i);
		key_check(s, &f->call[i]);
	}
}

/* The daemon was killed while its own store carried out this command, and learns nothing. */
void keys_torn(struct server *s)
{
	s->running = NULL;
}
