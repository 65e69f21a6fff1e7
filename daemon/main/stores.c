/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets up the store of the service (N Redis servers, or the memory store with its state file), and the configuration that the service sees. */
#include "daemon/main/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/core/member/members.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the jobs of the memory store, which outlast the daemon: where their file is, and what the log tells of it --- */

#define LOOK_EVERY SEC

/* Makes the state directory if it is missing, but not its parents. The runtime directory is made by runtime.h. An error shows when its files are opened. */
static void lasting_make_folder(const struct daemon *d)
{
	if (strcmp(d->jobs.dir, d->runtime.dir) != 0)
		(void)mkdir(d->jobs.dir, 0700);
}

static void lasting_open(struct daemon *d)
{
	const char *systemd = getenv("STATE_DIRECTORY"), *dir = d->conf->state_dir;
	char first[JOBS_PATH];

	snprintf(first, sizeof(first), "%.*s", (int)strcspn(systemd ? systemd : "", ":"), systemd ? systemd : "");
	if (!dir)
		dir = *first ? first : d->runtime.dir;
	job_file_init(&d->jobs, dir, d->runtime.dir);
	lasting_make_folder(d);
}

/* What there is to tell of a file that was set aside: once. */
static const char *moved(struct daemon *d)
{
	bool aside = d->jobs.aside;

	d->jobs.aside = false;
	return aside ? " moved_to=jobs.db.bad" : "";
}

static void lasting_log_lost(struct daemon *d)
{
	int why = d->jobs.lost;
	const char *note = why == JOBS_SPARE_LOST ? "redlockd makes it again" :
			   d->jobs.failed ? "redlockd has its jobs in memory alone until it can put them into a new one; a kill before that may lose some" :
					    "redlockd has put its jobs into a new one";

	d->jobs.lost = 0;
	if (why)
		log_event(LOG_ERROR, "jobs", "dir=%s error=\"%s\"%s note=\"%s\"", d->jobs.dir, jobs_trouble(why), moved(d), note);
}

static void lasting_log(struct daemon *d)
{
	int error = job_file_trouble(&d->jobs);
	const char *note = d->jobs.unread     ? "all requests about jobs are refused until it can be read" :
			   error == JOBS_SHUT ? "jobs are written as before" :
						"DEFER and TAKE are refused until it can be written";

	lasting_log_lost(d);
	if (error == d->jobs_error)
		return;
	if (error)
		log_event(LOG_ERROR, "jobs", "dir=%s error=\"%s\" note=\"%s\"", d->jobs.dir, jobs_trouble(error), note);
	else
		log_event(LOG_NOTICE, "jobs", "dir=%s%s note=\"is written again\"", d->jobs.dir, moved(d));
	d->jobs_error = error;
}

/* Sessions that were carried here are worth more than a file that cannot be read: jobs are refused until it can, and lasting_log() says why. */
static int lasting_restore(struct daemon *d)
{
	struct jobs_found found;

	memory_restore_jobs(d->memory, &d->jobs, (state_later_us(&d->state) + MSEC - 1) / MSEC, &found);
	if (found.stays && d->carried)
		return 0;
	if (found.stays)
		log_event(LOG_ERROR, "jobs", "dir=%s error=\"%s\" note=\"redlockd does not start before it can be read: else its jobs would be lost\"",
		          d->jobs.dir, jobs_trouble(found.error));
	else if (found.error)
		log_event(LOG_ERROR, "jobs",
		          "dir=%s error=\"%s\" moved_to=jobs.db.bad note=\"its jobs are lost, unless `sqlite3 jobs.db.bad .recover` has them\"",
		          d->jobs.dir, jobs_trouble(found.error));
	else if (found.jobs > 0)
		log_event(LOG_INFO, "jobs", "dir=%s jobs=%zu", d->jobs.dir, found.jobs);
	if (found.unwritten)
		log_event(LOG_ERROR, "jobs",
		          "dir=%s error=\"%s\" note=\"it cannot be written that leases end later by the clock of this run. If the daemon is killed before it "
		          "can be, jobs may be handed out while others run them\"",
		          d->jobs.dir, jobs_trouble(found.unwritten));
	d->jobs.aside = false;
	lasting_log_lost(d);
	return found.stays ? found.error : 0;
}

