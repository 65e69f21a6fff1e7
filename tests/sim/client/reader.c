/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Readers and writers of a few names, r0 …, beside the jobs: clients lock them in either mode, share what they hold alone, check, extend and release it. What
 * they believe is as for other locks; a client that asks for the shared mode counts as a reader from then on, whatever the answer.
 */
#include "tests/sim/world/world.h"

#define PAUSE_US      (700 * MSEC)
#define QUIT_AGAIN_US (200 * MSEC)
#define KEEP_MOST_MS  400

int64_t reader_name(struct span line)
{
	struct span name = line_field(line, "name");

	return name.n == 2 && name.p[0] == 'r' && name.p[1] >= '0' && name.p[1] < '0' + READ_NAMES ? name.p[1] - '0' : -1;
}

unsigned reader_asks(const struct sim_client *c, int64_t name, enum reader_ask what)
{
	const struct request_sim *q;
	unsigned n = 0;

	TAILQ_FOREACH(q, &c->conn->open, at_client)
		n += q->ask == ASK_READ && q->name == name && q->reads == what;
	return n;
}

/* No other request about the name is under way. */
static bool reader_is_quiet(const struct sim_client *c, const struct request_sim *but, int64_t name)
{
	const struct request_sim *q;

	TAILQ_FOREACH(q, &c->conn->open, at_client)
		if (q != but && q->ask == ASK_READ && (q->name == name || q->reads == READ_ALL || q->reads == READ_ANY))
			return false;
	return true;
}

static void reader_disclaim(struct reading *r)
{
	r->deadline = INSTANT_PAST;
	r->until = 0;
	r->count = 0;
	r->most = INSTANT_NEVER;
	r->delay_us = 0;
}

void reader_disclaim_all(struct sim_client *c)
{
	for (int64_t name = 0; name < READ_NAMES; name++)
		reader_disclaim(&c->reading[name]);
}

/* --- what it hears --------------------------------------------------------------------------------------------------- */

static const struct host *reader_host(const struct sim_client *c)
{
	return c->remote ? &c->own : &c->daemon->host;
}

/* A client that asks for a shorter lease relies on no more from then on, whatever is answered before. */
static void reader_cap(const struct sim_client *c, struct reading *r, const struct request_sim *extend)
{
	struct instant end = instant_add(extend->anchor, extend->ttl_ms * MSEC * 99 / 100 - 3 * MSEC);

	if (!instant_before(end, r->deadline))
		return;
	r->deadline = end;
	r->until = host_true(reader_host(c), end);
}

static void reader_cap_all(struct sim_client *c, int64_t name, const struct request_sim *answered)
{
	const struct request_sim *q;

	TAILQ_FOREACH(q, &c->conn->open, at_client)
		if (q != answered && q->ask == ASK_READ && q->name == name && q->extends)
			reader_cap(c, &c->reading[name], q);
}

/* What a hold was asked for that begins, or goes on. The replies of requests that are under way may come in another order: then its end is not known. */
static void reader_note_terms(struct sim_client *c, const struct request_sim *q, int64_t name, struct span line)
{
	struct reading *r = &c->reading[name];
	struct instant end = instant_add(client_boot(c), q->ttl_ms * MSEC);
	bool begins = q->begins && r->count <= 0 && r->deadline.us == INSTANT_PAST.us && line_int(line, "ttl_ms") == q->ttl_ms;

	if (q->locks || q->reads == READ_ALL || q->reads == READ_ANY) {
		r->most = begins && q->once ? end : INSTANT_NEVER;
		r->delay_us = begins ? q->delay_us : 0;
	} else if (q->extends) {
		r->most = instant_max(r->most, end);
	}
	if (!reader_is_quiet(c, q, name))
		r->most = INSTANT_NEVER;
}

