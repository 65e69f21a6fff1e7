/* SPDX-License-Identifier: BSD-2-Clause */
/* See wait_graph.h. */
#include "daemon/core/deadlock/wait_graph.h"

#include "daemon/base/map.h"
#include "daemon/base/mem.h"
#include "daemon/base/netstring.h"
#include "daemon/core/engine/holding.h"
#include "daemon/core/lock/claim.h"
#include "daemon/core/reply/send.h"
#include "daemon/core/session/client.h"
#include "daemon/core/session/group.h"
#include "proto/proto.h"

#include <string.h>
#include <sys/queue.h>

/* The time depends only on the number of rows. */

#define EDGES_MOST 2048

/* An owner wants a name, or has it. */
struct graph_edge {
	LIST_ENTRY(graph_edge) of_owner, of_name;
	struct graph_owner *owner;
	struct graph_name *name;
	struct graph_request *request; /* of a want; NULL: it is a hold … */
	int64_t count;                 /* … of this many permits */
};
LIST_HEAD(graph_edges, graph_edge);

struct graph_request {
	struct graph_owner *owner;
	bool granted;
};

struct owner_id {
	int64_t daemon, session, owner;
};

struct graph_owner {
	struct map_node node;
	struct owner_id id;
	struct span daemon;
	int64_t place;
	struct graph_edges wants, holds;
	unsigned lacks;           /* how many of its requests cannot be granted; 0: it goes on */
	struct graph_owner *then; /* if it goes on: the next owner that does, and whose holds are not free yet */
	struct graph_owner *next; /* otherwise: the owner that it waits for … */
	struct graph_edge *by;    /* … because of this want */
	unsigned seen;
};

/* A lock is a semaphore with one permit. */
struct graph_name {
	struct map_node node;
	struct span name;
	bool permits;
	bool open;                       /* every owner that wants it gets it */
	int64_t limit, taken;            /* taken: by owners that do not go on */
	struct graph_edges wants, holds; /* holds: of owners that do not go on */
};

struct wait_graph {
	struct map by_id, by_name;
	struct graph_owner owner[EDGES_MOST], *going;
	struct graph_request request[EDGES_MOST];
	struct graph_edge edge[EDGES_MOST + WORDS_MAX];
	struct graph_name name[EDGES_MOST + WORDS_MAX];
	unsigned owners, requests, edges, names;
};

/* --- rows --------------------------------------------------------------------------------------------------------- */

void row_put(struct buf *rows, const struct wait_row *r)
{
	struct buf words = {0};

	netstring_put(&words, (struct span){&r->kind, 1});
	netstring_put_int(&words, r->session);
	netstring_put_int(&words, r->owner);
	netstring_put_int(&words, r->place);
	netstring_put_int(&words, r->count);
	buf_append(&words, r->names.p, r->names.n);
	netstring_put(rows, (struct span){buf_begin(&words), buf_length(&words)});
	buf_release(&words);
}

static bool row_permits(const struct wait_row *r)
{
	return r->kind == 'p' || r->kind == 's';
}

static bool row_is_sound(const struct wait_row *r)
{
	struct span names = r->names, name;
	unsigned n = 0;

	while (netstring_next(&names, &name) && name.n <= NAME_MAX_BYTES)
		n++;
	return names.n == 0 && n > 0 && n <= (r->kind == 'w' ? WORDS_MAX : 1) && r->count > 0 && r->count <= (row_permits(r) ? LIMIT_MOST : 1);
}

static bool row_read(struct span row, struct wait_row *ret_row)
{
	struct span kind;

	if (!netstring_next(&row, &kind) || kind.n != 1 || !memchr("whps", *kind.p, 4))
		return false;
	ret_row->kind = *kind.p;
	if (!netstring_next_int(&row, &ret_row->session) || !netstring_next_int(&row, &ret_row->owner) || !netstring_next_int(&row, &ret_row->place) ||
	    !netstring_next_int(&row, &ret_row->count))
		return false;
	ret_row->names = row;
	return row_is_sound(ret_row);
}

bool row_next(struct span *rows, struct wait_row *ret_row)
{
	struct span row;

	while (netstring_next(rows, &row))
		if (row_read(row, ret_row))
			return true;
	return false;
}

/* --- owners and names --------------------------------------------------------------------------------------------- */

static bool owner_is(const struct map_node *node, const void *id, size_t n)
{
	return memcmp(&container_of(node, struct graph_owner, node)->id, id, n) == 0;
}

static struct graph_owner *graph_owner(struct wait_graph *g, struct span daemon, const struct owner_id *id)
{
	uint64_t hash = map_hash(&g->by_id, id, sizeof(*id));
	struct map_node *node = map_find(&g->by_id, hash, id, sizeof(*id), owner_is);
	struct graph_owner *o;

