/* SPDX-License-Identifier: BSD-2-Clause */
/* See rights.h. Never log a word of a request: people type secrets in the place of names. */
#include "daemon/core/rights/rights.h"

#include "daemon/base/mem.h"
#include "daemon/base/peer.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/session/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

TAILQ_HEAD(auth_list, auth);

TAILQ_HEAD(asked_users, asked_user);

/* The origin of AUTHs. It exists while it has AUTHs. */
struct asker {
	struct map_node by_name;
	TAILQ_ENTRY(asker) in_turns; /* if some of its AUTHs wait to be answered */
	struct asked_users line;     /* users whose AUTHs wait; they take turns */
	struct asked_users early;    /* those of them who exist, if one of their secrets is not verified yet */
	unsigned refs; /* how many AUTHs it has */
	size_t n;
	char name[PEER_ORIGIN_MAX];
};

/* A user whom AUTHs of one origin name, whether he exists or not. It exists while one of them waits. */
struct asked_user {
	struct map_node by_name;
	TAILQ_ENTRY(asked_user) in_line, in_early;
	struct auth_list waiting;
	unsigned waiting_n; /* at most AUTHS_OF_USER_MOST */
	struct auth *early; /* the first of them whose secret is not verified yet; NULL: none, or there is no such user */
	struct asker *origin;
	size_t n;
	char name[];
};

/* One AUTH. It ends with its session, unless a verification that is under way answers it. */
struct auth {
	TAILQ_ENTRY(auth) next;
	struct auth_list *in; /* asked_user.waiting, or auths.decided; NULL: auths.answered */
	struct timer timer;
	struct pending *pending;
	struct asker *origin;
	struct asked_user *user; /* while it waits */
	struct instant asked_at;
	bool costly, ok; /* costly: a verification has answered it */
	size_t user_n, secret_n;
	char text[]; /* user, then secret */
};

struct auths {
	struct map origins; /* by name */
	struct map users;   /* by origin and name */
	struct suspects suspects;
	TAILQ_HEAD(, asker) turns;
	struct auth_list decided; /* decided, but answered later */
	struct auth *answered; /* the AUTH that the verification under way answers; NULL: none is under way */
	struct auth *early;    /* another AUTH, whose secret is being verified; NULL: it is gone, or … */
	bool own;              /* … the secret of `answered` is being verified */
	uint64_t number;
};

static struct auths *auths_of(struct request_context *x)
{
	struct auths *a = x->auths;

	if (a)
		return a;
	a = x->auths = mem_alloc(sizeof(*a));
	map_init(&a->origins, (const uint64_t[2]){rng_next(&x->core->rng), rng_next(&x->core->rng)});
	map_init(&a->users, a->origins.key);
	suspects_init(&a->suspects, (const uint64_t[2]){rng_next(&x->core->rng), rng_next(&x->core->rng)});
	TAILQ_INIT(&a->turns);
	TAILQ_INIT(&a->decided);
	return a;
}

/* --- origins --- */

MAP_MATCH(asker_matches, struct asker, by_name, name, n)

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
	TAILQ_INIT(&o->line);
	TAILQ_INIT(&o->early);
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

static void auth_free(struct request_context *x, struct auth *auth)
{
	heap_cancel(&x->core->timers, &auth->timer);
	asker_leave(x->auths, auth->origin);
	pending_free(&x->engine->table.pendings, auth->pending);
	explicit_bzero(auth->text, auth->user_n + auth->secret_n);
	mem_free(auth);
}

static void auth_succeeds(struct request_context *x, struct session *s, const struct auth *auth)
{
	struct identity *who = session_identity(s);
	struct reply r;

	mem_free(who->user);
	who->user = mem_copy(auth->text, auth->user_n);
	who->failed = 0;
	user_leave(s->user); /* the names that it locks from now on are among the RECENT names of this user */
	s->user = NULL;
	core_answers(x->core, VERB_AUTH);
	reply_begin(&r, session_line(x->sessions), span_of(auth->pending->tag), "OK");
	reply_text(&r, "user", span_of(who->user));
	send_line(x, s, &r);
}