static void lasting_tick(struct daemon *d)
{
	struct instant now = clock_boottime();

	if (d->memory && !instant_before(now, d->jobs_at)) {
		lasting_make_folder(d);
		d->jobs_at = memory_look(d->memory) ? now : instant_add(now, LOOK_EVERY);
	}
	lasting_log(d);
}

static void lasting_stop(struct daemon *d)
{
	(void)memory_look(d->memory);
	(void)memory_write_jobs(d->memory);
	lasting_log(d);
}

/* --- the store, and the configuration that the service sees --------------------------------------------------------------- */

#define CONNECT_LEAST_US   SEC
#define STALL_LEAST_US     (2 * SEC)
#define PING_US            (500 * MSEC)
#define TRY_US             (3 * SEC) /* less than a trial may take */
#define STORE_HOST_MAX     64
#define MEMORY_WINDOW      64 /* calls under way; a new request waits for at most this many */
#define MEMORY_TIMEOUT_US  (10 * SEC) /* the memory store always answers; only a stop of this process can delay it */

void core_conf_fill(struct core_conf *to, const struct conf *from)
{
	static const enum home_lost home_lost[] = {[HOME_LOST_CLOSED] = LOST_CLOSED, [HOME_LOST_OPEN] = LOST_OPEN, [HOME_LOST_NEXT] = LOST_NEXT};

	to->generation = from->redis.generation;
	to->timeout_us = from->store == STORE_MEMORY ? MEMORY_TIMEOUT_US : from->redis.timeout;
	to->soon_us = from->redis.timeout;
	to->window = from->store == STORE_MEMORY ? MEMORY_WINDOW : 0;
	to->lease_us = from->lease;
	to->min_lease_us = from->min_lease;
	to->max_lease_us = from->max_lease;
	to->max_delay_us = from->max_delay;
	to->max_keep_us = from->max_keep;
	to->max_grace_us = from->max_grace;
	to->alarm_held_us = from->alarm.held;
	to->alarm_waited_us = from->alarm.waited;
	to->alarm_failures = from->alarm.failures;
	to->slow_wait_us = from->slow.wait;
	to->slow_hold_us = from->slow.hold;
	to->slow_store_us = from->slow.store;
	to->name_groups = from->metrics.groups;
	to->users = from->auth.users_file != NULL;
	to->home_lost = home_lost[from->rate.home_lost];
	to->skew_us = SKEW_US;
	to->listed = 0;
	to->clock_tol_us = clock_tol_us(from->store == STORE_REDIS ? (unsigned)from->redis.nodes : 1, from->max_lease, from->max_delay);
	to->log_moves = from->log.level == LOG_DEBUG;
	to->limits.locks = from->limits.locks;
	to->limits.waiting = from->limits.waiting;
	to->limits.jobs = from->limits.jobs;
	to->limits.stored = from->limits.stored;
	to->limits.renewals = from->limits.renewals;
	to->jobs_keep_us = from->jobs.keep;
	to->own_uid = geteuid();
	to->limits.attempts = from->jobs.attempts;
	to->limits.detached = from->limits.detached;
	to->limits.name = from->limits.name;
	to->limits.mistakes = from->limits.mistakes;
	to->limits.line = from->limits.line;
	to->limits.output = from->limits.output;
}