	if (node)
		return container_of(node, struct graph_owner, node);
	o = &g->owner[g->owners++];
	o->id = *id;
	o->daemon = daemon;
	map_insert(&g->by_id, &o->node, hash);
	return o;
}

static bool name_is(const struct map_node *node, const void *name, size_t n)
{
	return span_equal(container_of(node, struct graph_name, node)->name, (struct span){name, n});
}

/* A lock and a semaphore may have the same name. */
static struct graph_name *graph_name(struct wait_graph *g, struct span name, bool permits)
{
	uint64_t hash = map_hash(&g->by_name, name.p, name.n) ^ permits;
	struct map_node *node = map_find(&g->by_name, hash, name.p, name.n, name_is);
	struct graph_name *n;

	if (node)
		return container_of(node, struct graph_name, node);
	n = &g->name[g->names++];
	n->name = name;
	n->permits = permits;
	map_insert(&g->by_name, &n->node, hash);
	return n;
}

static void graph_add_edge(struct wait_graph *g, struct graph_owner *o, struct graph_name *n, struct graph_request *q, int64_t count)
{
	struct graph_edge *e = &g->edge[g->edges++];

	*e = (struct graph_edge){.owner = o, .name = n, .request = q, .count = count};
	LIST_INSERT_HEAD(q ? &o->wants : &o->holds, e, of_owner);
	LIST_INSERT_HEAD(q ? &n->wants : &n->holds, e, of_name);
	if (!q)
		n->taken += count;
	else if (count > n->limit)
		n->limit = count;
}

static struct graph_request *graph_add_request(struct wait_graph *g, struct graph_owner *o, int64_t place)
{
	struct graph_request *q = &g->request[g->requests++];

	q->owner = o;
	o->place = o->lacks == 0 || place > o->place ? place : o->place;
	o->lacks++;
	return q;
}

static void graph_add(struct wait_graph *g, struct graph_owner *o, const struct wait_row *r)
{
	bool waits = r->kind == 'w' || r->kind == 'p';
	struct graph_request *q = waits ? graph_add_request(g, o, r->place) : NULL;
	struct span names = r->names, name;

	while (netstring_next(&names, &name))
		graph_add_edge(g, o, graph_name(g, name, row_permits(r)), q, r->count);
}

/* Stops when the graph has `most` edges. */
static void graph_read(struct wait_graph *g, int64_t number, struct span daemon, struct span rows, unsigned most)
{
	struct wait_row r;

	while (g->edges < most && row_next(&rows, &r))
		graph_add(g, graph_owner(g, daemon, &(struct owner_id){number, r.session, r.owner}), &r);
}

/* Each daemon gets its share of the edges, plus what earlier daemons left unused. */
struct wait_graph *wait_graph_new(struct span text, const uint64_t key[2], unsigned *ret_daemons)
{
	struct wait_graph *g = mem_alloc(sizeof(*g));
	struct span rest, daemon, rows;
	unsigned daemons = 0, number = 0;

	map_init(&g->by_id, key);
	map_init(&g->by_name, key);
	for (rest = text; netstring_next(&rest, &daemon) && netstring_next(&rest, &rows);)
		daemons++;
	for (rest = text; number < daemons && netstring_next(&rest, &daemon) && netstring_next(&rest, &rows); number++)
		graph_read(g, number, daemon, rows, (unsigned)(EDGES_MOST * (uint64_t)(number + 1) / daemons));
	*ret_daemons = daemons > 0 ? daemons : 1;
	return g;
}

void wait_graph_free(struct wait_graph *g)
{
	map_release(&g->by_id);
	map_release(&g->by_name);
	mem_free(g);
}

/* --- who goes on -------------------------------------------------------------------------------------------------- */

static void owner_goes_on(struct wait_graph *g, struct graph_owner *o)
{
	o->then = g->going;
	g->going = o;
}

static void request_granted(struct wait_graph *g, struct graph_request *q)
{
	if (q->granted)
		return;
	q->granted = true;
	if (--q->owner->lacks == 0)
		owner_goes_on(g, q->owner);
}

/* Its only owner among those that do not go on; NULL: there are several. */
static struct graph_owner *name_only_holder(const struct graph_name *n)
{
	const struct graph_edge *first = LIST_FIRST(&n->holds), *e = first;

	while (e && e->owner == first->owner)
		e = LIST_NEXT(e, of_name);
	return first && !e ? first->owner : NULL;
}

/* Nobody waits for itself alone. The modes do not matter: a reader waits for readers only if a writer precedes it, and that writer waits for them. */
static void name_look(struct wait_graph *g, struct graph_name *n)
{
	bool open = n->taken < n->limit;
	const struct graph_owner *only = open ? NULL : name_only_holder(n);
	struct graph_edge *e;

	if (n->open || (!open && !only))
		return;
	n->open = open;
	LIST_FOREACH(e, &n->wants, of_name)
		if (open || e->owner == only)
			request_granted(g, e->request);
}

