/* SPDX-License-Identifier: BSD-2-Clause */
/* What signals do, systemd's notifications, reload. */
#include "daemon/main/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/main/passed.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_US    (50 * MSEC)
#define FIRST_PROBE_US  (500 * MSEC) /* how long the "ready" line waits at most for the first probe of each store */
#define SOCKET_UNIT_PATH "/run/redlockd/redlockd.sock"
#define SOCKET_UNIT_TCP  "127.0.0.1:7420"
#define GOODBYE_US (700 * MSEC) /* how long the sending of the last lines may take */

/* Sends the notifications that are due, in order. The loop never waits for the service manager. */
static void supervise_notify(struct daemon *d)
{
	if (d->owes_reloading)
		d->owes_reloading = systemd_reloading(&d->systemd) == -EAGAIN;
	if (d->owes_ready && !d->owes_reloading)
		d->owes_ready = systemd_notify(&d->systemd, "READY=1") == -EAGAIN;
	if (d->owes_stopping && !d->owes_ready && !d->owes_reloading)
		d->owes_stopping = systemd_notify(&d->systemd, "STOPPING=1") == -EAGAIN;
	if (d->owes_removal && d->ready && !d->owes_ready)
		d->owes_removal = fdstore_remove(&d->systemd, CARRIED_PARCEL) == -EAGAIN || fdstore_remove(&d->systemd, CARRIED_RECORDS) == -EAGAIN;
}

void supervise_end(struct daemon *d, const char *why)
{
	struct event event = {.kind = EVENT_STOP};

	if (d->stopping || d->restart.phase == RESTART_OVER)
		return;
	restart_give_up(d, "the daemon ends");
	d->stopping = true;
	log_event(LOG_NOTICE, "stopping", "%s", why);
	d->owes_stopping = true;
	supervise_notify(d);
	net_stop_listening(d->net);
	if (d->web)
		web_stop(d->web);
	if (d->api)
		web_stop(d->api);
	pump_step(d, &event);
	d->stop_at = instant_add(clock_boottime(), GOODBYE_US);
}

static void log_difference(void *context, const char *path, const char *from, const char *to, bool reloadable)
{
	char old[256], new[256];

	(void)context;
	log_event(LOG_NOTICE, "reload", "key=%s from=%s to=%s%s", path, log_quote(from, old, sizeof(old)), log_quote(to, new, sizeof(new)),
	          reloadable ? "" : " effect=restart");
}

static void reload_password(struct daemon *d)
{
	char *password;
	int r;

	if (!d->upstream)
		return;
	r = conf_secret(d->conf, KEY_REDIS_PASSWORD_FILE, &password);
	if (r < 0) {
		log_event(LOG_ERROR, "password", "file=%s error=\"%s\"", d->conf->redis.password_file, strerror(-r));
		d->reloaded.failed = true;
		return;
	}
	upstream_set_password(d->upstream, d->conf->redis.user, password);
	mem_wipe(password);
}

typedef struct ssl_ctx_st *credentials_read(struct credentials *k, const struct conf *c);

/* NULL: there is none, or its files cannot be used, and the former ones stay in use. */
static struct ssl_ctx_st *reload_context(struct daemon *d, bool used, credentials_read *read)
{
	struct ssl_ctx_st *context = used ? read(&d->credentials, d->conf) : NULL;

	d->reloaded.failed |= used && !context;
	return context;
}

static void reload_tls(struct daemon *d)
{
	struct ssl_ctx_st *context = reload_context(d, daemon_speaks_tls(d), credentials_listen);

	if (context)
		net_set_tls(d->net, context);
	context = reload_context(d, d->api && d->conf->api.tls, credentials_listen);
	if (context)
		web_set_tls(d->api, context);
	context = reload_context(d, d->upstream && d->conf->redis.tls.on, credentials_redis);
	if (context)
		upstream_set_tls(d->upstream, context);
}