static int label_order(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The node set: the sorted addresses; if a name is configured, that name, and the sorted names of the nodes that have one. */
static char *set_of_nodes(const struct conf *c)
{
	const char *label[CONF_NODES_MAX] = {NULL};
	size_t size = 1, labels = 0;
	char *name;
	FILE *out;

	for (size_t i = 0; i < c->redis.nodes; i++) {
		label[labels] = c->redis.set ? c->redis.node[i].name : c->redis.node[i].label;
		labels += label[labels] != NULL;
	}
	qsort(label, labels, sizeof(*label), label_order);
	out = open_memstream(&name, &size);
	if (!out)
		return NULL;
	fputs(c->redis.set ? c->redis.set : "", out);
	for (size_t i = 0; i < labels; i++)
		fprintf(out, "%s%s", i || c->redis.set ? "," : "", label[i]);
	fclose(out);
	return name;
}

static int configure_redis(struct daemon *d)
{
	const struct conf *c = d->conf;

	d->set_name = set_of_nodes(c);
	if (!d->set_name)
		return -ENOMEM;
	d->core_conf.store = "redis";
	d->core_conf.shared = true;
	d->core_conf.foreign = c->redis.foreign;
	d->core_conf.set = d->set_name;
	d->core_conf.nodes = (unsigned)c->redis.nodes;
	for (size_t i = 0; i < c->redis.nodes; i++) {
		d->core_conf.label[i] = c->redis.node[i].label;
		d->core_conf.home[i] = c->redis.node[i].name;
	}
	d->core_conf.trust_first_start = c->guard == GUARD_TRUST_FIRST_START;
	return 0;
}

/* Passed sockets replace the configured ones. */
static bool listens_beyond_this_host(const struct daemon *d)
{
	bool beyond = reach_of_host(d->conf->listen.tls_host);

	if (d->systemd.sockets_n == 0)
		return beyond || reach_of_host(d->conf->listen.tcp_host);
	for (size_t i = 0; i < d->systemd.sockets_n; i++)
		beyond |= reach_of_socket(d->systemd.sockets[i].fd);
	return beyond;
}

static void seed_keyfile(struct memory_conf *memory, struct state_conf *state, char run_id[41])
{
	struct rng rng;

	rng_seed_from_system(memory->seed);
	rng_init(&rng, memory->seed);
	rng_hex(&rng, run_id, 40);
	state->keyfile = 1 + (uint32_t)rng_below(&rng, UINT32_MAX);
}

static void log_state(const struct daemon *d, const char *why)
{
	static const char *const word[] = {[STATE_FIRST] = "first", [STATE_CLEAN] = "clean", [STATE_KEPT] = "kept", [STATE_CRASH] = "crash"};
	const struct state *s = &d->state;
	char file[32] = "", quoted[128];

	if (s->unread)
		snprintf(file, sizeof(file), " file=" KEYFILE_KEYS "%08" PRIx32, s->unread);
	else if (s->unsound)
		snprintf(file, sizeof(file), " file=state");
	why = s->unread ? keyfile_fault(s->unread_error) : why;
	log_event(s->found == STATE_CRASH ? LOG_WARN : LOG_INFO, "state", "found=%s%s%s%s%s", s->rebooted ? "reboot" : word[s->found], file,
	          *why ? " why=" : "", *why ? log_quote(why, quoted, sizeof(quoted)) : "",
	          *file ? " note=\"the names of the run before are not known: nothing is granted before all its leases are over\"" : "");
}

static int memory_open(struct daemon *d)
{
	char boot_id[64], run_id[41] = "";
	struct state_conf state_conf = {.dir = d->runtime.dir, .boot_id = boot_id, .remote = listens_beyond_this_host(d), .elsewhere = d->names_elsewhere,
	                                .lease_us = d->conf->max_lease + d->conf->max_delay,
	                                .guard_us = quarantine_us(d->conf->max_lease, d->conf->max_delay)};
	struct memory_conf memory_conf = {.skew_us = SKEW_US, .run_id = run_id};
	enum state_found found;
	const char *why;
	int r;

	seed_keyfile(&memory_conf, &state_conf, run_id);
	runtime_boot_id(boot_id, sizeof(boot_id));
	state_conf.now = clock_boottime();
	state_conf.began = runtime_began();
	state_conf.wall_us = clock_wall_us();
	r = state_open(&d->state, &state_conf, &found, &why);
	if (r < 0)
		return r;
	d->state_open = true;
	lasting_open(d);
	rng_seed_from_system(memory_conf.seed);
	memory_conf.epoch_us = d->state.epoch_us;
	memory_conf.file = d->state.keys;
	d->memory = memory_new(&memory_conf);
	state_restore(&d->state, d->memory);
	found = d->state.found;
	log_state(d, why);
	d->core_conf.trust_first_start = found != STATE_CRASH;
	d->core_conf.rebooted = d->state.rebooted;
	d->core_conf.past_lease_us = d->state.past.lease_us;
	return lasting_restore(d);
}

void stores_mark(struct daemon *d)
{
	int r = state_mark(&d->state, d->memory, clock_boottime());

	if (r < 0 && r != d->mark_error)
		log_event(LOG_ERROR, "state", "dir=%s error=\"%s\" note=\"after a crash the next start may trust an old file\"", d->runtime.dir, strerror(-r));
	else if (r == 0 && d->mark_error)
		log_event(LOG_NOTICE, "state", "dir=%s note=\"its file is written again\"", d->runtime.dir);
	d->mark_error = r;
}

static int configure_memory(struct daemon *d)
{
	d->core_conf.store = "memory";
	d->core_conf.set = "memory";
	d->core_conf.nodes = 1;
	d->core_conf.label[0] = "memory";
	return 0;
}

int stores_open(struct daemon *d)
{
	int r;

	if (d->conf->store == STORE_REDIS)
		return 0;
	r = memory_open(d);
	if (!r)
		stores_mark(d);
	return r;
}

int stores_configure(struct daemon *d)
{
	core_conf_fill(&d->core_conf, d->conf);
	d->core_conf.host = d->host;
	d->core_conf.asks_daemons = d->conf->store == STORE_REDIS;
	rng_seed_from_system(d->core_conf.seed);
	return d->conf->store == STORE_REDIS ? configure_redis(d) : configure_memory(d);
}

/* No connection is given up while a command may still be answered in time. To connect and shake hands takes two round trips. */
static int64_t connection_time_us(const struct conf *c, int64_t least_us)
{
	int64_t twice = 2 * c->redis.timeout;

	return twice > least_us ? twice : least_us;
}

/* The texts belong to the configuration. */
static struct upstream_address address_of(const struct conf_address *a, struct upstream_host sentinel[CONF_SENTINELS_MAX])
{
	struct upstream_address to = {.label = a->label, .path = a->path, .host = a->host, .port = a->port};

	if (!a->sentinel)
		return to;
	to.master = a->sentinel->master;
	to.sentinel = sentinel;
	for (; to.sentinels < a->sentinel->count; to.sentinels++)
		sentinel[to.sentinels] = (struct upstream_host){a->sentinel->address[to.sentinels].host, a->sentinel->address[to.sentinels].port};
	return to;
}

/* The address that the previous process used, if sentinels had named it. */
static void address_restore(struct upstream_address *to, const struct service_store *store, char host[STORE_HOST_MAX])
{
	const char *colon = strrchr(store->address, ':');
	bool bracket = *store->address == '[';

	if (!to->master)
		return;
	to->run_id = store->run_id;
	to->answered_at = store->answered_at;
	if (!colon)
		return;
	(void)snprintf(host, STORE_HOST_MAX, "%.*s", (int)(colon - store->address) - 2 * bracket, store->address + bracket);
	to->host = host;
	to->port = (uint16_t)strtoul(colon + 1, NULL, 10);
}

/* The file may be a pipe or a terminal, and never answer. Meanwhile a signal ends the daemon, unless it already has sessions. With Redis that is no crash. */
static int password_first(const struct conf *c, bool goes_on, char **ret_password, char **ret_sentinel_password)
{
	int r;

	*ret_sentinel_password = NULL;
	if (!goes_on)
		signals_hold_ends(false);
	r = conf_secret(c, KEY_REDIS_PASSWORD_FILE, ret_password);
	signals_hold_ends(true);
	if (r < 0) {
		log_event(LOG_ERROR, "password", "file=%s error=\"%s\"", c->redis.password_file, strerror(-r));
		return r;
	}
	r = conf_secret(c, KEY_REDIS_SENTINEL_PASSWORD_FILE, ret_sentinel_password);
	if (r < 0) {
		log_event(LOG_ERROR, "password", "file=%s error=\"%s\"", c->redis.sentinel_password_file, strerror(-r));
		mem_wipe(*ret_password);
	}
	return r;
}

/* Where the servers are, as configured. */
struct server_places {
	struct upstream_address address[CONF_NODES_MAX];
	struct upstream_host sentinel[CONF_NODES_MAX][CONF_SENTINELS_MAX];
};

/* All but the passwords, the context of TLS and the daemon's name. The texts belong to the configuration. */
static struct upstream_conf upstream_configured(const struct conf *c, struct server_places *p)
{
	struct upstream_conf conf = {
		.address = p->address,
		.nodes = (unsigned)c->redis.nodes,
		.links = (unsigned)c->redis.links,
		.key_prefix = c->redis.key_prefix,
		.user = c->redis.user,
		.sentinel_user = c->redis.sentinel_user,
		.database = (unsigned)c->redis.database,
		.server_name = c->redis.tls.server_name,
		.connect_timeout_us = connection_time_us(c, CONNECT_LEAST_US),
		.stall_us = connection_time_us(c, STALL_LEAST_US),
		.ping_us = PING_US,
		.quarantine_us = quarantine_us(c->max_lease, c->max_delay),
		.skew_us = SKEW_US,
	};

	for (unsigned i = 0; i < c->redis.nodes; i++)
		p->address[i] = address_of(&c->redis.node[i], p->sentinel[i]);
	return conf;
}

static int redis_start(struct daemon *d)
{
	const struct conf *c = d->conf;
	struct server_places places;
	char hosts[CONF_NODES_MAX][STORE_HOST_MAX];
	struct service_store store;
	struct upstream_conf conf = upstream_configured(c, &places);
	struct upstream_sink sink = pump_upstream_sink;
	char *password, *sentinel_password;
	int r = password_first(c, d->carried, &password, &sentinel_password);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < c->redis.nodes; i++) {
		service_store(d->service, i, &store);
		address_restore(&places.address[i], &store, hosts[i]);
	}
	conf.daemon_id = service_daemon_id(d->service);
	conf.tolerance_us = 2 * d->core_conf.clock_tol_us;
	conf.password = password;
	conf.sentinel_password = sentinel_password;
	conf.tls = c->redis.tls.on ? credentials_redis(&d->credentials, c) : NULL;
	if (c->redis.tls.on && !conf.tls) {
		r = -EINVAL;
	} else {
		sink.context = d;
		d->upstream = upstream_new(d->base, &conf, &sink);
	}
	mem_wipe(password);
	mem_wipe(sentinel_password);
	if (r < 0)
		return r;
	return d->upstream ? 0 : -ENOMEM;
}

