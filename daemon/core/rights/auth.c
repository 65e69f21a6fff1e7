/* SPDX-License-Identifier: BSD-2-Clause */
/* See auth.h. It must never log a word of a request: people type secrets where names belong. */
#include "daemon/core/rights/auth.h"

#include "daemon/base/mem.h"
#include "daemon/base/peer.h"
#include "daemon/core/reply/pending.h"
#include "daemon/core/reply/tell.h"
#include "daemon/core/rights/suspects.h"

#include <inttypes.h>
#include <stdio.h>

TAILQ_HEAD(auth_list, auth);

/* Where AUTHs come from. It lives as long as it has AUTHs. */
struct asker {
	struct map_node by_name;
	TAILQ_ENTRY(asker) in_turns; /* while some of its AUTHs wait to be verified */
	struct auth_list waiting, suspected; /* the latter, whose suspects have failed, come last */
	unsigned refs; /* its AUTHs */
	size_t n;
	char name[PEER_ORIGIN_MAX];
};

/* One AUTH. It ends with its session, unless it is verified just then. */
struct auth {
	TAILQ_ENTRY(auth) next;
	struct auth_list *in; /* a list of its origin, or auths.decided; NULL: it is verified */
	struct timer timer;
	struct pending *pending;
	struct asker *origin;
	struct instant asked_at;
	bool verified, ok; /* verified: it was handed to the outer layer */
	size_t user_n, secret_n;
	char text[]; /* user, then secret */
};

struct auths {
	struct map origins; /* by name */
	struct suspects suspects;
	TAILQ_HEAD(, asker) turns;
	struct auth_list decided; /* those that are answered later */
	struct auth *verified; /* the one that the outer layer verifies; NULL: none */
	uint64_t number;
};

static struct auths *auths_of(struct commander *x)
{
	struct auths *a = x->auths;

	if (a)
		return a;
	a = x->auths = mem_alloc(sizeof(*a));
	map_init(&a->origins, (const uint64_t[2]){rng_next(&x->core->rng), rng_next(&x->core->rng)});
	suspects_init(&a->suspects, (const uint64_t[2]){rng_next(&x->core->rng), rng_next(&x->core->rng)});
	TAILQ_INIT(&a->turns);
	TAILQ_INIT(&a->decided);
	return a;
}

/* --- origins --- */

static bool asker_matches(const struct map_node *node, const void *name, size_t n)
{
	const struct asker *o = container_of(node, struct asker, by_name);

	return o->n == n && memcmp(o->name, name, n) == 0;
}

static size_t asker_name(const struct session *s, char out[PEER_ORIGIN_MAX])
{
	struct span address = session_address(s);

	return peer_origin(s->is_unix, s->uid, address.p, address.n, out);
}

static struct asker *asker_find_or_add(struct auths *a, const char *name, size_t n)
{
	uint64_t hash = map_hash(&a->origins, name, n);
	struct map_node *node = map_find(&a->origins, hash, name, n, asker_matches);
	struct asker *o;

	if (node)
		return container_of(node, struct asker, by_name);
	o = mem_alloc(sizeof(*o));
	o->n = n;
	memcpy(o->name, name, n);
	TAILQ_INIT(&o->waiting);
	TAILQ_INIT(&o->suspected);
	map_insert(&a->origins, &o->by_name, hash);
	return o;
}

static void asker_leave(struct auths *a, struct asker *o)
{
	if (--o->refs > 0)
		return;
	map_remove(&a->origins, &o->by_name);
	mem_free(o);
}

static struct span asker_span(const struct asker *o)
{
	return (struct span){o->name, o->n};
}

static struct auth *asker_first(const struct asker *o)
{
	struct auth *auth = TAILQ_FIRST(&o->waiting);

	return auth ? auth : TAILQ_FIRST(&o->suspected);
}

static int64_t delay_of(unsigned failed)
{
	int64_t delay = AUTH_DELAY_FIRST;

	for (; failed > 1 && delay < AUTH_DELAY_MOST; failed--)
		delay *= 2;
	return failed == 0 ? 0 : delay < AUTH_DELAY_MOST ? delay : AUTH_DELAY_MOST;
}

/* --- one AUTH --- */

static struct span auth_user(const struct auth *auth)
{
	return (struct span){auth->text, auth->user_n};
}

static void auth_enter(struct auth_list *list, struct auth *auth)
{
	auth->in = list;
	TAILQ_INSERT_TAIL(list, auth, next);
}