/* A reply that an UNLOCK or a request for the shared mode has crossed proves nothing. */
void reader_believe(struct sim_client *c, const struct request_sim *q, int64_t name, struct span line)
{
	struct reading *r = &c->reading[name];
	bool shared = span_equal(line_field(line, "mode"), SPAN("shared"));

	if (q->conn->left || line_int(line, "valid_ms") < 0 || reader_asks(c, name, READ_UNLOCK) || (!shared && reader_asks(c, name, READ_SHARED))) {
		r->most = INSTANT_NEVER;
		r->delay_us = 0;
		return;
	}
	reader_note_terms(c, q, name, line);
	r->shared = shared;
	r->fence = line_int(line, "fence");
	if (line_int(line, "count") > 0)
		r->count = line_int(line, "count");
	r->deadline = instant_add(q->anchor, line_int(line, "valid_ms") * MSEC);
	r->until = host_true(reader_host(c), r->deadline);
	reader_cap_all(c, name, q);
	world_note(c->world, 25, (uint64_t)r->until, "c%u relies on r%lld %s fence %lld until %lld", c->index, (long long)name,
		   shared ? "shared" : "alone", (long long)r->fence, (long long)r->until);
	check_reading(c, name);
}

/* The other UNLOCKs under way count as well. */
static void reader_released(struct sim_client *c, const struct request_sim *q, struct span line)
{
	struct reading *r = &c->reading[q->name];
	int64_t others = reader_asks(c, q->name, READ_UNLOCK);

	r->count = line_int(line, "count") - others;
	if (r->count <= 0)
		reader_disclaim(r);
}

void reader_heard(struct sim_client *c, const struct request_sim *q, struct span line, bool ok)
{
	if (ok && q->reads == READ_UNLOCK)
		reader_released(c, q, line);
	else if (ok && (q->reads == READ_ALL || q->reads == READ_ANY))
		gatherer_heard(c, q, line);
	else if (ok)
		reader_believe(c, q, q->name, line);
}

void reader_pushed(struct sim_client *c, struct span line)
{
	int64_t name = reader_name(line);
	struct reading *r = name < 0 ? NULL : &c->reading[name];
	struct instant end;

	if (!r || r->fence != line_int(line, "fence"))
		return;
	if (span_equal(line_word(line, 1), SPAN("LOST"))) {
		check_read_delay(c, name, line_field(line, "reason"));
		reader_disclaim(r);
	} else if (span_equal(line_word(line, 1), SPAN("RISK"))) {
		end = instant_add(client_boot(c), line_int(line, "left_ms") * MSEC);
		if (!instant_before(end, r->deadline))
			return;
		r->deadline = end;
		r->until = host_true(reader_host(c), end);
	}
}

/* --- what it asks ---------------------------------------------------------------------------------------------------- */

struct request_sim *reader_say(struct sim_client *c, int64_t name, enum reader_ask what, const char *verb, const char *fields)
{
	struct request_sim *q = client_ask(c, ASK_READ, NULL, "%s r%lld%s", verb, (long long)name, fields);

	if (!q)
		return NULL;
	q->name = name;
	q->reads = what;
	return q;
}

/* Each lock-delay keeps the name from all others for that long, so most are short. */
static int64_t draw_delay_ms(struct sim_client *c, bool shared)
{
	bool delays = stream_chance(&c->read_stays, 20) && !shared;
	int64_t ms = stream_skewed(&c->read_stays, 1, 1000), most_ms = c->world->plan->delay_us / MSEC;

	return delays && most_ms > 0 && c->world->now + ms * MSEC < c->world->plan->length_us ? (ms < most_ms ? ms : most_ms) : 0;
}

