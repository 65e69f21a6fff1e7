/* SPDX-License-Identifier: BSD-2-Clause */
/* See listing.h. */
#include "daemon/core/reply/listing.h"

#include "daemon/base/mem.h"
#include "daemon/core/session/client.h"
#include "daemon/core/session/semaphore.h"

#define BYTES_A_STEP ((size_t)256 << 10)

void row_begin(struct request_context *x, struct span tag, struct reply *r)
{
	reply_begin(r, session_line(x->sessions), tag, "*");
}

void row_end(struct request_context *x, struct session *s, struct reply *r)
{
	session_send_raw(x->sessions, s, r->start, reply_end(r));
}

static void rows_ended(struct request_context *x, struct reply *r, struct span tag, uint64_t n, int64_t more)
{
	reply_begin(r, session_line(x->sessions), tag, "OK");
	reply_int(r, "n", (int64_t)n);
	if (more >= 0)
		reply_int(r, "more", more);
}

void rows_done(struct request_context *x, struct session *s, struct span tag, uint64_t n, int64_t more)
{
	struct reply r;

	rows_ended(x, &r, tag, n, more);
	session_send(x->sessions, s, r.start, reply_end(&r));
}

bool rows_are_long(const struct request_context *x, size_t bytes)
{
	uint64_t most = x->core->conf.limits.output / 4;

	return most > 0 && bytes >= most;
}

bool rows_take_long(const struct request_context *x, size_t bytes)
{
	return bytes >= BYTES_A_STEP || rows_are_long(x, 4 * bytes);
}

void reply_session(const struct request_context *x, struct reply *r, const struct session *s)
{
	struct span address;

	s = s->principal ? s->principal : s;
	address = session_address(s);
	reply_int(r, "session", (int64_t)s->serial);
	if (s->label)
		reply_text(r, "name", span_of(s->label));
	if (address.n > 0)
		reply_text(r, "peer", address);
	if (s->is_unix) {
		reply_int(r, "pid", s->pid);
		reply_int(r, "uid", s->uid);
	}
	if (s->detached) {
		reply_ms(r, "detached_ms", instant_diff(x->core->now, s->lasting->detached_at));
		reply_ms(r, "grace_ms", instant_diff(s->lasting->grace.at, x->core->now));
	}
}

void reply_alarm(const struct request_context *x, struct reply *r, const void *about, enum alarm_kind kind)
{
	if (alarms_reported(x->core, about, kind))
		reply_text(r, "alarm", kind == ALARM_HELD ? SPAN("held") : SPAN("waited"));
}

void reply_elsewhere(struct reply *r, const struct elsewhere *elsewhere)
{
	char host[sizeof(elsewhere->host) + 1] = "@";

	memcpy(host + 1, elsewhere->host, sizeof(elsewhere->host));
	if (elsewhere->foreign)
		reply_text(r, "holder", SPAN("foreign"));
	else if (elsewhere->host[0])
		reply_text(r, elsewhere->kept ? "kept_by" : "holder", span_of(host));
}

void reply_elsewhere_held(const struct request_context *x, struct reply *r, const struct elsewhere *elsewhere)
{
	if (elsewhere->held_us >= 0)
		reply_ms(r, elsewhere->kept ? "kept_ms" : "held_ms", elsewhere->held_us + instant_diff(x->core->now, elsewhere->at));
}

/* --- pages --- */

#define ROWS_FIRST     ((size_t)64)
#define GONE_MOST      ((size_t)64 << 10) /* if removed names have so many bytes more than those of the rows, the text is written anew */
#define NAME_A_WORK    256 /* bytes of a name that is copied */
#define ROWS_A_WORK    64  /* that are moved to make room for one */
#define WORK_OF_NAME   2   /* to compare with it, or to copy it */

void page_release(struct page *page)
{
	mem_free(page->row);
	buf_release(&page->text);
	*page = (struct page){.most = page->most, .bytes_most = page->bytes_most};
}

static unsigned page_write_anew(struct page *page)
{
	struct buf text;

	buf_init(&text);
	(void)buf_reserve(&text, page->bytes);
	for (size_t i = 0; i < page->n; i++) {
		struct span name = page_name(page, i);

		page->row[i].at = (uint32_t)buf_length(&text);
		buf_append(&text, name.p, name.n);
	}
	buf_release(&page->text);
	page->text = text;
	return WORK_OF_NAME * (unsigned)page->n;
}