static void auth_fails(struct request_context *x, struct session *s, const struct auth *auth)
{
	unsigned failed = ++session_identity(s)->failed;
	char who[WHO_MAX];

	if (core_may_log(x->core, BURST_AUTH))
		core_log(x->core, LOG_WARN, "auth-failed", "peer=%s session=%" PRIu64 " failures=%u",
		         core_quoted(x->core, (struct span){who, session_who(s, who)}), s->serial, failed);
	core_answers(x->core, VERB_AUTH);
	if (failed < AUTH_FAILURES_MOST) {
		send_error(x, s, span_of(auth->pending->tag), ERROR_AUTH, "no user of that name has that secret");
		return;
	}
	send_error(x, s, span_of(auth->pending->tag), ERROR_AUTH, "no user of that name has that secret; this was failure %u: hanging up", failed);
	session_ended(x->sessions, s, "auth");
	session_hang_up(x->sessions, s, "auth");
	s->over = true;
}

static void auth_refused(struct request_context *x, struct session *s, const struct auth *auth)
{
	send_error(x, s, span_of(auth->pending->tag), ERROR_LIMIT, "at most %d AUTHs of one user and peer may wait, and this was the oldest: repeat it",
	           AUTHS_OF_USER_MOST);
}

static void auth_end(struct request_context *x, struct auth *auth, void (*answer)(struct request_context *, struct session *, const struct auth *))
{
	struct session *s = auth->pending->session;
	bool tagged = auth->pending->tag[0] != '\0';

	TAILQ_REMOVE(&s->pendings, auth->pending, in_session);
	if (!s->over)
		answer(x, s, auth);
	session_answered(x->sessions, s, tagged && !s->over);
	auth_free(x, auth);
}

static void auth_answer(struct request_context *x, struct auth *auth)
{
	auth_end(x, auth, auth->ok ? auth_succeeds : auth_fails);
}

static struct instant auth_due(struct request_context *x, const struct auth *auth)
{
	const struct session *s = auth->pending->session;
	unsigned own = s->identity ? s->identity->failed : 0, before;

	before = suspect_failures(&x->auths->suspects, asker_span(auth->origin), auth_user(auth), x->core->now);
	return instant_add(auth->asked_at, delay_of(own > before ? own : before));
}

/* An AUTH without a verification is not remembered. Otherwise a flood of them would make the daemon forget who has failed. */
static void auth_count(struct request_context *x, const struct auth *auth, bool ok)
{
	metric_add(&x->core->metrics, METRIC_AUTH_FAILED, !ok);
	if (!ok && auth->costly)
		suspect_failed(&x->auths->suspects, asker_span(auth->origin), auth_user(auth), x->core->now);
}

static void auth_decided(struct request_context *x, struct auth *auth, bool ok)
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

void auth_fired(struct request_context *x, struct timer *t)
{
	struct auth *auth = container_of(t, struct auth, timer);

	auth_leave(auth);
	auth_answer(x, auth);
}

/* --- lines --- */

struct user_key {
	const struct asker *origin;
	struct span name;
};

static bool user_matches(const struct map_node *node, const void *key, size_t n)
{
	const struct asked_user *u = container_of(node, struct asked_user, by_name);
	const struct user_key *k = key;

	(void)n;
	return u->origin == k->origin && span_equal((struct span){u->name, u->n}, k->name);
}

static struct asked_user *user_find_or_add(struct auths *a, struct asker *o, struct span name)
{
	uint64_t hash = map_hash(&a->users, name.p, name.n) ^ o->by_name.hash;
	struct map_node *node = map_find(&a->users, hash, &(struct user_key){o, name}, sizeof(struct user_key), user_matches);
	struct asked_user *u;

	if (node)
		return container_of(node, struct asked_user, by_name);
	u = mem_alloc(sizeof(*u) + name.n);
	TAILQ_INIT(&u->waiting);
	u->origin = o;
	u->n = name.n;
	memcpy(u->name, name.p, name.n);
	map_insert(&a->users, &u->by_name, hash);
	if (TAILQ_EMPTY(&o->line))
		TAILQ_INSERT_TAIL(&a->turns, o, in_turns);
	TAILQ_INSERT_TAIL(&o->line, u, in_line);
	return u;
}

