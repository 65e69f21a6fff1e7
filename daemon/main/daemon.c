/* SPDX-License-Identifier: BSD-2-Clause */
/* Start-up is a list of stages in the order of their dependencies. Shut-down is the same list backwards. */
#include "daemon/main/daemon.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/main/internal.h"
#include "daemon/net/address.h"
#include "daemon/net/carry.h"
#include "daemon/restart/once.h"
#include "daemon/restart/records.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <event2/thread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#define KEEPALIVE_US (10 * SEC)
#define LAST_PASSES  256

/* Names, jobs and journal are in the directory of the previous process. If a restart changed the directory, a kill -9 halfway would leave only a part of them
 * there, or nothing. */
static int runtime_take_over(struct daemon *d, const char **ret_what)
{
	const struct carried *c = d->carried;
	struct runtime chosen;
	int r = runtime_go_on(&d->runtime, c->runtime_dir, carried_take_fd(d, c->lock_fd), carried_take_fd(d, c->folder_fd), ret_what);

	if (!r && !runtime_is_chosen(&d->runtime, d->conf->runtime_dir, &chosen))
		log_event(LOG_ERROR, "restart",
		          "runtime=%s configured=%s note=\"it stays where it was: to change runtime_dir stop the daemon, move the directory, and start it\"",
		          d->runtime.dir, chosen.dir);
	return r;
}

static int stage_runtime(struct daemon *d)
{
	const struct carried *c = d->carried;
	const char *what;
	int r = c ? runtime_take_over(d, &what) : runtime_open(&d->runtime, d->conf->runtime_dir, &what);

	if (r >= 0 && once_is_there(d->runtime.dir))
		d->names_elsewhere = false; /* the process with the unusable state ran in this directory */
	if (r < 0) {
		log_event(LOG_ERROR, "start", "runtime=%s error=\"%s\"", d->runtime.dir, runtime_trouble(r));
	} else if (!once_take(d->runtime.dir, c ? c->mark : NULL, &what) && c) {
		/* Another process has continued from it, or was killed before that: it ran in this directory as well. */
		carried_refuse(d, what);
		d->names_elsewhere = false;
	}
	return r;
}

static void stage_runtime_stop(struct daemon *d)
{
	runtime_close(&d->runtime);
}

/* Raises the limit of descriptors to its maximum, since each session needs one. SIGXFSZ is ignored, so a write beyond the file size limit fails. */
static int stage_limits(struct daemon *d)
{
	struct rlimit limit;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	removed_files_start();
	signal(SIGUSR1, SIG_IGN); /* until supervise_start */
	signal(SIGCHLD, SIG_DFL); /* where it is ignored, no child can be awaited: trial.c */
	guard_secrets(d->conf);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	return 0;
}

static int stage_systemd(struct daemon *d)
{
	int r = systemd_init(&d->systemd);

	if (r < 0)
		log_event(LOG_ERROR, "start", "stage=systemd error=\"%s\"", strerror(-r));
	return r;
}

/* Comes before any stage that writes to the runtime directory. */
static int stage_descriptors(struct daemon *d)
{
	if (descriptors_for_clients(d->conf, d->systemd.sockets_n) == 0 && !d->carried)
		return descriptors_lack(d->conf, d->systemd.sockets_n);
	descriptors_warn(d->conf, d->systemd.sockets_n);
	return 0;
}

static void stage_systemd_stop(struct daemon *d)
{
	systemd_release(&d->systemd);
}

/* By itself libevent would write to standard error, and wait for its reader. */
static void loop_log(int severity, const char *text)
{
	char quoted[512];

	log_event(severity == EVENT_LOG_ERR ? LOG_ERROR : LOG_WARN, "loop", "text=%s", log_quote(text, quoted, sizeof(quoted)));
}

static int stage_loop(struct daemon *d)
{
	struct event_config *config;

	event_set_log_callback(loop_log);
	config = event_config_new();
	if (config) {
		event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
		d->base = event_base_new_with_config(config);
		event_config_free(config);
	}
	return d->base ? 0 : -ENOMEM;
}

static void stage_loop_stop(struct daemon *d)
{
	event_base_free(d->base);
	libevent_global_shutdown();
}

