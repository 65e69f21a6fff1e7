/* SPDX-License-Identifier: BSD-2-Clause */
/* See repeater.h: what its answers let a client think. What they must not say is checked in check/repeated.c. */
#include "tests/sim/world/world.h"

static const struct host *repeat_host(const struct sim_client *c)
{
	return c->remote ? &c->own : &c->daemon->host;
}

void repeat_hold_ends(struct repeat_hold *h)
{
	h->deadline = INSTANT_PAST;
	h->until = 0;
}

void repeat_permit_ends(struct repeat_permit *p)
{
	p->deadline = INSTANT_PAST;
	p->until = 0;
}

/* Without its beliefs a session that it resumes has nothing that it knows of: what the owners of before have is not of these. */
void repeater_disclaim(struct sim_client *c)
{
	struct repeating *r = &c->repeats;

	memset(r->hold, 0, sizeof(r->hold));
	memset(r->permit, 0, sizeof(r->permit));
	memset(r->permits, 0, sizeof(r->permits));
	memset(r->vague, 0, sizeof(r->vague));
	memset(&r->job, 0, sizeof(r->job));
	r->ask.open = false;
	r->secret[0] = '\0';
	r->life++;
}

/* --- rows and pushes ------------------------------------------------------------------------------------------------- */

int64_t repeat_name(struct span line)
{
	struct span name = line_field(line, "name");

	return name.n == 2 && name.p[0] == 'a' && name.p[1] >= '0' && name.p[1] < '0' + REPEAT_NAMES ? name.p[1] - '0' : -1;
}

static bool is_of_permits(struct span line)
{
	return span_equal(line_field(line, "name"), SPAN("y0"));
}

/* The number of its owner, of this session; -1: it is another. */
static int64_t repeat_owner(const struct sim_client *c, struct span line)
{
	struct span owner = line_field(line, "owner");
	char mine[32];
	int n = snprintf(mine, sizeof(mine), "u%uv%uo", c->index, c->repeats.life);

	if (owner.n != (size_t)n + 1 || memcmp(owner.p, mine, (size_t)n) != 0)
		return -1;
	return owner.p[n] - '0';
}

void repeater_row(struct sim_client *c, const struct request_sim *q, struct span line)
{
	struct repeating *r = &c->repeats;
	int64_t name = repeat_name(line), owner = repeat_owner(c, line);

	if (q->ask == ASK_REPEAT && name >= 0) {
		r->rows |= 1U << name;
		r->row_count[name] = line_int(line, "count");
		r->row_fence[name] = line_int(line, "fence");
	}
	if (q->ask == ASK_RESUME)
		repeat_job_row(c, q, line);
	if (q->ask != ASK_RESUME || owner < 0)
		return;
	if (name >= 0)
		check_repeat_row(c, (unsigned)owner, name, line_int(line, "count"));
	else if (is_of_permits(line))
		check_repeat_permit_row(c, (unsigned)owner, ++r->permit_rows[owner]);
}

void repeater_resumes(struct sim_client *c)
{
	memset(c->repeats.permit_rows, 0, sizeof(c->repeats.permit_rows));
	c->repeats.job.rows = 0;
}

void repeater_resumed(struct sim_client *c)
{
	struct repeat_job *j = &c->repeats.job;

	if (j->rows == 0)
		j->unheard[0] = '\0';
}

static void permit_pushed(struct sim_client *c, unsigned owner, struct span line, bool lost)
{
	struct repeating *r = &c->repeats;

	for (unsigned i = 0; i < REPEAT_MOST; i++) {
		struct repeat_permit *p = &r->permit[owner][i];

		if (p->fence != line_int(line, "fence"))
			continue;
		repeat_permit_ends(p); /* at RISK too: the client stops, though it could go on for a while */
		r->vague[owner] |= lost;
	}
}

void repeater_pushed(struct sim_client *c, struct span line)
{
	int64_t name = repeat_name(line), owner = repeat_owner(c, line);
	bool lost = span_equal(line_word(line, 1), SPAN("LOST"));
	struct repeat_hold *h;

	repeat_job_pushed(c, line);
	if (owner < 0 || (!lost && !span_equal(line_word(line, 1), SPAN("RISK"))))
		return;
	if (is_of_permits(line)) {
		permit_pushed(c, (unsigned)owner, line, lost);
	} else if (name >= 0) {
		h = &c->repeats.hold[owner][name];
		if (h->fence != line_int(line, "fence"))
			return;
		repeat_hold_ends(h);
		h->count = lost ? 0 : h->count;
	}
}