/* The limit of descriptors may have changed as well. */
static void reload_limits(struct daemon *d)
{
	unsigned connections = descriptors_for_clients(d->conf, d->systemd.sockets_n);

	descriptors_warn(d->conf, d->systemd.sockets_n);
	net_set_limits(d->net, d->conf->limits.output, (unsigned)d->conf->limits.clients, connections, (unsigned)d->conf->limits.peer);
}

/* Keys that need a restart keep their present values; the others take effect now. */
static void reload_apply(struct daemon *d, struct conf *fresh)
{
	bool password_is_live = conf_password_is_live(d->conf, fresh);
	struct core_conf core = d->core_conf;
	struct event event = {.kind = EVENT_RULES};

	conf_diff(d->conf, fresh, log_difference, d);
	conf_take_live(d->conf, fresh);
	d->reloaded = (struct reloaded){.wall_us = clock_wall_us(), .failed = false};
	log_set_level((enum log_level)d->conf->log.level);
	core_conf_fill(&core, d->conf);
	guard_reload(d, &core);
	service_reload(d->service, &core);
	guard_reloaded(d);
	pump_step(d, &event);
	reload_limits(d);
	if (password_is_live)
		reload_password(d);
	reload_tls(d);
	site_reload(d);
}

/* The report is collected in memory and then logged, so that a slow reader of standard error cannot block the loop. */
static int reload_parse(struct daemon *d, struct conf *ret_fresh, struct conf_report *report)
{
	char *text = NULL;
	size_t n;
	int r;

	report->out = open_memstream(&text, &n);
	if (!report->out)
		mem_exhausted();
	r = conf_read(ret_fresh, d->args->config, d->args->sets, d->args->set_count, report);
	if (fclose(report->out))
		mem_exhausted();
	log_text(text);
	free(text);
	return r;
}

static void reload_read(struct daemon *d)
{
	struct conf_report report = {.files = true};
	const char *flaw;
	struct conf fresh;

	d->reloaded.failed = true; /* until it is applied */
	if (!conf_may_be_read_again(d->args->config)) {
		log_event(LOG_ERROR, "reload", "file=%s error=\"no regular file, so it is not read again\" note=\"nothing was changed\"", d->args->config);
		return;
	}
	if (reload_parse(d, &fresh, &report) < 0)
		log_event(LOG_ERROR, "reload", "errors=%u note=\"nothing was changed\"", report.errors);
	else if ((flaw = passed_flaw(&fresh, passed_kinds(&d->systemd))))
		log_event(LOG_ERROR, "reload", "error=\"a socket was passed: %s\" note=\"nothing was changed\"", flaw);
	else
		reload_apply(d, &fresh);
	conf_release(&fresh);
}

static void supervise_reload(struct daemon *d)
{
	d->owes_reloading = true;
	supervise_notify(d);
	reload_read(d);
	d->owes_ready = true;
	supervise_notify(d);
}

static void on_signal(evutil_socket_t number, short what, void *context)
{
	(void)what;
	if (number == SIGHUP)
		supervise_reload(context);
	else if (number == SIGUSR1)
		status_log(context);
	else if (number == SIGUSR2)
		restart_ask(context);
	else if (number != SIGTERM || !restart_takes_over(context))
		supervise_end(context, number == SIGTERM ? "signal=TERM" : "signal=INT");
}

static void warn_of_unused(const char *key, const char *value)
{
	log_event(LOG_WARN, "listen", "%s=%s note=\"not used, since sockets are passed: change redlockd.socket, or disable it\"", key, value);
}

/* An operator who configured an address expects the daemon to listen there. The addresses of redlockd.socket are the defaults. */
static void warn_of_unused_addresses(const struct conf *c)
{
	char tcp[300];

	if (c->listen.unix_path && *c->listen.unix_path && strcmp(c->listen.unix_path, SOCKET_UNIT_PATH) != 0)
		warn_of_unused("listen.unix", c->listen.unix_path);
	if (c->listen.tcp_host && strcmp(tcp_text(c->listen.tcp_host, c->listen.tcp_port, tcp, sizeof(tcp)), SOCKET_UNIT_TCP) != 0)
		warn_of_unused("listen.tcp", tcp);
}