/* --- a trial --------------------------------------------------------------------------------------------------------- */

struct attempt {
	struct event_base *base;
	unsigned good, needed;
	bool is_good[CONF_NODES_MAX];
	enum defect defect[CONF_NODES_MAX];
	char reason[CONF_NODES_MAX][256];
};

static void attempt_note(struct attempt *t, unsigned node, bool is_good)
{
	t->good += is_good;
	t->good -= t->is_good[node];
	t->is_good[node] = is_good;
	if (t->good >= t->needed)
		event_base_loopbreak(t->base);
}

static void attempt_on_up(void *context, unsigned node, const char *address)
{
	(void)address;
	attempt_note(context, node, true);
}

/* While the sentinels are silent, the next process keeps the server that this one knows. A trial cannot, so this counts as good. */
static void attempt_on_down(void *context, unsigned node, enum defect defect, const char *reason, const char *address)
{
	struct attempt *t = context;

	(void)address;
	attempt_note(t, node, defect == DEFECT_SENTINEL);
	t->defect[node] = defect;
	(void)snprintf(t->reason[node], sizeof(t->reason[node]), "%s", reason);
}

/* It makes no calls. */
static void attempt_on_answer(void *context, const struct answer *a)
{
	(void)context, (void)a;
}

static void attempt_run(struct attempt *t, const struct upstream_conf *conf)
{
	const struct upstream_sink sink = {.context = t, .up = attempt_on_up, .down = attempt_on_down, .answer = attempt_on_answer};
	struct timeval most = {.tv_sec = TRY_US / SEC};
	struct upstream *u;

	t->base = event_base_new();
	if (!t->base || event_base_loopexit(t->base, &most) < 0)
		mem_exhausted();
	u = upstream_new(t->base, conf, &sink);
	event_base_dispatch(t->base);
	upstream_free(u);
	event_base_free(t->base);
}