static void say_lock(struct sim_client *c, int64_t name, bool shared)
{
	static const int64_t waits[] = {0, 0, 20, 300, 3000};
	static const char *const mode[2][2] = {{"", " mode=exclusive"}, {" mode=shared", " mode=shared renew=yes delay=0s"}};
	int64_t wait_ms = waits[stream_range(&c->reads, 0, 4)];
	int64_t ttl_ms = c->world->plan->lease_us / MSEC / (stream_chance(&c->reads, 20) ? 2 : 1);
	int64_t priority = c->read_priorities && stream_chance(&c->read_terms, 50) ? stream_skewed(&c->read_terms, 1, 9) : 0;
	bool noted = stream_chance(&c->read_fields, 20), said = stream_chance(&c->read_fields, 20);
	bool once = stream_chance(&c->read_stays, 15) && !shared;
	int64_t delay_ms = draw_delay_ms(c, shared);
	char fields[128], delay[32] = "";
	struct request_sim *q;

	if (delay_ms > 0)
		snprintf(delay, sizeof(delay), " delay=%lldms", (long long)delay_ms);
	snprintf(fields, sizeof(fields), " ttl=%lldms wait=%lldms priority=%lld%s%s%s%s", (long long)ttl_ms, (long long)wait_ms, (long long)priority,
		 mode[shared][said], noted ? " note=reads" : "", once ? " renew=no" : "", delay);
	q = reader_say(c, name, shared ? READ_SHARED : READ_ALONE, "LOCK", fields);
	if (!q)
		return;
	q->locks = true;
	q->once = once;
	q->delay_us = delay_ms * MSEC;
	q->ttl_ms = ttl_ms;
	q->wait_ms = wait_ms;
	q->priority = priority;
	c->reading[name].shared |= shared;
}

static void say_unlock(struct sim_client *c, int64_t name);

/* Counts up, or shares what it holds alone. What it reads it gives back before it asks for it alone; the daemon refuses if it has that more often. */
static void say_lock_again(struct sim_client *c, int64_t name, bool shared)
{
	if (!shared && c->reading[name].shared && c->reading[name].count > 0)
		say_unlock(c, name);
	say_lock(c, name, shared);
}

static void say_extend(struct sim_client *c, int64_t name)
{
	int64_t ttl_ms = c->world->plan->lease_us / MSEC / (stream_chance(&c->read_terms, 40) ? 2 : 1);
	char fields[32];
	struct request_sim *q;

	snprintf(fields, sizeof(fields), " ttl=%lldms", (long long)ttl_ms);
	q = reader_say(c, name, READ_OTHER, "EXTEND", fields);
	if (!q)
		return;
	q->ttl_ms = ttl_ms;
	reader_cap(c, &c->reading[name], q);
}

/* With keep= nobody else is to have the name for a while. A reader may not ask for that. */
static void say_unlock(struct sim_client *c, int64_t name)
{
	struct reading *r = &c->reading[name];
	int64_t keep_ms = stream_skewed(&c->read_fields, 1, KEEP_MOST_MS);
	bool keeps = stream_chance(&c->read_fields, 30) && keep_ms * MSEC < c->world->plan->length_us - c->world->now;
	bool alone = !r->shared && r->count == 1 && reader_is_quiet(c, NULL, name);
	struct request_sim *q;
	char fields[32] = "";

	if (keeps && alone)
		snprintf(fields, sizeof(fields), " keep=%lldms", (long long)keep_ms);
	q = reader_say(c, name, READ_UNLOCK, "UNLOCK", fields);
	if (!q)
		return;
	q->keep_ms = keeps && alone ? keep_ms : 0;
	q->relied_at_least = r->until;
	if (--r->count <= 0)
		reader_disclaim(r);
}

static void say_anything(struct sim_client *c, int64_t name)
{
	struct reading *r = &c->reading[name];

	switch (stream_range(&c->reads, 0, 9)) {
	case 0:
		reader_say(c, name, READ_OTHER, "CHECK", "");
		break;
	case 1:
		say_extend(c, name);
		break;
	case 2:
		reader_say(c, name, READ_OTHER, "SHOW", "");
		break;
	case 3:
	case 4:
		say_lock_again(c, name, stream_chance(&c->reads, 60));
		break;
	default:
		if (r->count > 0)
			say_unlock(c, name);
		else
			say_lock(c, name, stream_chance(&c->reads, 65));
		break;
	}
}

/* The path to the daemon breaks: the daemon hears a reset, and the client goes on believing. */
static void reader_is_cut(struct sim_client *c)
{
	for (int64_t name = 0; name < READ_NAMES && !c->graced; name++)
		check_read_delay(c, name, SPAN("quorum"));
	c->conn->silent = true;
	conn_cut(c->conn, GONE_RESET, c->world->now);
	client_lost_conn(c);
}