static int stage_guard(struct daemon *d)
{
	return guard_start(d, pump_verified);
}

static int stage_service(struct daemon *d)
{
	int r;

	gethostname(d->host, sizeof(d->host) - 1);
	outer_figures_start(d);
	r = stores_configure(d);
	if (!r)
		r = stores_open(d);
	if (r < 0) {
		log_event(LOG_ERROR, "start", "stage=store error=\"%s\"", strerror(-r));
		return r;
	}
	d->service = service_new(&d->core_conf);
	return 0;
}

static void stage_service_stop(struct daemon *d)
{
	stores_release(d);
	if (d->service)
		service_free(d->service);
}

static int stage_net(struct daemon *d)
{
	struct net_conf conf = {
		.line_max = d->conf->limits.line,
		.output_max = d->conf->limits.output,
		.sessions_max = (unsigned)d->conf->limits.clients,
		.connections_max = descriptors_for_clients(d->conf, d->systemd.sockets_n),
		.peer_max = (unsigned)d->conf->limits.peer,
		.groups = d->rules != NULL,
		.admin_group = admin_group(),
		.first_slot = WEB_SESSIONS,
		.reserved_slots = API_SESSIONS,
		.unix_access = listen_access(d->conf),
		.keepalive_us = KEEPALIVE_US,
	};
	struct net_sink sink = pump_net_sink;

	sink.context = d;
	d->net = net_new(d->base, &conf, &sink);
	if (d->net && d->carried) {
		net_unpack(d->net, d->carried->net, &d->carried->fds);
		d->carried->net = NULL;
	}
	return d->net ? 0 : -errno;
}

static void stage_net_stop(struct daemon *d)
{
	net_free(d->net);
}

/*
 * A crash loses the keys of the memory store. The sessions of the previous run then hold nothing, and the journal is dropped. A state that was handed over
 * supersedes the journal.
 */
static int stage_journal(struct daemon *d)
{
	char boot_id[JOURNAL_BOOT_MAX];
	int r;

	runtime_boot_id(boot_id, sizeof(boot_id));
	if (!boot_id[0])
		log_event(LOG_WARN, "journal", "boot=unknown note=\"without %s nothing can be resumed after a restart\"", RUNTIME_BOOT_ID);
	r = journal_open(&d->journal, d->runtime.dir, boot_id, clock_boottime());
	if (r < 0)
		return r;
	if (d->memory && d->state.found == STATE_CRASH)
		journal_forget(&d->journal);
	pump_restore(d);
	return 0;
}

static void stage_journal_stop(struct daemon *d)
{
	journal_write(&d->journal, clock_boottime());
	journal_close(&d->journal);
}

struct stage {
	const char *name;
	int (*start)(struct daemon *d);
	void (*stop)(struct daemon *d);
	bool logs; /* it logs its errors itself */
};

static const struct stage stages[] = {
	{"limits", stage_limits, NULL, false},
	{"systemd", stage_systemd, stage_systemd_stop, true},
	{"carried", carried_start, NULL, false},
	{"runtime", stage_runtime, stage_runtime_stop, true},
	{"descriptors", stage_descriptors, NULL, true},
	{"loop", stage_loop, stage_loop_stop, false},
	{"pump", pump_start, pump_stop, false},
	{"guard", stage_guard, guard_stop, true},
	{"service", stage_service, stage_service_stop, true},
	{"net", stage_net, stage_net_stop, false},
	{"site", site_start, site_stop, false},
	{"journal", stage_journal, stage_journal_stop, false},
	{"stores", stores_start, stores_stop, true},
	{"restart", restart_start, restart_stop, false},
	{"supervise", supervise_start, supervise_stop, false},
	{"listen", listen_start, NULL, true},
	{"resume", carried_resume, NULL, false},
};

#define STAGES (sizeof(stages) / sizeof(*stages))

static int exit_status(int r)
{
	switch (r) {
	case 0:
		return EX_OK;
	case UNPROTECTED:
	case UNUSABLE:
		return EX_CONFIG;
	case -EACCES:
	case -EPERM:
		return EX_NOPERM;
	default:
		return EX_UNAVAILABLE;
	}
}

