/* SPDX-License-Identifier: BSD-2-Clause */
/* See restart.h. It must never step the service after everything is packed, and never wait. */
#include "daemon/main/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/main/passed.h"
#include "daemon/net/carry.h"

#include <inttypes.h>
#include <string.h>

#define SECRET_US (5 * SEC)    /* how long the verification of a secret may take before the clients are paused */
#define CALM_US   (30 * MSEC)  /* how long new calls are still sent: most often all are answered by then */
#define WEB_US    (30 * MSEC)  /* how long the web listeners may take to answer connected clients */

static void held_forget(struct secret_held *held)
{
	if (held->secret)
		explicit_bzero(held->secret, held->secret_n);
	mem_free(held->secret);
	mem_free(held->user);
	*held = (struct secret_held){0};
}

int restart_start(struct daemon *d)
{
	trial_init(&d->restart.trial);
	d->restart.records = -1;
	return 0;
}

void restart_stop(struct daemon *d)
{
	trial_end(&d->restart.trial);
	held_forget(&d->restart.held);
}

bool restart_keeps_secret(struct daemon *d, const struct effect *effect)
{
	struct secret_held *held = &d->restart.held;

	if (d->restart.phase < RESTART_SECRET)
		return false;
	*held = (struct secret_held){.number = effect->verify.number,
	                                .user = mem_copy(effect->verify.user.p, effect->verify.user.n),
	                                .user_n = effect->verify.user.n,
	                                .secret = mem_copy(effect->verify.secret, effect->verify.secret_n),
	                                .secret_n = effect->verify.secret_n};
	explicit_bzero(effect->verify.secret, effect->verify.secret_n);
	return true;
}

/* Verifies the delayed secret in this process after all. */
static void held_begin(struct daemon *d)
{
	struct secret_held *held = &d->restart.held;
	struct effect effect = {.kind = EFFECT_VERIFY,
	                        .verify = {held->number, {held->user, held->user_n}, held->secret, held->secret_n}};

	if (held->user)
		guard_verify(d, &effect);
	held_forget(held);
}

void restart_give_up(struct daemon *d, const char *why)
{
	enum restart_phase phase = d->restart.phase;

	if (phase == RESTART_NONE || phase == RESTART_OVER)
		return;
	log_event(LOG_WARN, "restart", "error=\"%s\" note=\"the daemon goes on without one\"", why);
	trial_end(&d->restart.trial);
	d->restart.phase = RESTART_NONE;
	d->restart.silent = false;
	held_begin(d);
	if (phase < RESTART_QUIET)
		return;
	signals_hold(false);
	net_pause(d->net, false);
	if (d->web)
		web_resume(d->web);
	if (d->api)
		web_resume(d->api);
}

static void secret_begin(struct daemon *d)
{
	d->restart.phase = RESTART_SECRET;
	d->restart.until = instant_add(clock_boottime(), SECRET_US);
}

void restart_ask(struct daemon *d)
{
	int r;

	if (d->stopping || d->restart.phase != RESTART_NONE) {
		log_event(LOG_NOTICE, "restart", "note=\"%s\"", d->stopping ? "the daemon is about to end" : "one is under way");
		return;
	}
	if (service_is_draining(d->service)) {
		log_event(LOG_ERROR, "restart", "error=\"the daemon drains\" note=\"it goes on as it is\"");
		return;
	}
	/* A configuration from a pipe is gone. The next process would start with other stores, or wait for ever. */
	if (!conf_may_be_read_again(d->args->config)) {
		log_event(LOG_ERROR, "restart", "file=%s error=\"no regular file, so it cannot be read again\" note=\"the daemon goes on as it is\"",
		          d->args->config);
		return;
	}
	r = trial_begin(&d->restart.trial, d->args->program, passed_kinds(&d->systemd), clock_boottime());
	if (r < 0) {
		log_event(LOG_ERROR, "restart", "program=%s error=\"%s\" note=\"the daemon goes on as it is\"", d->args->program->path, strerror(-r));
		return;
	}
	log_event(LOG_NOTICE, "restart", "signal=USR2 program=%s", d->args->program->path);
	d->restart.phase = RESTART_TRIAL;
	d->restart.way = IN_PLACE;
}

/* An operator who drains the daemon wants it to end. */
bool restart_takes_over(struct daemon *d)
{
	if (d->restart.phase == RESTART_OVER)
		return true;
	if (d->stopping || !d->systemd.keeps || service_is_draining(d->service))
		return false;
	log_event(LOG_NOTICE, "restart", "signal=TERM note=\"the service manager keeps the state for the next process\"");
	trial_end(&d->restart.trial);
	d->restart.way = BY_MANAGER;
	if (d->restart.phase < RESTART_SECRET)
		secret_begin(d);
	return true;
}