/* Passed sockets replace the configured ones. */
static void supervise_ready(struct daemon *d)
{
	const struct conf *c = d->conf;
	char tcp[300] = "no", tls[300] = "", where[290], passed[32] = "";

	if (d->systemd.sockets_n > 0) {
		snprintf(passed, sizeof(passed), " passed=%zu", d->systemd.sockets_n);
		warn_of_unused_addresses(c);
	} else if (c->listen.tcp_host) {
		tcp_text(c->listen.tcp_host, c->listen.tcp_port, tcp, sizeof(tcp));
	}
	if (c->listen.tls_host)
		snprintf(tls, sizeof(tls), " tls=%s", tcp_text(c->listen.tls_host, c->listen.tls_port, where, sizeof(where)));
	log_event(LOG_NOTICE, "ready", "version=%s store=%s nodes=%u unix=%s tcp=%s%s%s http=%s%s%s runtime=%s", REDLOCKD_VERSION, d->core_conf.store,
	          d->core_conf.nodes, d->unix_path[0] ? d->unix_path : "no", tcp, tls, passed,
	          d->web_where ? d->web_where : "no", d->api_where ? " api=" : "", d->api_where ? d->api_where : "", d->runtime.dir);
	if (d->memory)
		log_event(LOG_NOTICE, "store", "store=memory note=\"" THIS_HOST_ONLY "; for several hosts: store: redis, see redlockd.yaml(5)\"");
	d->owes_ready = true;
	d->ready = true;
}

static void supervise_status(struct daemon *d, struct instant now)
{
	char status[sizeof(d->status)];

	if (instant_before(now, d->status_at))
		return;
	d->status_at = instant_add(now, SEC);
	service_status(d->service, status, sizeof(status));
	if (strcmp(status, d->status) != 0)
		systemd_status(&d->systemd, "%s", status);
	memcpy(d->status, status, sizeof(status));
}

void supervise_tick(struct daemon *d)
{
	struct instant now = clock_boottime();

	if (!d->ready && (service_stores_checked(d->service) || !instant_before(now, instant_add(d->started, FIRST_PROBE_US))))
		supervise_ready(d);
	supervise_notify(d);
	if (d->systemd.watchdog_us > 0 && !instant_before(now, d->watchdog_at)) {
		systemd_watchdog(&d->systemd);
		d->watchdog_at = instant_add(now, d->systemd.watchdog_us / 3);
	}
	supervise_status(d, now);
	if (service_is_drained(d->service))
		supervise_end(d, "reason=drained");
	if (d->stopping && ((net_sessions(d->net) == 0 && net_closing(d->net) == 0) || !instant_before(now, d->stop_at)))
		d->stopped = true;
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
	struct daemon *d = context;

	(void)fd, (void)what;
	stores_tick(d);
	supervise_tick(d);
	credentials_tick(&d->credentials, d->conf);
	for (unsigned i = 0; d->upstream && i < d->conf->redis.nodes; i++)
		credentials_look(&d->credentials, i, d->conf->redis.node[i].label, upstream_cert_ends(d->upstream, i));
	removed_files_look(d);
}

int supervise_start(struct daemon *d)
{
	struct timeval tick = {.tv_usec = TICK_US};

	for (size_t i = 0; i < SIGNALS; i++) {
		d->signal_event[i] = evsignal_new(d->base, signals[i], on_signal, d);
		if (!d->signal_event[i] || event_add(d->signal_event[i], NULL))
			return -ENOMEM;
	}
	signals_hold(false);
	d->tick_event = event_new(d->base, -1, EV_PERSIST, on_tick, d);
	return d->tick_event && event_add(d->tick_event, &tick) == 0 ? 0 : -ENOMEM;
}

/* The stages that stop later still write files. */
void supervise_stop(struct daemon *d)
{
	signals_hold(true);
	for (size_t i = 0; i < SIGNALS; i++)
		if (d->signal_event[i])
			event_free(d->signal_event[i]);
	if (d->tick_event)
		event_free(d->tick_event);
}