static void owner_frees(struct wait_graph *g, struct graph_owner *o)
{
	struct graph_edge *e;

	LIST_FOREACH(e, &o->holds, of_owner) {
		e->name->taken -= e->count;
		LIST_REMOVE(e, of_name);
		name_look(g, e->name);
	}
}

static void graph_reduce(struct wait_graph *g)
{
	struct graph_owner *o;

	for (unsigned i = 0; i < g->owners; i++)
		if (g->owner[i].lacks == 0)
			owner_goes_on(g, &g->owner[i]);
	for (unsigned i = 0; i < g->names; i++)
		name_look(g, &g->name[i]);
	while ((o = g->going)) {
		g->going = o->then;
		owner_frees(g, o);
	}
}

/* --- circles ------------------------------------------------------------------------------------------------------ */

/* Each owner that does not go on waits for another one. */
static struct graph_owner *owner_follow(struct graph_owner *o)
{
	struct graph_edge *want, *hold;

	LIST_FOREACH(want, &o->wants, of_owner) {
		if (want->request->granted)
			continue;
		LIST_FOREACH(hold, &want->name->holds, of_name) {
			if (hold->owner == o)
				continue;
			o->by = want;
			return o->next = hold->owner;
		}
	}
	return NULL;
}

static bool owner_came_later(const struct graph_owner *a, const struct graph_owner *b)
{
	return a->place != b->place ? a->place > b->place : memcmp(&a->id, &b->id, sizeof(a->id)) > 0;
}

static const struct graph_owner *circle_last(const struct graph_owner *first)
{
	const struct graph_owner *last = first;

	for (const struct graph_owner *o = first->next; o != first; o = o->next)
		if (owner_came_later(o, last))
			last = o;
	return last;
}

/* Each walk ends in a circle, or at an owner that an earlier walk has visited. */
unsigned wait_graph_find(struct wait_graph *g, struct span daemon, struct victim ret_victims[VICTIMS_MOST])
{
	unsigned victims = 0;

	graph_reduce(g);
	for (unsigned i = 0; i < g->owners && victims < VICTIMS_MOST; i++) {
		struct graph_owner *at = &g->owner[i];
		const struct graph_owner *last;

		while (at && at->lacks > 0 && at->seen == 0) {
			at->seen = i + 1;
			at = owner_follow(at);
		}
		if (!at || at->seen != i + 1)
			continue;
		last = circle_last(at);
		if (span_equal(last->daemon, daemon))
			ret_victims[victims++] =
				(struct victim){last->id.session, last->id.owner, last->by->name->name, last->by->name->permits, last};
	}
	return victims;
}

/* --- its text ----------------------------------------------------------------------------------------------------- */

struct text {
	const struct victim *victim;
	circle_shows *shows;
	const void *about;
	struct buf *out;
};

/* The host in the id of a daemon. */
static struct span owner_host(const struct graph_owner *o)
{
	const char *dot = memchr(o->daemon.p, '.', o->daemon.n);
	struct span host = dot ? (struct span){dot + 1, o->daemon.n - (size_t)(dot + 1 - o->daemon.p)} : o->daemon;

	return host.n < 64 ? host : (struct span){host.p, 63};
}

/* Writes "name@host" and what follows it. Returns the number of bytes. */
static size_t step_put(const struct text *t, const struct graph_owner *o, const char *after)
{
	struct span name = o->by->name->name, host = owner_host(o->next);
	size_t before = buf_length(t->out);

	if (o != t->victim->of && !t->shows(t->about, name))
		name = SPAN("...");
	buf_append(t->out, name.p, name.n);
	buf_append(t->out, "@", 1);
	buf_append(t->out, host.p, host.n);
	buf_append(t->out, after, strlen(after));
	return buf_length(t->out) - before;
}

/* When the rest does not fit, dots replace all but the last step. */
void wait_graph_write(const struct victim *v, circle_shows *shows, const void *about, struct buf *out, size_t most)
{
	const struct text t = {v, shows, about, out};
	size_t last = step_put(&t, v->of, "<-") + sizeof("...");

	for (const struct graph_owner *o = v->of->next; o != v->of; o = o->next) {
		size_t n = step_put(&t, o, "<-");

		if (buf_length(out) + last <= most)
			continue;
		out->end -= n;
		buf_append(out, "...<-", 5);
		break;
	}
	step_put(&t, v->of, "");
}

/* A walk is depth-first, and looks at a limited number of claims, requests and names. */

#define LOOKS_MOST 1024
#define STEPS_MOST 64