static void trial_pass(struct daemon *d)
{
	char output[TRIAL_OUTPUT_MAX];
	const char *why = "";
	enum verdict verdict = trial_look(&d->restart.trial, clock_boottime(), output, &why);

	if (verdict == TRIAL_NO_QUORUM && !service_has_quorum(d->service))
		verdict = TRIAL_PASSED; /* nothing is lost by it */
	switch (verdict) {
	case TRIAL_UNDER_WAY:
		break;
	case TRIAL_PASSED:
		secret_begin(d);
		break;
	case TRIAL_NO_QUORUM:
	case TRIAL_FAILED:
		log_text(output);
		d->restart.phase = RESTART_NONE;
		log_event(LOG_ERROR, "restart", "program=%s error=\"%s\" note=\"the daemon goes on as it is\"", d->args->program->path, why);
		break;
	}
}

/* A store that takes longer counts as silent in any case. To give it up earlier would fail the requests that wait for it. */
static int64_t patience_us(const struct daemon *d)
{
	return CALM_US + d->conf->redis.timeout;
}

static void quiet_begin(struct daemon *d)
{
	d->restart.phase = RESTART_QUIET;
	signals_hold(true); /* they wait for the next process */
	event_active(d->tick_event, EV_TIMEOUT, 1);
	d->restart.paused = clock_boottime();
	d->restart.until = instant_add(d->restart.paused, patience_us(d));
	net_pause(d->net, true);
	net_end_tls(d->net, "! DRAIN in_ms=0\n");
	if (d->web)
		web_pause(d->web);
	if (d->api)
		web_pause(d->api);
	pump_pass(d);
}

static bool secret_is_over(const struct daemon *d, struct instant now)
{
	return !d->verifying || !instant_before(now, d->restart.until);
}

/* Answers of the web listeners are not worth a long pause. */
static bool web_is_quiet(const struct daemon *d, struct instant now)
{
	bool idle = (!d->web || web_is_idle(d->web)) && (!d->api || web_is_idle(d->api));

	return idle || !instant_before(now, instant_add(d->restart.paused, WEB_US));
}

/* Renewals and probes never end. */
static bool calls_are_over(const struct daemon *d, struct instant now)
{
	if (pump_is_behind(d) || service_is_awaited(d->service))
		return false;
	return !d->upstream || upstream_is_quiet(d->upstream) || !instant_before(now, instant_add(d->restart.paused, CALM_US));
}

static bool is_quiet(const struct daemon *d, struct instant now)
{
	if (service_returns(d->service))
		return false;
	if (!instant_before(now, d->restart.until))
		return true;
	return calls_are_over(d, now) && !journal_has_news(&d->journal) && web_is_quiet(d, now);
}

/* The next process begins all unfinished work again, so no unanswered call is reported. */
static void quiet_force(struct daemon *d)
{
	d->restart.silent = true;
	d->verifying = false;
	pump_pass(d);
}

static void hand_over(struct daemon *d)
{
	const char *why = service_is_draining(d->service) ? "the daemon drains" : NULL;
	uint64_t mark[2];
	int r = why ? 0 : carry_begin(d, mark);

	if (why || r < 0) {
		restart_give_up(d, why ? why : strerror(-r));
		if (d->restart.way == BY_MANAGER)
			supervise_end(d, "signal=TERM");
		return;
	}
	quiet_force(d);
	r = carry_pack(d, mark);
	d->restart.phase = RESTART_OVER;
	d->stopped = true;
	if (r < 0)
		log_event(LOG_ERROR, "restart", "error=\"%s\" note=\"the sessions end, and it goes on as after a crash\"", strerror(-r));
	else if (d->restart.way == BY_MANAGER && (r = carry_store(d)) < 0) {
		log_event(LOG_ERROR, "restart", "error=\"the service manager does not keep the state: %s\"", strerror(-r));
		d->restart.way = IN_PLACE;
		d->restart.failed = true;
	}
}

void restart_resume(struct daemon *d)
{
	d->restart.returning = true;
	net_pause(d->net, true);
	if (service_has_other_stores(d->service))
		log_event(LOG_WARN, "restart", "note=\"the configuration names other stores: what was held at the former ones is lost\"");
}

static void return_pass(struct daemon *d)
{
	if (service_returns(d->service))
		return;
	d->restart.returning = false;
	net_pause(d->net, false);
	log_event(LOG_NOTICE, "restarted", "sessions=%u paused_ms=%" PRId64, net_sessions(d->net),
	          instant_diff(clock_boottime(), d->restart.paused) / MSEC);
}

void restart_pass(struct daemon *d)
{
	if (d->restart.returning)
		return_pass(d);
	if (d->restart.returning)
		return;
	if (d->restart.phase == RESTART_TRIAL)
		trial_pass(d);
	/* QUIET is checked first, so that one pass of the loop runs before the hand-over. A signal that has already come takes effect in that pass; its event
	 * would be lost otherwise. */
	if (d->restart.phase == RESTART_QUIET && is_quiet(d, clock_boottime()))
		hand_over(d);
	if (d->restart.phase == RESTART_SECRET && secret_is_over(d, clock_boottime()))
		quiet_begin(d);
}