static int user_name_compare(const void *a, const void *b)
{
	return span_compare(*(const struct span *)a, *(const struct span *)b);
}

static bool user_exists(const struct core *c, struct span name)
{
	const struct user_names *known = c->conf.user_names;

	return known && bsearch(&name, known->name, known->count, sizeof(name), user_name_compare);
}

static void line_enter(struct request_context *x, struct auth *auth)
{
	struct asked_user *u = auth->user = user_find_or_add(x->auths, auth->origin, auth_user(auth));

	auth_enter(&u->waiting, auth);
	u->waiting_n++;
	if (u->early || !user_exists(x->core, auth_user(auth)))
		return;
	u->early = auth;
	TAILQ_INSERT_TAIL(&u->origin->early, u, in_early);
}

/* The first unverified secret of this user is about to be verified, or is gone. */
static void early_advance(struct asked_user *u)
{
	u->early = TAILQ_NEXT(u->early, next);
	if (!u->early)
		TAILQ_REMOVE(&u->origin->early, u, in_early);
}

static void line_leave(struct auths *a, struct auth *auth)
{
	struct asked_user *u = auth->user;
	struct asker *o = u->origin;

	if (u->early == auth)
		early_advance(u);
	auth_leave(auth);
	auth->user = NULL;
	if (--u->waiting_n > 0)
		return;
	TAILQ_REMOVE(&o->line, u, in_line);
	map_remove(&a->users, &u->by_name);
	mem_free(u);
	if (TAILQ_EMPTY(&o->line))
		TAILQ_REMOVE(&a->turns, o, in_turns);
}

/* Keeps the newest, because only so many others are verified before it. The oldest may have been found wrong, and wait to be told so in its turn. */
static void line_shorten(struct request_context *x, struct asked_user *u)
{
	struct auth *oldest = TAILQ_FIRST(&u->waiting);

	if (u->waiting_n <= AUTHS_OF_USER_MOST)
		return;
	if (oldest == x->auths->early)
		x->auths->early = NULL;
	line_leave(x->auths, oldest);
	auth_end(x, oldest, auth_refused);
}

/* --- verification --- */

static void auth_verify(struct request_context *x, const struct auth *auth)
{
	struct effect *effect = effects_add(x->core->out, EFFECT_VERIFY);
	char *copy = arena_copy(&x->core->out->arena, auth->text, auth->user_n + auth->secret_n);

	effect->verify.number = ++x->auths->number;
	effect->verify.user = (struct span){copy, auth->user_n};
	effect->verify.secret = copy + auth->user_n;
	effect->verify.secret_n = auth->secret_n;
}

struct instant auth_asks(const struct auth *auth, struct span *ret_user, struct span *ret_secret)
{
	*ret_user = auth_user(auth);
	*ret_secret = (struct span){auth->text + auth->user_n, auth->secret_n};
	return auth->asked_at;
}

/* Chooses the secret that is verified while `first`, the first of the line, is answered: see rights.h. */
static struct auth *auth_pick(const struct asker *o, struct auth *first)
{
	struct asked_user *u = first->user->early == first ? first->user : TAILQ_FIRST(&o->early);
	struct auth *early = u ? u->early : NULL;

	if (!early)
		return first;
	TAILQ_REMOVE(&u->origin->early, u, in_early);
	TAILQ_INSERT_TAIL(&u->origin->early, u, in_early);
	early_advance(u);
	return early;
}

static void auths_next(struct request_context *x)
{
	struct auths *a = x->auths;
	struct asker *o = TAILQ_FIRST(&a->turns);
	struct asked_user *u;
	struct auth *first, *verified;

	if (a->answered || !o)
		return;
	TAILQ_REMOVE(&a->turns, o, in_turns);
	TAILQ_INSERT_TAIL(&a->turns, o, in_turns);
	u = TAILQ_FIRST(&o->line);
	TAILQ_REMOVE(&o->line, u, in_line);
	TAILQ_INSERT_TAIL(&o->line, u, in_line);
	first = TAILQ_FIRST(&u->waiting);
	verified = auth_pick(o, first);
	auth_verify(x, verified);
	line_leave(a, first);
	first->costly = true;
	a->answered = first;
	a->own = verified == first;
	a->early = a->own ? NULL : verified;
}