static void attempt_report(const struct attempt *t, unsigned node, const char *label)
{
	const char *reason = t->reason[node], *advice = defect_table[*reason ? t->defect[node] : DEFECT_SILENT].advice;

	fprintf(stderr, "redlockd: error: %s: %s; fix: %s\n", label, *reason ? reason : "it does not answer", advice);
}

/* The check of the configuration reports a secret that cannot be read. */
bool stores_try(const struct conf *c)
{
	struct attempt t = {.needed = (unsigned)c->redis.nodes / 2 + 1};
	struct server_places places;
	struct upstream_conf conf = upstream_configured(c, &places);
	struct credentials credentials;
	char *password = NULL, *sentinel_password = NULL;

	if (c->store != STORE_REDIS || conf_secret(c, KEY_REDIS_PASSWORD_FILE, &password) < 0 ||
	    conf_secret(c, KEY_REDIS_SENTINEL_PASSWORD_FILE, &sentinel_password) < 0) {
		mem_wipe(password);
		return true;
	}
	conf.links = 1;
	conf.password = password;
	conf.sentinel_password = sentinel_password;
	credentials_init(&credentials);
	conf.tls = c->redis.tls.on ? credentials_redis(&credentials, c) : NULL;
	signal(SIGPIPE, SIG_IGN);
	if (conf.tls || !c->redis.tls.on)
		attempt_run(&t, &conf);
	mem_wipe(password);
	mem_wipe(sentinel_password);
	for (unsigned i = 0; t.good < t.needed && i < conf.nodes; i++)
		if (!t.is_good[i])
			attempt_report(&t, i, c->redis.node[i].label);
	return t.good >= t.needed;
}

/* --- begin and end --------------------------------------------------------------------------------------------------- */

int stores_start(struct daemon *d)
{
	struct event event = {.kind = EVENT_NODE_UP};

	if (d->conf->store == STORE_REDIS)
		return redis_start(d);
	pump_step(d, &event);
	return 0;
}

void stores_stop(struct daemon *d)
{
	int r;

	if (!d->memory || !d->state_open)
		return;
	lasting_stop(d);
	r = state_finish(&d->state, d->memory, clock_boottime());
	if (r < 0)
		log_event(LOG_ERROR, "state", "dir=%s error=\"%s\" note=\"the next start takes this end for a crash\"", d->runtime.dir, strerror(-r));
}

void stores_release(struct daemon *d)
{
	memory_free(d->memory);
	job_file_close(&d->jobs);
	if (d->state_open)
		state_close(&d->state);
	if (d->upstream)
		upstream_free(d->upstream);
	free(d->set_name);
}

void stores_tick(struct daemon *d)
{
	lasting_tick(d);
	if (d->memory && !instant_before(clock_boottime(), state_due(&d->state, d->memory)))
		stores_mark(d);
}
