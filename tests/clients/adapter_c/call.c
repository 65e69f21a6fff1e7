/* SPDX-License-Identifier: BSD-2-Clause */
/* A call: its requests one after the other. */
#include "tests/clients/adapter_c/adapter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#define SLOW_US 100000 /* a grant that took longer is asked about */

static int64_t ms(const struct call *k, const char *key)
{
	return (int64_t)(1000 * json_number(&k->row, key, 0));
}

const char *text(const struct call *k, const char *key)
{
	const char *found = json_text(&k->row, key);

	return found ? found : "";
}

bool asks(const struct call *k, const char *what)
{
	return !strcmp(k->what, what);
}

int64_t wait_ms(const struct call *k)
{
	return json_find(&k->row, "wait") ? ms(k, "wait") : REDLOCK_FOREVER;
}

/* Whose request this is. With grace the library tracks its locks itself, and there are no owners. */
static int own(const struct call *k)
{
	return k->client->grace_ms || k->hold->takes ? 0 : redlock_set_owner(k->client->c, k->hold->owner);
}

static int hold_ask(struct call *k)
{
	const struct json_field *names = json_find(&k->row, "names");
	struct redlock_options options = {.size = sizeof(options), .wait_ms = wait_ms(k), .ttl_ms = ms(k, "ttl"),
			.shared = json_number(&k->row, "shared", 0) > 0,
		.note = json_text(&k->row, "note"), .priority = (int)json_number(&k->row, "priority", 0), .slots = (int)json_number(&k->row, "limit", 0),
		.cancellable = true, .trace = json_text(&k->row, "trace")};
	struct redlock *c = k->client->c;
	int r = own(k);

	if (r)
		return r;
	if (k->hold->takes)
		return redlock_take_send(c, k->hold->part[0].name, &options);
	if (names)
		return redlock_lock_many_send(c, asks(k, "any"), (const char *const *)names->text, names->n, &options);
	return redlock_lock_send(c, k->hold->part[0].name, &options);
}

static int check(struct call *k)
{
	int r = own(k);

	k->stage = CHECKED;
	if (r)
		return r;
	return k->hold->takes ? redlock_check_job_send(k->client->c, k->hold->part[0].name, k->hold->job.id)
			      : redlock_check_send(k->client->c, k->hold->part[k->at].name);
}

/* The attempt does not count, which redlock_retry cannot say. */
static int job_send_back(struct call *k)
{
	char line[2 * REDLOCK_NAME_BYTES + 64];

	snprintf(line, sizeof(line), "RETRY %s queue=%s delay=%lldms failed=no", k->hold->job.id, k->hold->part[0].name, (long long)ms(k, "delay"));
	return redlock_send(k->client->c, line);
}

static int give_back(struct call *k)
{
	int r = own(k);

	k->stage = GIVEN_BACK;
	if (r)
		return r;
	return k->hold->takes ? job_send_back(k) : redlock_unlock_send(k->client->c, k->hold->part[k->at].name, NULL);
}

/* Takes the grant of the last answer. */
static int granted(struct call *k)
{
	struct part *p = &k->hold->part[k->at];
	struct redlock_bytes permit = redlock_line_find(redlock_answer(k->client->c), "permit"), name = redlock_line_find(redlock_answer(k->client->c), "name");
	struct redlock_grant grant;
	int r = k->hold->takes ? redlock_job_grant(k->client->c, &grant) : redlock_grant(k->client->c, &grant);

	if (r)
		return -EPROTO;
	p->until_us = grant.until_us;
	p->fence = k->hold->takes ? k->hold->job.fence : grant.fence;
	if (permit.p)
		snprintf(k->hold->permit, sizeof(k->hold->permit), "%.*s", (int)permit.n, permit.p);
	if (asks(k, "any") && k->stage == ASKED)
		snprintf(p->name, sizeof(p->name), "%.*s", (int)name.n, name.p);
	return 0;
}

/* What a call will say in the end, whatever else is to be done before. */
static void note(struct call *k)
{
	if (*k->error)
		return;
	snprintf(k->error, sizeof(k->error), "%s", redlock_code(k->client->c));
	snprintf(k->text, sizeof(k->text), "%s", redlock_errmsg(k->client->c));
	snprintf(k->name, sizeof(k->name), "%s", k->hold->part[k->at].name);
}

/* The next request of a call that takes, after the answer r. Without one it has returned. */
static int take_on(struct call *k, int r, bool *more)
{
	bool all = asks(k, "locks");

	*more = false;
	if (r == REDLOCK_REFUSED && k->stage == CHECKED && !k->left) {
		note(k);
		say_failed(k, r);
		k->left = true;
		k->at = 0;
		*more = true;
		return give_back(k);
	}
	if (r && (r != REDLOCK_REFUSED || k->stage == ASKED))
		return r;
	if (k->stage == ASKED && k->hold->takes)
		r = redlock_taken(k->client->c, &k->hold->job);
	if (!r && (k->stage == CHECKED || (k->stage == ASKED && !all)))
		r = granted(k);
	if (r < 0)
		return r;
	*more = true;
	if (k->stage == CHECKED || k->stage == GIVEN_BACK)
		k->at++;
	if (k->left) {
		k->at = k->stage == GIVEN_BACK ? k->at : 0;
		if (k->at < k->hold->n)
			return give_back(k);
	} else if (k->stage == CHECKED ? k->at < k->hold->n : all || redlock_now_us() - k->asked_us > SLOW_US) {
		return check(k);
	}
	*more = false;
	return 0;
}