/* --- answers --------------------------------------------------------------------------------------------------------- */

static void hold_believed(struct sim_client *c, const struct request_sim *q, unsigned owner, int64_t name, int64_t valid_ms)
{
	struct repeat_hold *h = &c->repeats.hold[owner][name];

	if (q->conn->left || valid_ms < 0)
		return;
	h->deadline = instant_add(q->anchor, valid_ms * MSEC);
	h->until = host_true(repeat_host(c), h->deadline);
	world_note(c->world, 27, (uint64_t)h->until, "c%u relies on a%lld as owner %u until %lld", c->index, (long long)name, owner, (long long)h->until);
	check_repeat_belief(c, owner, name);
}

static void locked(struct sim_client *c, const struct request_sim *q, int64_t name, struct span line)
{
	struct repeating *r = &c->repeats;
	struct repeat_hold *h = &r->hold[r->ask.owner][name];

	check_repeat_locked(c, name, line_int(line, "count"), line_int(line, "fence"));
	*h = (struct repeat_hold){.count = r->ask.count, .fence = line_int(line, "fence"), .shared = r->ask.shared, .deadline = INSTANT_PAST};
	hold_believed(c, q, r->ask.owner, name, line_int(line, "valid_ms"));
}

/* All that the request is about is given back before it goes on. */
static void all_vague(struct repeating *r)
{
	for (int64_t name = 0; name < REPEAT_NAMES; name++)
		if (r->ask.group >> name & 1)
			r->hold[r->ask.owner][name].vague = true;
	if (r->ask.group == 0)
		r->vague[r->ask.owner] = true;
}

/* The first of its names. */
static int64_t name_of_group(unsigned group)
{
	return group & 1 ? 0 : group & 2 ? 1 : 2;
}

/* Which of the names of a LOCKALL the owner has by an earlier one, of which some were lost since, the refusal of the last does not say. */
static void lock_refused(struct sim_client *c, struct span code)
{
	struct repeating *r = &c->repeats;
	const struct repeat_ask *a = &r->ask;
	bool known = a->count > 1 || r->hold[a->owner][name_of_group(a->group)].count > 0;

	if (span_equal(code, SPAN("ARG")) && a->count == 1)
		check_repeat_refused(c, code);
	if (known || (a->what == REPEAT_ALL && a->sent > 1))
		all_vague(r);
}

static void group_locked(struct sim_client *c, const struct request_sim *q, struct span line)
{
	struct repeating *r = &c->repeats;

	if (r->ask.what == REPEAT_ANY) {
		if (repeat_name(line) >= 0)
			locked(c, q, repeat_name(line), line);
		return;
	}
	check_repeat_rows(c);
	for (int64_t name = 0; name < REPEAT_NAMES; name++) {
		struct repeat_hold *h = &r->hold[r->ask.owner][name];

		if (r->ask.group >> name & 1)
			*h = (struct repeat_hold){.count = 1, .fence = r->row_fence[name], .deadline = INSTANT_PAST}; /* it waits for CHECK to believe */
	}
}

static void unlocked(struct sim_client *c, struct span line, struct span code, bool ok)
{
	struct repeating *r = &c->repeats;
	struct repeat_hold *h = &r->hold[r->ask.owner][name_of_group(r->ask.group)];

	if (ok)
		check_repeat_count(c, line_int(line, "count"));
	else if (span_equal(code, SPAN("NOTHELD")) || (span_equal(code, SPAN("ARG")) && r->ask.count == 0))
		check_repeat_refused(c, code);
	if (ok || r->ask.count == 0) {
		h->count = r->ask.count;
		h->vague = false;
	} else {
		h->vague = true;
	}
}