/* Lets other processes run: a client with its answer may ask for more, and a server may answer. */
static void daemon_yield(struct daemon *d)
{
	struct instant before = clock_boottime();

	sched_yield();
	rest_note_yield(&d->rest, before, clock_boottime());
}

/* Whether the loop sleeps until there is an event. */
static bool daemon_sleeps(struct daemon *d)
{
	if (pump_is_behind(d) || d->journal.in_image)
		return false;
	/* A server on this host needs the processor to answer. */
	if (!d->held_back && ((d->upstream && upstream_waits(d->upstream)) || !rest_polls(&d->rest, clock_boottime())))
		return true;
	daemon_yield(d);
	return false;
}

static void daemon_loop(struct daemon *d)
{
	while (!d->stopped) {
		if (!d->ready)
			supervise_tick(d);
		pump_pass(d);
		restart_pass(d);
		if (!d->stopped)
			event_base_loop(d->base, daemon_sleeps(d) ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK);
	}
	/* Carries out the calls that are queued for the memory store. The number of passes is bounded, because renewals never end. */
	for (unsigned passes = 0; d->restart.phase != RESTART_OVER && (passes == 0 || (pump_is_behind(d) && passes < LAST_PASSES)); passes++)
		pump_pass(d);
	if (d->restart.phase != RESTART_OVER)
		net_flush_all(d->net);
}

/* Whether another program, or this one again, continues in this process. */
static bool goes_on_in_place(const struct daemon *d)
{
	return d->restart.phase == RESTART_OVER && d->restart.way == IN_PLACE;
}

/* The service manager has copies of the descriptors. */
static void handed_close(struct daemon *d)
{
	fdlist_close(&d->restart.handed->fds);
	carried_free(d->restart.handed);
	if (d->restart.records >= 0)
		close(d->restart.records);
}

/*
 * Runs all stages, and stops them in reverse. *ret_handed: what is handed over in place; NULL: the process ends. *ends: in: end right after the start; out: the
 * continuation in place must end.
 */
static int daemon_live(struct conf *conf, const struct daemon_args *args, bool *ends, struct carried **ret_handed, int *ret_records)
{
	struct daemon *d = mem_alloc(sizeof(*d));
	size_t started = 0;
	int r = 0;

	d->conf = conf;
	d->args = args;
	d->timer_fd = -1;
	d->started = clock_boottime();
	d->reloaded.wall_us = clock_wall_us();
	d->wall_ahead_at_start_us = d->reloaded.wall_us - d->started.us;
	credentials_init(&d->credentials);
	/* Between the first and the last mark of the state file, any end without supervise_end counts as a crash. */
	signals_hold(true);
	while (r >= 0 && started < STAGES) {
		r = stages[started].start(d);
		if (r < 0 && (!stages[started].logs || r == -ENOMEM))
			log_event(LOG_ERROR, "start", "stage=%s error=\"%s\"", stages[started].name, strerror(-r));
		if (r >= 0)
			started++;
	}
	if (r >= 0 && *ends)
		supervise_end(d, "signal=TERM");
	if (r >= 0)
		daemon_loop(d);
	*ret_handed = goes_on_in_place(d) ? d->restart.handed : NULL;
	*ret_records = d->restart.records;
	*ends = d->restart.failed;
	while (started-- > 0)
		if (stages[started].stop)
			stages[started].stop(d);
	if (d->restart.handed && !*ret_handed)
		handed_close(d);
	free(d);
	return r;
}

int daemon_run(struct conf *conf, const struct daemon_args *args)
{
	struct carried *handed;
	bool ends = false;
	int r, records;

	/* To give memory back takes the kernel 100 us per MiB, and nobody is served meanwhile. So memory that a burst of clients has used is kept for the next
	 * one. */
	(void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
	for (;;) {
		r = daemon_live(conf, args, &ends, &handed, &records);
		if (!handed)
			break;
		r = carry_exec(ends ? NULL : args->program, handed, records);
		if (r < 0)
			log_event(LOG_ERROR, "restart", "program=%s error=\"%s\" note=\"the daemon goes on as it is\"", args->program->path, strerror(-r));
	}
	if (r >= 0)
		log_event(LOG_NOTICE, "stopped", "pid=%d", (int)getpid());
	return exit_status(r < 0 ? r : 0);
}