/*
 * Where sessions have heartbeats: a reader is stopped for so long that its daemon cuts it off, while it may still believe. Meanwhile others read, leave, and
 * wait to write.
 */
static bool reader_falls_silent(struct sim_client *c)
{
	const struct world *w = c->world;
	int64_t beat_us = w->plan->heartbeat_ms * MSEC, for_us = beat_us + stream_range(&c->read_silences, 10 * MSEC, w->plan->lease_us);
	bool believes = false;

	for (int64_t name = 0; name < READ_NAMES; name++)
		believes |= c->reading[name].shared && c->reading[name].until > w->now + beat_us + 100 * MSEC;
	if (!beat_us || !believes || w->now + for_us > w->plan->length_us || !stream_chance(&c->read_silences, 10))
		return false;
	client_stall(c, for_us);
	return true;
}

/* Before the bounds are tight the client releases all that it holds, however often; a group may have counted up once more. */
static void reader_ends(struct sim_client *c)
{
	bool ready = c->conn && !c->conn->left && c->state == CLIENT_RUNNING;

	reader_disclaim_all(c);
	for (int64_t i = 0; ready && i < READ_NAMES * (READ_MOST + 2); i++)
		reader_say(c, i % READ_NAMES, READ_UNLOCK, "UNLOCK", "");
	if (!ready && c->state != CLIENT_GONE)
		world_at(c->world, &c->reader_timer, AT_READER, c->world->now + QUIT_AGAIN_US);
}

/* What no reader may ask for. */
static void say_refused(struct sim_client *c, int64_t name)
{
	bool delays = stream_chance(&c->read_fields, 50);

	struct request_sim *q;

	q = client_ask(c, ASK_OTHER, NULL, "LOCK r%lld mode=shared %s", (long long)name, delays ? "delay=1ms" : "renew=no");
	if (q)
		q->refused = true;
}

void reader_fired(struct sim_client *c)
{
	struct world *w = c->world;
	int64_t name = stream_range(&c->reads, 0, (w->plan->gathers ? READ_NAMES : READ_FEW) - 1);

	if (w->now > w->plan->length_us) {
		reader_ends(c);
		return;
	}
	if (c->conn && !c->conn->left && c->state == CLIENT_RUNNING && stream_chance(&c->read_fields, 2))
		say_refused(c, name);
	if (c->conn && !c->conn->left && c->state == CLIENT_RUNNING && reader_falls_silent(c))
		;
	else if (c->conn && !c->conn->left && c->state == CLIENT_RUNNING && c->remote && stream_chance(&c->reads, 3))
		reader_is_cut(c);
	else if (w->plan->gathers && stream_chance(&c->reads, 30))
		gatherer_ask(c);
	else if (c->conn && !c->conn->left && c->state == CLIENT_RUNNING && c->reading[name].count < READ_MOST)
		say_anything(c, name);
	else if (c->conn && c->state == CLIENT_RUNNING && c->reading[name].count > 0)
		say_unlock(c, name);
	world_at(w, &c->reader_timer, AT_READER, w->now + stream_skewed(&c->reads, MSEC, PAUSE_US));
}

void reader_begin(struct sim_client *c)
{
	const struct plan *p = c->world->plan;

	reader_disclaim_all(c);
	if ((!p->readers && !p->gathers) || c->index >= CLIENTS_COMMON)
		return;
	stream_init(&c->reads, (uint64_t)p->seed, DRAW_READERS, c->index);
	stream_init(&c->read_terms, (uint64_t)p->seed, DRAW_READ_TERMS, c->index);
	stream_init(&c->read_fields, (uint64_t)p->seed, DRAW_READ_FIELDS, c->index);
	stream_init(&c->read_stays, (uint64_t)p->seed, DRAW_READ_STAYS, c->index);
	stream_init(&c->read_silences, (uint64_t)p->seed, DRAW_READ_SILENCES, c->index);
	for (unsigned i = 0; i < p->jobs; i++)
		c->read_priorities |= p->job[i].priority > 0;
	world_at(c->world, &c->reader_timer, AT_READER, p->warm_us + stream_range(&c->reads, 0, PAUSE_US));
}