static void checked(struct sim_client *c, const struct request_sim *q, struct span line, bool ok)
{
	struct repeating *r = &c->repeats;
	int64_t name = name_of_group(r->ask.group);

	if (!ok) {
		all_vague(r);
		return;
	}
	check_repeat_locked(c, name, line_int(line, "count"), line_int(line, "fence"));
	hold_believed(c, q, r->ask.owner, name, line_int(line, "valid_ms"));
}

static void acquired(struct sim_client *c, const struct request_sim *q, struct span line)
{
	struct repeating *r = &c->repeats;
	unsigned owner = r->ask.owner;
	struct repeat_permit *p = &r->permit[owner][r->ask.count - 1];
	int64_t fence = line_int(line, "fence"), slot = line_int(line, "permit");

	if (r->ask.count == r->permits[owner] && (p->fence != fence || p->slot != slot)) {
		all_vague(r); /* the one that it knew was lost */
		return;
	}
	r->permits[owner] = r->ask.count;
	*p = (struct repeat_permit){.fence = fence, .slot = slot, .deadline = instant_add(q->anchor, line_int(line, "valid_ms") * MSEC)};
	p->until = q->conn->left ? 0 : host_true(repeat_host(c), p->deadline);
	check_repeat_permit(c, p);
}

static void acquire_refused(struct sim_client *c, struct span code)
{
	struct repeating *r = &c->repeats;

	if (span_equal(code, SPAN("ARG")) && r->ask.count == 1)
		check_repeat_refused(c, code);
	if (r->ask.count == r->permits[r->ask.owner] || r->ask.count > 1)
		all_vague(r);
}

static void released(struct sim_client *c, struct span line, struct span code, bool ok)
{
	struct repeating *r = &c->repeats;
	unsigned owner = r->ask.owner;

	if (ok)
		check_repeat_count(c, line_int(line, "count"));
	else if (span_equal(code, SPAN("NOTHELD")) || (span_equal(code, SPAN("ARG")) && r->ask.count == 0))
		check_repeat_refused(c, code);
	r->vague[owner] = !ok && r->ask.count > 0;
	if (!r->vague[owner])
		r->permits[owner] = r->ask.count;
}

/* Nothing is decided yet, or what the client waits for is another request. */
static bool is_open(struct span code)
{
	return span_equal(code, SPAN("QUORUM")) || span_equal(code, SPAN("UNAVAILABLE")) || span_equal(code, SPAN("CANCELLED"));
}

static void answered(struct sim_client *c, const struct request_sim *q, struct span line, struct span code, bool ok)
{
	switch (c->repeats.ask.what) {
	case REPEAT_LOCK:
		ok ? locked(c, q, name_of_group(c->repeats.ask.group), line) : lock_refused(c, code);
		break;
	case REPEAT_ALL:
	case REPEAT_ANY:
		ok ? group_locked(c, q, line) : lock_refused(c, code);
		break;
	case REPEAT_UNLOCK:
		unlocked(c, line, code, ok);
		break;
	case REPEAT_CHECK:
		checked(c, q, line, ok);
		break;
	case REPEAT_ACQUIRE:
		ok ? acquired(c, q, line) : acquire_refused(c, code);
		break;
	case REPEAT_RELEASE:
		released(c, line, code, ok);
		break;
	case REPEAT_TOO_MANY:
	case REPEAT_TOO_MANY_PERMITS:
		if (ok)
			check_repeat_refused(c, SPAN("OK"));
		break;
	default:
		repeat_job_answered(c, q, line, ok);
		break;
	}
}

void repeater_heard(struct sim_client *c, const struct request_sim *q, struct span line, bool ok)
{
	struct repeating *r = &c->repeats;
	struct span code = span_equal(line_word(line, 1), SPAN("ERR")) ? line_word(line, 2) : line_word(line, 1);

	if (!r->ask.open || q->round != r->ask.number || q->number != r->ask.last || q->conn != c->conn || strcmp(r->secret, c->secret) != 0)
		return;
	if (!span_equal(line_word(line, 1), SPAN("ERR")))
		check_repeat_alone(c); /* where this one is refused the earlier one is cancelled a moment later */
	r->ask.cut = false;
	if (!ok && is_open(code)) {
		r->ask.again = true;
		return;
	}
	r->ask.open = false;
	answered(c, q, line, code, ok);
	r->rows = 0;
}