static void auth_leave(struct auth *auth)
{
	TAILQ_REMOVE(auth->in, auth, next);
	auth->in = NULL;
}

static void auth_free(struct commander *x, struct auth *auth)
{
	heap_cancel(&x->core->timers, &auth->timer);
	asker_leave(x->auths, auth->origin);
	pool_put(&x->engine->table.pendings, auth->pending);
	explicit_bzero(auth->text, auth->user_n + auth->secret_n);
	mem_free(auth);
}

static void auth_succeeds(struct commander *x, struct session *s, const struct auth *auth)
{
	struct identity *who = session_identity(s);
	struct reply r;

	mem_free(who->user);
	who->user = mem_copy(auth->text, auth->user_n);
	who->failed = 0;
	user_leave(s->user); /* what it locks from now on is among the RECENT names of this user */
	s->user = NULL;
	core_answers(x->core, VERB_AUTH);
	reply_begin(&r, session_line(x->sessions), span_of(auth->pending->tag), "OK");
	reply_text(&r, "user", span_of(who->user));
	tell_line(x, s, &r);
}

static void auth_fails(struct commander *x, struct session *s, const struct auth *auth)
{
	unsigned failed = ++session_identity(s)->failed;
	char who[WHO_MAX];

	if (core_may_log(x->core, BURST_AUTH))
		core_log(x->core, LOG_WARN, "auth-failed", "peer=%s session=%" PRIu64 " failures=%u",
		         core_quoted(x->core, (struct span){who, session_who(s, who)}), s->serial, failed);
	core_answers(x->core, VERB_AUTH);
	if (failed < AUTH_FAILURES_MOST) {
		tell_error(x, s, span_of(auth->pending->tag), ERROR_AUTH, "no user of that name has that secret");
		return;
	}
	tell_error(x, s, span_of(auth->pending->tag), ERROR_AUTH, "no user of that name has that secret; this was failure %u: hanging up", failed);
	session_ended(x->sessions, s, "auth");
	session_hang_up(x->sessions, s, "auth");
	s->over = true;
}

static void auth_answer(struct commander *x, struct auth *auth)
{
	struct session *s = auth->pending->session;
	bool tagged = auth->pending->tag[0] != '\0';

	TAILQ_REMOVE(&s->pendings, auth->pending, in_session);
	if (!s->over)
		(auth->ok ? auth_succeeds : auth_fails)(x, s, auth);
	session_answered(x->sessions, s, tagged && !s->over);
	auth_free(x, auth);
}

static struct instant auth_due(struct commander *x, const struct auth *auth)
{
	const struct session *s = auth->pending->session;
	unsigned own = s->identity ? s->identity->failed : 0, before;

	before = suspect_failures(&x->auths->suspects, asker_span(auth->origin), auth_user(auth), x->core->now);
	return instant_add(auth->asked_at, delay_of(own > before ? own : before));
}

/* What costs no verification is not remembered: else a flood of it would make the daemon forget who has failed. */
static void auth_count(struct commander *x, const struct auth *auth, bool ok)
{
	metric_add(&x->core->metrics, METRIC_AUTH_FAILED, !ok);
	if (!ok && auth->verified)
		suspect_failed(&x->auths->suspects, asker_span(auth->origin), auth_user(auth), x->core->now);
}

static void auth_decided(struct commander *x, struct auth *auth, bool ok)
{
	struct instant due = auth_due(x, auth);

	auth->ok = ok;
	auth_count(x, auth, ok);
	if (instant_before(x->core->now, due)) {
		auth_enter(&x->auths->decided, auth);
		heap_set(&x->core->timers, &auth->timer, due);
	} else {
		auth_answer(x, auth);
	}
}

void auth_fired(struct commander *x, struct timer *t)
{
	struct auth *auth = container_of(t, struct auth, timer);

	auth_leave(auth);
	auth_answer(x, auth);
}

/* --- verification --- */

static void auth_verify(struct commander *x, struct auth *auth)
{
	struct effect *effect = effects_add(x->core->out, EFFECT_VERIFY);
	char *copy = arena_copy(&x->core->out->arena, auth->text, auth->user_n + auth->secret_n);

	effect->verify.number = ++x->auths->number;
	effect->verify.user = (struct span){copy, auth->user_n};
	effect->verify.secret = copy + auth->user_n;
	effect->verify.secret_n = auth->secret_n;
	x->auths->verified = auth;
	auth->verified = true;
	explicit_bzero(auth->text + auth->user_n, auth->secret_n);
}