/* Finds the place of the name. Most tables have no order, but a store returns its queues sorted. */
static size_t page_place(const struct page *page, struct span name, unsigned *work)
{
	size_t from = 0, to = page->n;

	if (to > 0 && span_compare(page_name(page, to - 1), name) < 0)
		return to;
	for (; from < to; *work += WORK_OF_NAME) {
		size_t middle = from + (to - from) / 2;

		if (span_compare(page_name(page, middle), name) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static unsigned page_insert(struct page *page, struct span name)
{
	unsigned work = WORK_OF_NAME + (unsigned)(name.n / NAME_A_WORK);
	size_t at = page_place(page, name, &work);

	if (page->n == page->cap) {
		page->cap = page->cap ? 2 * page->cap : ROWS_FIRST;
		page->row = mem_grow(page->row, page->cap, sizeof(*page->row));
	}
	memmove(&page->row[at + 1], &page->row[at], (page->n - at) * sizeof(*page->row));
	page->row[at] = (struct page_row){(uint32_t)buf_length(&page->text), (uint32_t)name.n};
	buf_append(&page->text, name.p, name.n);
	work += (unsigned)((page->n++ - at) / ROWS_A_WORK);
	page->bytes += name.n;
	return work;
}

static bool page_is_too_large(const struct page *page)
{
	return page->n > page->most || (page->bytes_most > 0 && page->bytes > page->bytes_most && page->n > 1);
}

unsigned page_add(struct page *page, struct span name)
{
	unsigned work;

	if ((page->more > 0 || page->n == page->most) && (page->n == 0 || span_compare(page_name(page, page->n - 1), name) <= 0)) {
		page->more++; /* the page leaves out other names already, or has no room */
		return WORK_OF_NAME;
	}
	work = page_insert(page, name);
	for (; page_is_too_large(page); page->more++)
		page->bytes -= page->row[--page->n].n;
	if (buf_length(&page->text) - page->bytes > page->bytes + GONE_MOST)
		work += page_write_anew(page);
	return work;
}

/* One LIST: walks through its table, and sends what it found. The table may change in between, so a listing keeps copies of keys, but no lock or session. */

/* In units of about 50 ns. */
#define WORK_OF_LOOK 2
#define WORK_OF_ROW  32
#define BYTES_A_WORK 32 /* of a row that is sent */

#define KEY_BYTES 16 /* for a session: its serial, then its id, so that the order of bytes is that of serials */

/* --- keys --- */

static void number_write(char *out, uint64_t number)
{
	for (unsigned i = 0; i < 8; i++)
		out[i] = (char)(number >> (56 - 8 * i));
}

static uint64_t number_read(const char *p)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < 8; i++)
		number = number << 8 | (unsigned char)p[i];
	return number;
}

static struct span session_key(char *out, uint64_t serial, uint64_t id)
{
	number_write(out, serial);
	number_write(out + 8, id);
	return (struct span){out, KEY_BYTES};
}

static unsigned listing_add(struct listing *l, struct span key)
{
	if (l->after && span_compare(key, (struct span){l->after, l->after_n}) <= 0)
		return WORK_OF_LOOK;
	return WORK_OF_LOOK + page_add(&l->page, key);
}

/* --- from the request --- */

static char *field_copy(const struct request *q, enum field f, size_t *ret_n)
{
	struct span text = request_has(q, f) ? q->field[f].text : SPAN("");

	*ret_n = text.n;
	return mem_copy(text.p, text.n);
}

/* after= of LIST sessions is the number of a session. The key has the largest id, so that this session is not listed again. */
static char *session_after(const struct request *q, size_t *ret_n)
{
	struct span text = request_has(q, FIELD_AFTER) ? q->field[FIELD_AFTER].text : SPAN("");
	uint64_t serial = 0;
	char key[KEY_BYTES];

	for (size_t i = 0; i < text.n && text.p[i] >= '0' && text.p[i] <= '9' && i < 19; i++)
		serial = serial * 10 + (uint64_t)(text.p[i] - '0');
	*ret_n = KEY_BYTES;
	return mem_copy(session_key(key, serial, UINT64_MAX).p, KEY_BYTES);
}

struct listing *listing_new(struct request_context *x, struct session *s, const struct listed *of, size_t most)
{
	const struct request *q = &x->request;
	struct listing *l = mem_alloc(sizeof(*l));

	l->session = s;
	l->origin = s->origin;
	origin_asks(l->origin);
	l->of = of;
	l->page.most = most;
	l->page.bytes_most = x->core->conf.limits.output / 4; /* as much as is sent: see rows_are_long() */
	memcpy(l->tag, q->tag.p ? q->tag.p : "", q->tag.n);
	l->prefix = field_copy(q, FIELD_PREFIX, &l->prefix_n);
	if (of == &listed_sessions)
		l->after = session_after(q, &l->after_n);
	else if (request_has(q, FIELD_AFTER))
		l->after = field_copy(q, FIELD_AFTER, &l->after_n);
	return l;
}

void listing_free(struct listing *l)
{
	origin_asked(l->origin);
	if (l->queues.question)
		l->queues.question->about = NULL;
	mem_span_free(&l->queues.last);
	page_release(&l->page);
	mem_free(l->prefix);
	mem_free(l->after);
	mem_free(l);
}

/* --- looking through a table: one bucket, one slot --- */

static bool is_listed(const struct request_context *x, const struct listing *to, const struct lock *l, unsigned *work)
{
	return !lock_is_idle(l) && l->lease.limit != SLOT_OF_SEMAPHORE && span_starts(lock_name(l), (struct span){to->prefix, to->prefix_n}) &&
	       session_may_look_at(x->core, to->session, lock_name(l), work);
}

static void seek_looks_ahead(const struct map_node *ahead)
{
	const struct lock *l = container_of(ahead, struct lock, name.node);

	if (!ahead)
		return;
	__builtin_prefetch(l);
	__builtin_prefetch(l + 1); /* its name */
	__builtin_prefetch(&l->lease);
}

static unsigned seek_locks(struct request_context *x, struct listing *l)
{
	struct map_node *node;
	unsigned work = 1;

	if (!map_walk(&x->engine->table.map, &l->walk, &node)) {
		l->phase = LISTING_SENDS;
		return 0;
	}
	seek_looks_ahead(l->walk.ahead);
	for (; node; node = node->next) {
		const struct lock *lock = container_of(node, struct lock, name.node);

		if (map_walk_meets(&l->walk, node))
			work += is_listed(x, l, lock, &work) ? listing_add(l, lock_name(lock)) : WORK_OF_LOOK;
	}
	return work;
}

static unsigned seek_one_session(const struct request_context *x, struct listing *l, const struct session *s)
{
	char key[KEY_BYTES];

	if (!session_may_see(x->core, l->session, s) || !span_starts(span_of(s->label ? s->label : ""), (struct span){l->prefix, l->prefix_n}))
		return WORK_OF_LOOK;
	return listing_add(l, session_key(key, s->serial, s->id));
}

static unsigned seek_sessions(struct request_context *x, struct listing *l)
{
	struct map_node *node;
	unsigned work = 1;

	if (l->slot < x->sessions->slots) {
		const struct session *s = x->sessions->slot[l->slot++];

		return s && !s->is_web ? seek_one_session(x, l, s) : 1;
	}
	if (!map_walk(&x->sessions->known, &l->walk, &node)) {
		l->phase = LISTING_SENDS;
		return 0;
	}
	for (; node; node = node->next) {
		const struct session *s = container_of(node, struct lasting, by_serial)->session;

		if (s->detached && map_walk_meets(&l->walk, node))
			work += seek_one_session(x, l, s);
	}
	return work;
}

/* --- sending --- */

/* The first permit with an alarm stands for all. */
static void reply_semaphore_alarm(struct request_context *x, struct reply *r, const struct semaphore *m)
{
	const struct permit *p;

	TAILQ_FOREACH(p, &m->others, in_line)
		if (alarms_reported(x->core, p, ALARM_HELD))
			break;
	if (p)
		reply_alarm(x, r, p, ALARM_HELD);
}

/* For a semaphore LIST shows how many permits this daemon's sessions have, and how many they wait for. */
static void reply_semaphore_row(struct request_context *x, struct reply *r, const struct lock *l)
{
	const struct semaphore *m = semaphore_find(x, lock_name(l));

	reply_text(r, "kind", SPAN("semaphore"));
	reply_int(r, "limit", l->lease.limit);
	reply_int(r, "held", m ? m->held : 0);
	reply_int(r, "waiters", m ? m->waiters : 0);
	if (m && x->core->alarms)
		reply_semaphore_alarm(x, r, m);
}

static void lock_send_row(struct request_context *x, struct listing *to, const struct lock *l)
{
	char who[WHO_MAX];
	struct reply r;

	row_begin(x, span_of(to->tag), &r);
	reply_text(&r, "name", lock_name(l));
	if (l->lease.limit > 0) {
		reply_semaphore_row(x, &r, l);
		row_end(x, to->session, &r);
		return;
	}
	if (l->holder) {
		reply_int(&r, "fence", l->holder->token);
		reply_int(&r, "session", (int64_t)l->holder->session->serial);
		reply_text(&r, "holder", (struct span){who, session_who(l->holder->session, who)});
		reply_ms(&r, "held_ms", instant_diff(x->core->now, l->holder->granted_at));
		reply_ms(&r, "valid_ms", lock_valid_us(&x->engine->table, l));
		reply_int(&r, "count", l->holder->count);
		reply_alarm(x, &r, l->holder, ALARM_HELD);
		reply_mode(&r, l->holder);
		if (l->share)
			reply_int(&r, "holders", lock_holders(l));
	} else if (l->contender->elsewhere.known) {
		reply_elsewhere(&r, &l->contender->elsewhere);
		if (l->contender->elsewhere.foreign)
			reply_int(&r, "ttl_ms", l->contender->elsewhere.pttl_ms);
	}
	reply_int(&r, "waiters", l->contender->patient);
	row_end(x, to->session, &r);
}

static void session_send_row(struct request_context *x, struct listing *to, const struct session *s)
{
	struct reply r;

	row_begin(x, span_of(to->tag), &r);
	reply_session(x, &r, s);
	if (s->identity && s->identity->user)
		reply_text(&r, "user", span_of(s->identity->user));
	if (s->has_subject)
		reply_text(&r, "cert", session_subject(s));
	reply_ms(&r, "age_ms", instant_diff(x->core->now, s->opened_at));
	reply_ms(&r, "idle_ms", instant_diff(x->core->now, s->active_at));
	reply_int(&r, "held", s->held);
	reply_int(&r, "waiting", s->waiting);
	row_end(x, to->session, &r);
}

static bool lock_send_row_at(struct request_context *x, struct listing *l, size_t i)
{
	const struct lock *lock = lock_find(&x->engine->table, page_name(&l->page, i));
	bool there = lock && !lock_is_idle(lock) && lock->lease.limit != SLOT_OF_SEMAPHORE;

	if (there)
		lock_send_row(x, l, lock);
	return there;
}

/* A session may be found twice, if it left its connection or took one over after it was found. It is sent once. */
static bool session_send_row_at(struct request_context *x, struct listing *l, size_t i)
{
	const char *key = page_name(&l->page, i).p;
	uint64_t serial = number_read(key);
	const struct session *s = session_find(x->sessions, number_read(key + 8));

	if (i > 0 && number_read(page_name(&l->page, i - 1).p) == serial)
		return false;
	if (!s || s->serial != serial)
		s = session_of_serial(x->sessions, serial);
	if (s)
		session_send_row(x, l, s);
	return s != NULL;
}

const struct listed listed_locks = {seek_locks, lock_send_row_at}, listed_sessions = {seek_sessions, session_send_row_at};

/* No entry of this page exists any longer, but more follow. Begins anew after them, because a client needs a row to ask for the next page. */
static void listing_begins_behind(struct listing *l)
{
	struct span last = page_name(&l->page, l->page.n - 1);

	mem_free(l->after);
	l->after = mem_copy(last.p, last.n);
	l->after_n = last.n;
	page_release(&l->page);
	l->walk = (struct map_walk){0};
	l->slot = 0;
	l->at = 0;
	l->phase = LISTING_SEEKS;
}

static void listing_answered(struct request_context *x, struct listing *l)
{
	struct reply r;

	core_answers(x->core, VERB_LIST);
	rows_ended(x, &r, span_of(l->tag), l->sent, (int64_t)(l->page.more + l->page.n - l->at));
	if (l->queues.missing > 0)
		reply_int(&r, "missing", l->queues.missing);
	if (l->queues.astray > 0)
		reply_int(&r, "astray", l->queues.astray);
	session_send(x->sessions, l->session, r.start, reply_end(&r));
}

/* False: that was the last row. */
static bool listing_sends(struct request_context *x, struct listing *l, unsigned *work)
{
	struct session *s = l->session;
	size_t unsent = s->unsent;

	*work = WORK_OF_ROW;
	if (l->at < l->page.n && !rows_are_long(x, l->bytes)) {
		l->sent += l->of->send_row(x, l, l->at++);
		l->bytes += s->unsent - unsent;
		*work += (unsigned)((s->unsent - unsent) / BYTES_A_WORK);
		return true;
	}
	if (l->sent == 0 && l->page.n > 0 && l->page.more > 0) {
		listing_begins_behind(l);
		return true;
	}
	listing_answered(x, l);
	return false;
}

bool listing_goes_on(struct request_context *x, struct listing *l, int64_t *budget)
{
	bool more = true;

	while (more && *budget > 0 && l->phase != LISTING_ASKS) {
		unsigned work = 0;

		if (l->phase == LISTING_SEEKS)
			work = l->of->seek(x, l);
		else
			more = listing_sends(x, l, &work);
		*budget -= work;
	}
	return more;
}