/* The secret is wrong unless this verification was of that secret. */
static void answered_decided(struct request_context *x, struct auth *auth, bool ok)
{
	if (auth->pending->session) {
		auth_decided(x, auth, ok);
		return;
	}
	auth_count(x, auth, ok);
	auth_free(x, auth);
}

void auth_verified(struct request_context *x, uint64_t number, bool ok)
{
	struct auths *a = x->auths;
	struct auth *answered = a ? a->answered : NULL, *early;

	if (!answered || number != a->number)
		return;
	early = ok ? a->early : NULL;
	a->answered = a->early = NULL;
	if (early) {
		line_leave(a, early);
		auth_decided(x, early, true);
	}
	answered_decided(x, answered, ok && a->own);
	auths_next(x);
}

void auth_drop(struct request_context *x, struct auth *auth)
{
	struct auths *a = x->auths;

	if (auth == a->answered)
		return;
	if (auth == a->early)
		a->early = NULL;
	if (auth->user)
		line_leave(a, auth);
	else
		auth_leave(auth);
	auth_free(x, auth);
}

/* --- the request --- */

/* We may write to the bytes of the line until it is served. */
static void request_wipe(struct request *q)
{
	explicit_bzero((char *)(uintptr_t)q->word[1].p, q->word[1].n); /* NOLINT(performance-no-int-to-ptr) */
}

static struct auth *auth_new(struct request_context *x, struct session *s)
{
	struct span user = x->request.word[0], secret = x->request.word[1];
	char name[PEER_ORIGIN_MAX];
	size_t n = asker_name(s, name);
	struct auth *auth = mem_alloc(sizeof(*auth) + user.n + secret.n);

	auth->timer.kind = TIMER_AUTH;
	auth->asked_at = x->core->asked_at;
	auth->user_n = user.n;
	auth->secret_n = secret.n;
	memcpy(auth->text, user.p, user.n);
	memcpy(auth->text + user.n, secret.p, secret.n);
	auth->origin = asker_find_or_add(auths_of(x), name, n);
	auth->origin->refs++;
	auth->pending = pending_uncounted(x, s, NULL);
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

/* Without users it fails as with a wrong secret. An impossible name of a user needs no verification. */
void serve_AUTH(struct request_context *x, struct session *s)
{
	struct request *q = &x->request;
	struct auth *auth;

	if (auth_is_under_way(s)) {
		request_wipe(q);
		send_invalid(x, s, ERROR_LIMIT, "another AUTH of this session is not answered yet");
		return;
	}
	if (q->word[0].n + q->word[1].n > AUTH_TEXT_MAX) { /* nothing of it is kept, because it is refused */
		request_wipe(q);
		q->word[0] = q->word[1] = SPAN("");
	}
	auth = auth_new(x, s);
	request_wipe(q);
	if (!x->core->conf.users || q->word[0].n == 0 || memchr(q->word[0].p, '\0', q->word[0].n)) {
		auth_decided(x, auth, false);
		return;
	}
	line_enter(x, auth);
	line_shorten(x, auth->user);
	auths_next(x);
}

/* --- the end --- */

/* An origin is freed with its last AUTH. */
void auths_free(struct request_context *x)
{
	struct auths *a = x->auths;
	struct asker *o;
	struct auth *auth;

	if (!a)
		return;
	if (a->answered)
		auth_free(x, a->answered);
	while ((auth = TAILQ_FIRST(&a->decided))) {
		auth_leave(auth);
		auth_free(x, auth);
	}
	while ((o = TAILQ_FIRST(&a->turns))) {
		auth = TAILQ_FIRST(&TAILQ_FIRST(&o->line)->waiting);
		line_leave(a, auth);
		auth_free(x, auth);
	}
	suspects_release(&a->suspects);
	map_release(&a->users);
	map_release(&a->origins);
	mem_free(a);
	x->auths = NULL;
}
