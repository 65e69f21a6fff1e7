/* SPDX-License-Identifier: BSD-2-Clause */
/* See store.h. */
#include "tests/sim/world/store.h"

#include "daemon/base/mem.h"
#include "daemon/core/member/members.h"
#include "tests/sim/world/world.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDERS_FAST "/dev/shm" /* in memory: nothing here is to outlive the simulator */
#define FOLDERS      "/tmp"

/* --- how a process ends ------------------------------------------------------------------------------------------------ */

static struct sim_store *armed; /* the only store in this process that is to be killed */

void store_arm(struct sim_store *t, int64_t points)
{
	armed = points > 0 ? t : NULL;
	t->points = points;
	if (points == 1 && t->memory)
		files_read(&t->before, t->dir);
}

/* What the process does from here on leaves no trace. */
static void store_kill(struct sim_store *t)
{
	static const unsigned percent[] = {0, 20, 50, 80, 100};
	struct stream s;

	stream_init(&s, (uint64_t)t->daemon->world->plan->seed, DRAW_TEAR, t->opened);
	files_read(&t->left, t->dir);
	files_tear(&t->left, &t->before, &s, percent[stream_range(&s, 0, 4)]);
	t->killed = true;
	chores_undone(t->server);
	store_arm(t, 0);
}

void kill_point(void)
{
	struct sim_store *t = armed;

	if (!t || t->starts || --t->points > 1)
		return;
	if (t->points == 1)
		files_read(&t->before, t->dir);
	else
		store_kill(t);
}

/* Unmaps the files. That writes into them once more, as no process does that is killed. */
static void store_close(struct sim_store *t)
{
	sim_node_embed(t->server->node, NULL);
	memory_free(t->memory);
	t->memory = NULL;
	job_file_close(&t->jobs);
	state_close(&t->state);
}

void store_end(struct sim_store *t)
{
	struct server *s = t->server;
	struct flight *f;

	if (!t->killed)
		files_read(&t->left, t->dir);
	t->killed = t->finished = false;
	heap_cancel(&t->daemon->world->heap, &t->end);
	store_close(t);
	s->down = true;
	s->blameless = false;
	while ((f = TAILQ_FIRST(&s->backlog))) {
		TAILQ_REMOVE(&s->backlog, f, in_backlog);
		flight_lose(f);
	}
}

void store_ended_fired(struct timer *end)
{
	daemon_die(container_of(end, struct sim_store, end)->daemon);
}

/* --- how it begins --------------------------------------------------------------------------------------------------- */

struct sim_store *store_new(struct sim_daemon *d)
{
	static unsigned stores;
	struct sim_store *t = mem_alloc(sizeof(*t));

	t->daemon = d;
	t->server = &d->world->server[0];
	t->boot = 1;
	t->state.dir = -1;
	TAILQ_INIT(&t->unwritten);
	snprintf(t->dir, sizeof(t->dir), "%s/redlock-sim-%ld-%u", access(FOLDERS_FAST, W_OK) == 0 ? FOLDERS_FAST : FOLDERS, (long)getpid(), stores++);
	folder_remove(t->dir); /* a process of that number was killed */
	if (mkdir(t->dir, 0700) < 0)
		abort();
	return t;
}

void store_free(struct sim_store *t)
{
	store_arm(t, 0);
	files_release(&t->left);
	files_release(&t->before);
	folder_remove(t->dir);
	mem_free(t);
}

/* As lasting_restore() in daemon/main/stores.c does. A process that is killed damages nothing. */
static void jobs_open(struct sim_store *t)
{
	struct jobs_found found;

	job_file_init(&t->jobs, t->dir, t->dir);
	memory_restore_jobs(t->memory, &t->jobs, (state_later_us(&t->state) + MSEC - 1) / MSEC, &found);
	if (found.error || found.unwritten)
		checker_fail(t->daemon->world, INVARIANT_S37, -1, "jobs: %s", jobs_trouble(found.error ? found.error : found.unwritten));
}

/* As memory_open() in daemon/main/stores.c does. */
static void files_open(struct sim_store *t)
{
	const struct sim_daemon *d = t->daemon;
	const struct plan *p = d->world->plan;
	char boot_id[16], run_id[41];
	struct state_conf conf = {.dir = t->dir, .boot_id = boot_id, .keyfile = ++t->opened, .remote = p->remote_percent > 0};
	struct memory_conf memory = {.skew_us = SKEW_US, .run_id = run_id};
	enum state_found found;
	struct stream s;
	const char *why;

	stream_init(&s, (uint64_t)p->seed, DRAW_STORE, t->opened);
	memory.seed[0] = stream_next(&s);
	memory.seed[1] = stream_next(&s);
	snprintf(run_id, sizeof(run_id), "%040llx", (unsigned long long)stream_next(&s));
	snprintf(boot_id, sizeof(boot_id), "boot-%u", t->boot);
	conf.lease_us = d->conf.max_lease_us + d->conf.max_delay_us;
	conf.guard_us = quarantine_us(d->conf.max_lease_us, d->conf.max_delay_us);
	conf.now = daemon_boot(d);
	conf.wall_us = host_wall(&d->host, d->world->now);
	if (state_open(&t->state, &conf, &found, &why) < 0)
		abort();
	memory.epoch_us = t->state.epoch_us;
	memory.file = t->state.keys;
	t->memory = memory_new(&memory);
	kill_point();
	state_restore(&t->state, t->memory);
	kill_point();
	jobs_open(t);
	kill_point();
	if (!memory.file || state_mark(&t->state, t->memory, conf.now) < 0)
		abort();
	kill_point();
}