/* Takes it off the lists of its origin. */
static void auth_wait_over(struct auths *a, struct auth *auth)
{
	auth_leave(auth);
	if (!asker_first(auth->origin))
		TAILQ_REMOVE(&a->turns, auth->origin, in_turns);
}

static void auths_next(struct commander *x)
{
	struct auths *a = x->auths;
	struct asker *o = TAILQ_FIRST(&a->turns);
	struct auth *auth;

	if (a->verified || !o)
		return;
	TAILQ_REMOVE(&a->turns, o, in_turns);
	TAILQ_INSERT_TAIL(&a->turns, o, in_turns);
	auth = asker_first(o);
	auth_wait_over(a, auth);
	auth_verify(x, auth);
}

void auth_verified(struct commander *x, uint64_t number, bool ok)
{
	struct auths *a = x->auths;
	struct auth *auth = a ? a->verified : NULL;

	if (!auth || number != a->number)
		return;
	a->verified = NULL;
	if (auth->pending->session) {
		auth_decided(x, auth, ok);
	} else {
		auth_count(x, auth, ok);
		auth_free(x, auth);
	}
	auths_next(x);
}

void auth_drop(struct commander *x, struct auth *auth)
{
	if (!auth->in)
		return;
	if (auth->in == &x->auths->decided)
		auth_leave(auth);
	else
		auth_wait_over(x->auths, auth);
	auth_free(x, auth);
}

/* --- the request --- */

/* The bytes of the line are ours until it is served. */
static void request_wipe(struct request *q)
{
	explicit_bzero((char *)(uintptr_t)q->word[1].p, q->word[1].n); /* NOLINT(performance-no-int-to-ptr) */
}

static struct auth *auth_new(struct commander *x, struct session *s)
{
	struct span user = x->request.word[0], secret = x->request.word[1];
	char name[PEER_ORIGIN_MAX];
	size_t n = asker_name(s, name);
	struct auth *auth = mem_alloc(sizeof(*auth) + user.n + secret.n);

	auth->timer.kind = TIMER_AUTH;
	auth->asked_at = x->core->now;
	auth->user_n = user.n;
	auth->secret_n = secret.n;
	memcpy(auth->text, user.p, user.n);
	memcpy(auth->text + user.n, secret.p, secret.n);
	auth->origin = asker_find_or_add(auths_of(x), name, n);
	auth->origin->refs++;
	auth->pending = pending_of_request(x, s, NULL);
	auth->pending->auth = auth;
	return auth;
}

static bool auth_is_under_way(const struct session *s)
{
	const struct pending *p;

	TAILQ_FOREACH(p, &s->pendings, in_session)
		if (p->verb == VERB_AUTH)
			return true;
	return false;
}

/* Without users it fails as with a wrong secret. A name that no file of users can have needs no verification. */
void serve_AUTH(struct commander *x, struct session *s)
{
	struct request *q = &x->request;
	struct auth *auth;

	if (auth_is_under_way(s)) {
		request_wipe(q);
		tell_mistake(x, s, ERROR_LIMIT, "another AUTH of this session is not answered yet");
		return;
	}
	auth = auth_new(x, s);
	request_wipe(q);
	if (!x->core->conf.users || q->word[0].n == 0 || memchr(q->word[0].p, '\0', q->word[0].n) || q->word[0].n + q->word[1].n > AUTH_TEXT_MAX) {
		auth_decided(x, auth, false);
		return;
	}
	if (!asker_first(auth->origin))
		TAILQ_INSERT_TAIL(&x->auths->turns, auth->origin, in_turns);
	if (suspect_failures(&x->auths->suspects, asker_span(auth->origin), auth_user(auth), x->core->now) == 0)
		auth_enter(&auth->origin->waiting, auth);
	else
		auth_enter(&auth->origin->suspected, auth);
	auths_next(x);
}

/* --- the end --- */

/* The last of its AUTHs takes the origin with it. */
void auths_free(struct commander *x)
{
	struct auths *a = x->auths;
	struct asker *o;
	struct auth *auth;

	if (!a)
		return;
	if (a->verified)
		auth_free(x, a->verified);
	while ((auth = TAILQ_FIRST(&a->decided))) {
		auth_leave(auth);
		auth_free(x, auth);
	}
	while ((o = TAILQ_FIRST(&a->turns))) {
		auth = asker_first(o);
		auth_wait_over(a, auth);
		auth_free(x, auth);
	}
	suspects_release(&a->suspects);
	map_release(&a->origins);
	mem_free(a);
	x->auths = NULL;
}
