/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds of questions: one post after the other, from the one that answered last, until one tells an address or all have failed. */
#include "daemon/redis/sentinel.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/redis/post.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sentinel {
	const struct sentinel_conf *conf;
	struct sentinel_sink sink;
	char *master;
	struct {
		struct post *post;
		char *label;
		char reason[96]; /* why it told nothing in this round */
		bool unaware;    /* … that is, it knows no such master */
	} item[SENTINELS_MAX];
	unsigned count, present, failed; /* which one is asked; how many have failed in this round */
	struct event *timer;             /* between rounds, while the master is followed */
	bool running;                    /* a round */
	bool asked;                      /* whoever called sentinel_ask waits for it */
	bool followed;
	bool silent;                /* the last round failed while the master was followed, which was logged */
	char host[MASTER_HOST_MAX]; /* what was told last */
	uint16_t port;
};

static void sentinel_arm(struct sentinel *s, int64_t us)
{
	struct timeval tv = {.tv_sec = us / SEC, .tv_usec = us % SEC};

	if (evtimer_add(s->timer, &tv) < 0)
		mem_exhausted();
}

static void round_end(struct sentinel *s)
{
	s->running = false;
	if (s->followed)
		sentinel_arm(s, s->conf->poll_us);
}

/* They stand in the order of the configuration, whoever was asked first, so that the same failure has the same text. */
static void reasons_join(const struct sentinel *s, char *out, size_t size)
{
	bool unaware = true;
	size_t n;

	for (unsigned i = 0; i < s->count; i++)
		unaware &= s->item[i].unaware;
	n = (size_t)snprintf(out, size, unaware ? "no sentinel knows a master named %s" : "no sentinel tells where %s is", s->master);
	for (unsigned i = 0; i < s->count && n < size && !unaware; i++)
		n += (size_t)snprintf(out + n, size - n, "%s %s %s", i ? ";" : ":", s->item[i].label, s->item[i].reason);
}

static void sentinel_hear(struct sentinel *s, const char *reason)
{
	if (s->sink.heard)
		s->sink.heard(s->sink.context, reason);
}

static void sentinel_note_silence(struct sentinel *s, const char *reason)
{
	char quoted[1024];

	if (!s->silent)
		log_event(LOG_WARN, "sentinel", "master=%s state=silent reason=%s note=\"until then a fail-over shows only when the connection breaks\"",
		          s->master, log_quote(reason, quoted, sizeof(quoted)));
	s->silent = true;
	sentinel_hear(s, reason);
}

static void round_fail(struct sentinel *s)
{
	char reason[512];

	reasons_join(s, reason, sizeof(reason));
	round_end(s);
	if (s->asked) {
		s->asked = false;
		s->sink.told(s->sink.context, NULL, 0, reason);
	} else if (s->followed) {
		sentinel_note_silence(s, reason);
	}
}

void sentinel_recall(struct sentinel *s, const char *host, uint16_t port)
{
	(void)snprintf(s->host, sizeof(s->host), "%s", host);
	s->port = port;
}

static void sentinel_on_told(void *context, const char *host, uint16_t port)
{
	struct sentinel *s = context;
	bool same = s->port == port && !strcmp(s->host, host);
	char where[MASTER_HOST_MAX + 16];

	round_end(s);
	if (s->silent)
		log_event(LOG_NOTICE, "sentinel", "master=%s state=heard", s->master);
	s->silent = false;
	if (s->asked) {
		s->asked = false;
		sentinel_recall(s, host, port);
		s->sink.told(s->sink.context, s->host, port, "");
	} else if (s->followed && !same) {
		sentinel_follow(s, false);
		(void)snprintf(where, sizeof(where), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
		s->sink.moved(s->sink.context, where);
	} else if (s->followed) {
		sentinel_hear(s, "");
	}
}

static void sentinel_on_failed(void *context, const char *reason, bool unaware)
{
	struct sentinel *s = context;

	(void)snprintf(s->item[s->present].reason, sizeof(s->item[0].reason), "%s", reason);
	s->item[s->present].unaware = unaware;
	s->present = (s->present + 1) % s->count;
	if (++s->failed < s->count)
		post_ask(s->item[s->present].post);
	else
		round_fail(s);
}

static void round_begin(struct sentinel *s)
{
	s->running = true;
	s->failed = 0;
	post_ask(s->item[s->present].post);
}

static void sentinel_on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	round_begin(context);
}

void sentinel_ask(struct sentinel *s)
{
	s->asked = true;
	evtimer_del(s->timer);
	if (!s->running)
		round_begin(s);
}

void sentinel_follow(struct sentinel *s, bool on)
{
	s->followed = on;
	evtimer_del(s->timer);
	if (on && !s->running)
		sentinel_arm(s, s->conf->poll_us);
}

void sentinel_where(const struct sentinel *s, char *out, size_t size)
{
	(void)snprintf(out, size, strchr(s->host, ':') ? "[%s]:%u" : "%s:%u", s->host, s->port);
}

struct sentinel *sentinel_new(const struct sentinel_conf *conf, const struct upstream_address *address, const struct sentinel_sink *sink)
{
	struct sentinel *s = mem_alloc(sizeof(*s));
	const struct post_sink post_sink = {.context = s, .told = sentinel_on_told, .failed = sentinel_on_failed};

	s->conf = conf;
	s->sink = *sink;
	s->master = mem_copy(address->master, strlen(address->master));
	for (; s->count < address->sentinels && s->count < SENTINELS_MAX; s->count++) {
		const struct upstream_host *at = &address->sentinel[s->count];

		s->item[s->count].post = post_new(conf, s->master, at, &post_sink);
		if (asprintf(&s->item[s->count].label, strchr(at->host, ':') ? "[%s]:%u" : "%s:%u", at->host, at->port) < 0)
			mem_exhausted();
	}
	s->timer = evtimer_new(conf->base, sentinel_on_timer, s);
	if (!s->timer)
		mem_exhausted();
	return s;
}

void sentinel_free(struct sentinel *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->count; i++) {
		post_free(s->item[i].post);
		free(s->item[i].label);
	}
	event_free(s->timer);
	free(s->master);
	free(s);
}