/* What the run before believed is known, unless that cannot be. */
static void found_check(struct sim_store *t)
{
	static const char *const word[] = {[STATE_FIRST] = "first", [STATE_CLEAN] = "clean", [STATE_KEPT] = "kept", [STATE_CRASH] = "crash"};
	struct world *w = t->daemon->world;

	world_note(w, 13, t->state.found, "d%u finds %s", t->daemon->index, t->state.rebooted ? "reboot" : word[t->state.found]);
	if (t->state.found == STATE_CRASH && t->knew)
		checker_fail(w, INVARIANT_S37, -1, "daemon %u does not know the keys of the run before", t->daemon->index);
	t->knew = t->state.found != STATE_CRASH;
	if (t->state.found == STATE_CRASH) {
		server_lost_memory(t->server);
		t->server->lost_at = t->daemon->died_at[(t->daemon->run - 1) % RUNS_MAX];
	}
	if (t->state.found == STATE_FIRST)
		checker_undelay_all(w); /* nobody outlived its host */
}

void store_start(struct sim_store *t)
{
	struct core_conf *conf = &t->daemon->conf;
	struct server *s = t->server;

	if (t->again)
		store_arm(t, t->again);
	for (;;) {
		files_write(&t->left, t->dir);
		if (t->points == 1)
			files_read(&t->before, t->dir);
		files_open(t);
		if (!t->killed)
			break;
		t->killed = false; /* and started again at once */
		store_close(t);
	}
	if (t->again)
		store_arm(t, t->again = 0);
	sim_node_embed(s->node, t->memory);
	metered_lost(s); /* rates begin anew */
	s->fence = sim_node_fence(s->node);
	s->runs++;
	s->down = false;
	found_check(t);
	t->starts = true;
	conf->trust_first_start = t->state.found != STATE_CRASH;
	conf->rebooted = t->state.rebooted;
	conf->past_lease_us = t->state.past.lease_us;
}

void store_up(struct sim_store *t)
{
	struct sim_link *l = &t->daemon->link[0];
	struct event event = {.kind = EVENT_NODE_UP};

	t->starts = false;
	l->up = true;
	l->broken = false;
	l->epoch++;
	l->dialled = t->server->runs;
	l->up_since = l->met_at = t->daemon->world->now;
	daemon_step(t->daemon, &event);
}

/* --- while it runs --------------------------------------------------------------------------------------------------- */

void store_take(struct sim_store *t)
{
	struct sim_link *l = &t->daemon->link[0];
	struct flight *f = l->batch;

	l->batch = NULL;
	memcpy(f->sender, t->daemon->id, sizeof(f->sender));
	TAILQ_INSERT_TAIL(&t->server->backlog, f, in_backlog);
}

static bool is_unwritten(const struct sim_store *t, const struct flight *f)
{
	for (unsigned i = 0; i < f->count; i++)
		if (memory_answer_is_unwritten(t->memory, &f->call[i], &f->answer[i]))
			return true;
	return false;
}

static void call_carry_out(struct sim_store *t, struct flight *f)
{
	kill_point();
	if (!t->killed)
		server_carry_out(t->server, f);
	if (t->killed)
		flight_lose(f);
	else if (is_unwritten(t, f))
		TAILQ_INSERT_TAIL(&t->unwritten, f, in_backlog);
	else
		link_on_reply(f);
}

#define PASS_CALLS 256 /* as in pump.c */

bool store_is_behind(const struct sim_store *t)
{
	return !TAILQ_EMPTY(&t->server->backlog);
}

bool store_write(struct sim_store *t)
{
	if (t->killed)
		return false;
	if (memory_write_jobs(t->memory) < 0)
		abort();
	if (t->passes)
		chores_written(t->server, true);
	return true;
}

/* As in pump.c. */
static void unwritten_answer(struct sim_store *t)
{
	struct flight *f;

	if (TAILQ_EMPTY(&t->unwritten))
		return;
	kill_point();
	(void)store_write(t);
	kill_point();
	while ((f = TAILQ_FIRST(&t->unwritten))) {
		TAILQ_REMOVE(&t->unwritten, f, in_backlog);
		if (t->killed)
			flight_lose(f);
		else
			link_on_reply(f);
	}
}

void store_pass(struct sim_store *t)
{
	struct world *w = t->daemon->world;
	struct instant now = daemon_boot(t->daemon);
	struct flight *f;

	t->passes = true;
	chores_written(t->server, true);

	for (unsigned i = 0; i < PASS_CALLS && !t->killed && (f = TAILQ_FIRST(&t->server->backlog)); i++) {
		TAILQ_REMOVE(&t->server->backlog, f, in_backlog);
		call_carry_out(t, f);
	}
	unwritten_answer(t);
	if (!t->killed && !instant_before(now, state_due(&t->state, t->memory)) && state_mark(&t->state, t->memory, now) < 0)
		abort();
	kill_point();
	(void)store_write(t);
	t->passes = false;
	chores_written(t->server, false);
	kill_point();
	if (t->killed)
		world_at(w, &t->end, AT_KILLED, w->now + 1); /* and before anything leaves */
}

void store_finish(struct sim_store *t)
{
	if (!t->killed && state_finish(&t->state, t->memory, daemon_boot(t->daemon)) < 0)
		abort();
}

void store_reboot(struct sim_store *t, int64_t ago_us, bool lost)
{
	t->boot++;
	t->off = t->knew = false;
	host_reboot(&t->daemon->host, t->daemon->world->now, ago_us);
	if (!lost)
		return;
	files_release(&t->left);
	metered_lost(t->server);
	chores_lost(t->server);
}