static int release_on(struct call *k, int r, bool *more)
{
	struct redlock_unlocking options = {.size = sizeof(options), .keep_ms = ms(k, "keep"), .sync = json_number(&k->row, "sync", 0) > 0};

	*more = false;
	if (r == REDLOCK_REFUSED)
		note(k);
	if (r < 0)
		return r;
	if (r && k->stage == ASKED && !strcmp(redlock_code(k->client->c), "LIMIT")) { /* it is still held */
		*more = true;
		return give_back(k);
	}
	k->stage = ASKED;
	if (++k->at == k->hold->n) {
		if (k->hold->lost && !*k->error)
			snprintf(k->error, sizeof(k->error), "LOST");
		return *k->error ? REDLOCK_REFUSED : 0;
	}
	*more = true;
	r = own(k);
	return r ? r : redlock_unlock_send(k->client->c, k->hold->part[k->at].name, &options);
}

static int ensure_on(struct call *k, int r, bool *more)
{
	if (!r)
		r = granted(k);
	*more = !r && !k->hold->takes && asks(k, "ensure") && k->stage == CHECKED && left(k->hold) < json_number(&k->row, "seconds", 0);
	if (!*more)
		return r;
	k->stage = EXTENDED;
	return redlock_extend_send(k->client->c, k->hold->part[0].name, 0);
}

/* The first request of a call. */
static int call_ask(struct call *k)
{
	int64_t ttl = ms(k, "ttl"), now = redlock_now_us();
	bool more;
	int r;

	k->asked_us = now;
	k->stage = ASKED;
	if (asks(k, "unlock")) {
		k->at = (size_t)-1;
		return release_on(k, 0, &more);
	}
	if (asks(k, "ensure"))
		return check(k);
	if (!asks(k, "extend"))
		return hold_ask(k);
	r = own(k);
	for (size_t i = 0; ttl > 0 && i < k->hold->n; i++)
		k->hold->part[i].until_us = MIN(k->hold->part[i].until_us, now + 1000 * ttl);
	return r ? r : redlock_extend_send(k->client->c, k->hold->part[0].name, ttl);
}

bool takes(const struct call *k)
{
	return k->hold && !asks(k, "unlock") && !asks(k, "ensure") && !asks(k, "extend") && !asks(k, "done") && !asks(k, "retry");
}
bool goes_on(int r)
{
	return r >= 0 || r == -EINVAL || r == -EMSGSIZE || r == -ECONNABORTED;
}

static bool blocks(const struct call *k)
{
	return asks(k, "rate") || asks(k, "defer") || asks(k, "once") || asks(k, "status") || asks(k, "done") || asks(k, "retry");
}

/* What once calls. */
static int lasts(void *arg)
{
	const struct call *k = arg;

	usleep((useconds_t)(1e6 * json_number(&k->row, "lasts", 0)));
	return json_number(&k->row, "fails", 0) > 0;
}

static int call_once(struct call *k)
{
	int r = redlock_once(k->client->c, text(k, "name"), ms(k, "every"), lasts, k, &k->run);

	if (r || !k->run.ran || !k->run.status)
		return r;
	snprintf(k->error, sizeof(k->error), "failed");
	return REDLOCK_REFUSED;
}

/* What the library has no request for that can be sent without waiting. */
static int call_block(struct call *k)
{
	struct redlock_deferral deferral = {.size = sizeof(deferral), .delay_ms = ms(k, "delay"), .lock = json_text(&k->row, "with"),
			.id = json_text(&k->row, "job")};
	const struct json_field *payload = json_find(&k->row, "payload");
	struct redlock *c = k->client->c;
	int r;

	if (asks(k, "rate"))
		return redlock_rate_wait(c, text(k, "name"), (int64_t)json_number(&k->row, "limit", 0), ms(k, "per"), (int64_t)json_number(&k->row, "cost", 1),
					 ms(k, "wait"), &k->rate);
	if (asks(k, "defer"))
		return redlock_defer(c, text(k, "queue"), (struct redlock_bytes){payload->text[0], payload->n}, &deferral, k->job);
	if (asks(k, "once"))
		return call_once(k);
	if (asks(k, "status"))
		return redlock_once_status(c, text(k, "name"), &k->run);
	if (asks(k, "retry") && !json_number(&k->row, "failed", 1))
		return (r = job_send_back(k)) ? r : redlock_finish(c, ANSWER_MS);
	return asks(k, "done") ? redlock_done(c, k->hold->part[0].name, k->hold->job.id)
			       : redlock_retry(c, k->hold->part[0].name, k->hold->job.id, ms(k, "delay"));
}

int call_go(struct call *k)
{
	bool more = k->stage == QUEUED, lost = more && k->hold && k->hold->lost && (asks(k, "ensure") || asks(k, "extend"));
	int r = more ? 0 : redlock_finish(k->client->c, 0);

	if (!goes_on(r))
		return r;
	if (lost) {
		snprintf(k->error, sizeof(k->error), "LOST");
		r = REDLOCK_REFUSED;
	} else if (more && blocks(k)) {
		r = call_block(k);
		more = false;
	} else if (more) {
		r = call_ask(k);
	} else if (asks(k, "unlock")) {
		r = release_on(k, r, &more);
	} else {
		r = takes(k) ? take_on(k, r, &more) : ensure_on(k, r, &more);
	}
	if (goes_on(r) && (r || !more))
		call_end(k, r);
	return goes_on(r) ? 0 : r;
}