struct walk {
	struct request_context *x;
	const struct session *s; /* the owner that asks */
	struct span owner;
	struct span name[STEPS_MOST]; /* the name it asks for, the name for which the holder of that waits, … */
	unsigned steps;
	unsigned looks;
};

static bool walk_name(struct walk *w, struct span name);

static bool walk_may_look(struct walk *w)
{
	return w->looks++ < LOOKS_MOST;
}

static bool group_waits_for_all(const struct group *g, struct span owner)
{
	return !g->any && g->bid.patient && !g->bid.leaving && !g->bid.withdrawn && span_equal(g->bid.owner, owner);
}

/* A reader need not wait for readers that hold the name. */
static bool name_is_open(const struct walk *w, struct span name, bool shared, unsigned priority)
{
	const struct lock *l = shared ? lock_find(&w->x->engine->table, name) : NULL;

	return l && holders_are_open(w->x->engine, l, priority);
}

static bool walk_group(struct walk *w, struct group *g)
{
	for (unsigned i = 0; i < g->parts && walk_may_look(w); i++) {
		const struct part *p = &g->part[i];

		if (!part_is_had(w->x, g, p) && !name_is_open(w, p->name, g->shared, g->bid.priority) && walk_name(w, p->name))
			return true;
	}
	return false;
}

/* Whether the walk from this owner leads back to the one that asks. */
static bool walk_owner(struct walk *w, struct session *s, struct span owner)
{
	struct claim *c;
	struct group *g;

	if (s->over || s->waiting == 0)
		return false;
	TAILQ_FOREACH(c, &s->claims, in_session) {
		if (!walk_may_look(w))
			return false;
		if (c->state == CLAIM_WAITING && c->patient && !c->ending && !c->leaving && span_equal(claim_owner(c), owner) &&
		    !lock_holder_of(c->lock, s, owner) && walk_name(w, lock_name(c->lock)))
			return true;
	}
	GROUPS_FOREACH(g, s) {
		if (!walk_may_look(w))
			return false;
		if (group_waits_for_all(g, owner) && walk_group(w, g))
			return true;
	}
	return false;
}

/* What a LOCKALL of the owner has got does not block other requests of the owner. */
static bool walk_holder(struct walk *w, const struct claim *c)
{
	struct session *s = c->session->principal ? c->session->principal : c->session;

	if (c->ending)
		return false;
	if (s == w->s && span_equal(claim_owner(c), w->owner))
		return s == c->session || w->steps > 1;
	return walk_owner(w, s, claim_owner(c));
}

static bool walk_name(struct walk *w, struct span name)
{
	const struct lock *l = lock_find(&w->x->engine->table, name);

	if (!l || l->lease.limit > 0 || w->steps == STEPS_MOST)
		return false;
	w->name[w->steps++] = name;
	for (const struct claim *c = l->holder; c && walk_may_look(w); c = lock_next_holder(l, c))
		if (walk_holder(w, c))
			return true;
	w->steps--;
	return false;
}

static void local_circle_put(const struct walk *w, unsigned step, struct buf *out)
{
	struct span name = step == 0 || session_knows(w->x->core, w->s, w->name[step]) ? w->name[step] : SPAN("...");

	buf_append(out, name.p, name.n);
}

/* When the rest does not fit, dots replace all but the last name. */
static void local_circle_write(const struct walk *w, struct buf *out)
{
	local_circle_put(w, 0, out);
	for (unsigned i = 1; i < w->steps; i++) {
		buf_append(out, "<-", 2);
		if (buf_length(out) + w->name[i].n + w->name[0].n + sizeof("<-...<-") > CIRCLE_MAX) {
			buf_append(out, "...", 3);
			break;
		}
		local_circle_put(w, i, out);
	}
	buf_append(out, "<-", 2);
	local_circle_put(w, 0, out);
}

bool local_circle_is_refused(struct request_context *x, struct session *s, const struct span *names, unsigned n)
{
	const struct request *q = &x->request;
	struct walk w = {.x = x, .s = s, .owner = request_owner(q)};
	bool closes = false;
	struct buf text = {0};

	for (unsigned i = 0; i < n && (s->held > 0 || !TAILQ_EMPTY(&s->bids[BID_GROUP])) && !closes; i++) {
		const struct lock *l = lock_find(&x->engine->table, names[i]);

		closes = l && !lock_holder_of(l, s, w.owner) && !name_is_open(&w, names[i], request_is_shared(q), request_priority(q)) &&
		         walk_name(&w, names[i]);
	}
	if (!closes)
		return false;
	local_circle_write(&w, &text);
	send_deadlock(x, s, q->tag, (struct span){buf_begin(&text), buf_length(&text)});
	buf_release(&text);
	return true;
}
