/* SPDX-License-Identifier: BSD-2-Clause */
/* See health.h. */
#include "daemon/core/member/health.h"

#include "daemon/core/event/event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LATE_IS_SLOW 3    /* answers in a row that came after the timeout: fewer may be due to a pause of this process, or of the store */
#define PROBE_APART_US (SEC / 4)
#define DENIAL_SHOWN_US (60 * SEC) /* after the last occurrence; with a shorter time it would come and go with calls that are rare */
#define LATE_PART_US  (30 * SEC)
#define LATE_SHOWN_US (60 * SEC)
#define LATE_LEAST    4   /* fewer may be due to pauses of this process; LATE_IS_SLOW in a row make it slow */
#define LATE_MOST     100 /* one in this many round trips may be late */
#define APART_US (SEC / 2) /* as in redlock doctor */
#define BREAKS_US (60 * SEC) /* BREAKS_MOST breaks within this time are too many, and are shown for as long */

/* --- reports --- */

bool member_may_log(struct members *ms, struct member *m, bool again)
{
	struct instant now = ms->core->now, full = instant_max(m->log_room.full, now);

	if (instant_diff(full, now) > (LINES_AT_ONCE - 1) * LINES_APART_US) {
		m->log_room.left_out += !again;
		return false;
	}
	m->log_room.full = instant_add(full, LINES_APART_US);
	if (m->log_room.left_out > 0)
		core_log(ms->core, LOG_WARN, "left-out", "node=%s lines=%u", ms->core->conf.label[m->index], m->log_room.left_out);
	m->log_room.left_out = 0;
	return true;
}

static bool member_is_slow(const struct members *ms, const struct member *m)
{
	return m->stalled || (m->state == MEMBER_JOINED && !m->refusal.defect && member_is_far(ms, m));
}

/* It has broken too often until now: between two breaks all seems well. */
static bool member_breaks(const struct members *ms, const struct member *m)
{
	struct instant first = m->breaks.at[0], last = m->breaks.at[BREAKS_MOST - 1];

	return first.us && instant_diff(last, first) < BREAKS_US && instant_diff(ms->core->now, last) < BREAKS_US;
}

static bool member_is_late(const struct members *ms, const struct member *m)
{
	return m->late_text[0] && instant_diff(ms->core->now, m->late_at) < LATE_SHOWN_US;
}

struct trouble member_trouble(const struct members *ms, const struct member *m)
{
	if (member_is_slow(ms, m))
		return (struct trouble){member_is_far(ms, m) ? m->far : "it has not answered within redis.timeout", DEFECT_SLOW};
	if (member_refuses(m))
		return (struct trouble){m->refusal.text, m->refusal.defect};
	if (m->reason[0])
		return (struct trouble){m->reason, m->defect};
	if (m->state != MEMBER_DOWN && member_breaks(ms, m))
		return (struct trouble){m->breaks.text, DEFECT_BREAKS};
	if (m->state == MEMBER_JOINED && m->misnamed.defect)
		return (struct trouble){m->misnamed.text, m->misnamed.defect};
	if (m->state == MEMBER_JOINED && m->unwatched.defect)
		return (struct trouble){m->unwatched.text, m->unwatched.defect};
	if (m->state == MEMBER_JOINED && !m->silent[0] && m->lesser.defect)
		return (struct trouble){m->lesser.text, m->lesser.defect};
	if (m->state == MEMBER_JOINED && !m->silent[0] && m->denial.defect && instant_diff(ms->core->now, m->denial.at) < DENIAL_SHOWN_US)
		return (struct trouble){m->denial.text, m->denial.defect};
	if (m->silent[0])
		return (struct trouble){m->silent, m->silence};
	if (m->state == MEMBER_JOINED && member_is_late(ms, m))
		return (struct trouble){m->late_text, DEFECT_LATE};
	if (m->state == MEMBER_JOINED && m->apart.defect)
		return (struct trouble){m->apart.text, m->apart.defect};
	return (struct trouble){"", DEFECT_NONE};
}

const char *member_state_reported(const struct members *ms, const struct member *m)
{
	if (member_is_slow(ms, m))
		return "slow";
	return member_state_word(member_refuses(m) ? MEMBER_REFUSED : m->state);
}

/* Gives one store for each cause. */
static void list_troubles(const struct members *ms, bool serving, char *text, size_t size)
{
	uint64_t named = 0;
	size_t at = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < ms->core->conf.nodes && at < size; i++) {
		struct trouble trouble = member_trouble(ms, &ms->node[i]);

		if (member_serves(ms, &ms->node[i]) != serving || !trouble.defect || trouble.defect == DEFECT_SLOW || (named >> trouble.defect & 1))
			continue;
		named |= UINT64_C(1) << trouble.defect;
		at += (size_t)snprintf(text + at, size - at, "; %s: %s", ms->core->conf.label[i], trouble.text);
	}
}

_Static_assert(DEFECT_N <= 64, "one bit for each");

void health_show_serving(const struct members *ms, char *text, size_t size)
{
	list_troubles(ms, true, text, size);
}

void health_show_missing(const struct members *ms, char *text, size_t size)
{
	static const char *const word[] = {"in quarantine", "refused", "down", "slow", "slower than redis.timeout", "being asked"};
	enum { QUARANTINED, REFUSED, DOWN, SLOW, FAR, ASKED, MISSING_N };
	static const int kind[] = {
		[MEMBER_DOWN] = DOWN, [MEMBER_PROBING] = ASKED, [MEMBER_QUARANTINED] = QUARANTINED, [MEMBER_JOINED] = SLOW, [MEMBER_REFUSED] = REFUSED};
	unsigned count[MISSING_N] = {0};
	size_t at = 0;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		const struct member *m = &ms->node[i];

		if (member_refuses(m))
			count[REFUSED]++;
		else if (!member_serves(ms, m))
			count[m->state == MEMBER_JOINED && member_is_far(ms, m) ? FAR : m->stalled ? SLOW : kind[m->state]]++;
	}
	text[0] = '\0';
	for (int i = 0; i < MISSING_N && at < size; i++)
		if (count[i])
			at += (size_t)snprintf(text + at, size - at, "%s%u %s", at ? ", " : "", count[i], word[i]);
	if (count[FAR] && at < size)
		at += (size_t)snprintf(text + at, size - at, " (%" PRId64 " ms)", ms->core->conf.timeout_us / MSEC);
	if (at < size)
		list_troubles(ms, false, text + at, size - at);
}

unsigned members_serving(const struct members *ms)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		n += member_serves(ms, &ms->node[i]);
	return n;
}

unsigned members_voting(const struct members *ms)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		n += ms->node[i].state == MEMBER_JOINED && !ms->node[i].refusal.defect && !member_is_far(ms, &ms->node[i]);
	return n;
}

/* --- signs --- */

/* "it refuses SET: OOM command not allowed …" */
static void health_words(char *to, size_t size, struct span text)
{
	const char *blank = text.n ? memchr(text.p, ' ', text.n) : NULL;
	size_t word = blank ? (size_t)(blank - text.p) : text.n, rest = blank ? text.n - word - 1 : 0;

	to[0] = '\0';
	if (text.n && word == 0)
		snprintf(to, size, "%.*s", (int)rest, text.p + 1);
	else if (text.n)
		snprintf(to, size, "it refuses %.*s: %.*s", (int)word, text.p, (int)rest, blank ? blank + 1 : "");
}

/* Logs what was refused, or is no longer refused. While it is probed or refused, its state says enough. */
static void health_log(struct members *ms, struct member *m, enum log_level level, struct ill *ill, const char *note, bool again)
{
	enum defect now = ill->defect, was = ill->logged;

	if (now == was || (m->state != MEMBER_JOINED && m->state != MEMBER_QUARANTINED) || !member_may_log(ms, m, again))
		return;
	ill->logged = now;
	core_log(ms->core, now ? level : LOG_NOTICE, "node", "node=%s state=%s cause=%s %s=%s", ms->core->conf.label[m->index], member_state_reported(ms, m),
	         defect_table[now ? now : was].word, now ? "reason" : "note", core_quoted(ms->core, span_of(now ? ill->text : note)));
}

static bool health_becomes(struct ill *ill, enum defect defect, struct span refusal)
{
	bool same = ill->defect == defect;

	ill->defect = defect;
	health_words(ill->text, sizeof(ill->text), refusal);
	return same;
}

/* Limits and jobs are refused in that case: see home.h. Locks need no names. */
static void health_note_name(struct members *ms, struct member *m, const struct probe *probe)
{
	enum defect defect = m->ours && probe->called.n && !span_equal(probe->called, span_of(core_calls(ms->core, m->index))) ? DEFECT_MISNAMED : DEFECT_NONE;
	bool same = health_becomes(&m->misnamed, defect, SPAN(""));

	if (defect)
		snprintf(m->misnamed.text, sizeof(m->misnamed.text), "RATE and jobs are refused: the other daemons call it %.*s", (int)probe->called.n,
		         probe->called.p);
	health_log(ms, m, LOG_ERROR, &m->misnamed, "all daemons call it alike", same);
}

/* By how much the store's clock is ahead of this host's, at least; negative: it is slow. */
static int64_t clock_ahead(const struct members *ms, const struct member *m)
{
	int64_t host = ms->core->wall_us - ms->core->now.us, ahead = m->clock.low - host, behind = host - m->clock.high;

	return ahead > 0 ? ahead : behind > 0 ? -behind : 0;
}

static bool clocks_agree(const struct member_clock *a, const struct member_clock *b)
{
	return b->known && a->low - b->high <= APART_US && b->low - a->high <= APART_US;
}

/* Needs at least two stores: a single one proves nothing against this host. */
static bool clock_is_as_most(const struct members *ms, const struct member *m)
{
	unsigned alike = 0;

	for (unsigned i = 0; m->clock.known && i < ms->core->conf.nodes; i++)
		alike += ms->node[i].connected && clocks_agree(&m->clock, &ms->node[i].clock);
	return alike >= 2 && alike > ms->core->conf.nodes / 2;
}

static bool clock_is_apart(int64_t ahead_us, bool was)
{
	return llabs(ahead_us) > (was ? APART_US - APART_US / 5 : APART_US); /* with one threshold it would come and go */
}

static void clock_words(char *to, size_t size, const char *whose, int64_t ahead_us, const char *others)
{
	int64_t apart = llabs(ahead_us);

	snprintf(to, size, "%s clock is %" PRId64 ".%" PRId64 " s %s %s", whose, apart / SEC, apart % SEC / (SEC / 10), ahead_us > 0 ? "ahead of" : "behind",
	         others);
}

/* This host's clock, if most stores agree: then the clock of the stores is one of theirs. */
static void health_note_host_clock(struct members *ms)
{
	int64_t ahead = ms->core->wall_us - members_clock_us(ms, ms->core->now);
	bool was = ms->host_apart;
	char text[80];

	ms->host_apart = clock_is_apart(ahead, was);
	if (ms->host_apart == was)
		return;
	clock_words(text, sizeof(text), "this host's", ahead, "most stores'");
	core_log(ms->core, was ? LOG_NOTICE : LOG_WARN, "clock", "%s=%s", was ? "note" : "reason",
	         core_quoted(ms->core, span_of(was ? "this host's clock and most stores' agree" : text)));
}

/* Includes a single store, which cannot be compared with another. */
static void health_note_clock(struct members *ms, struct member *m)
{
	bool as_most = clock_is_as_most(ms, m), apart, same;
	int64_t ahead = clock_ahead(ms, m);

	if (as_most)
		health_note_host_clock(ms);
	apart = ms->core->conf.shared && m->clock.known && !(as_most && ms->host_apart) && clock_is_apart(ahead, m->apart.defect);
	same = health_becomes(&m->apart, apart ? DEFECT_CLOCK : DEFECT_NONE, SPAN(""));
	if (apart)
		clock_words(m->apart.text, sizeof(m->apart.text), "its", ahead, "this host's");
	health_log(ms, m, LOG_WARN, &m->apart, as_most && ms->host_apart ? "most stores' clocks and its agree" : "its clock and this host's agree", same);
}

static void health_log_silence(struct members *ms, struct member *m, bool again)
{
	if (!m->silence_unlogged || !member_may_log(ms, m, again))
		return;
	m->silence_unlogged = false;
	if (*m->silent)
		core_log(ms->core, LOG_WARN, "subscriber", "node=%s state=refused reason=%s note=\"until then waiters ask it by timer\"",
		         ms->core->conf.label[m->index], core_quoted(ms->core, span_of(m->silent)));
	else
		core_log(ms->core, LOG_NOTICE, "subscriber", "node=%s state=subscribed", ms->core->conf.label[m->index]);
}

void member_subscribed(struct members *ms, unsigned node, enum defect defect, struct span refusal)
{
	struct member *m = &ms->node[node];
	char text[sizeof(m->silent)];

	core_keep(text, sizeof(text), refusal);
	if (strcmp(text, m->silent) == 0)
		return;
	strcpy(m->silent, text);
	m->silence = defect;
	m->silence_unlogged = true;
	health_log_silence(ms, m, false);
}

void member_unwatched(struct members *ms, unsigned node, enum defect defect, struct span reason, struct span address)
{
	struct member *m = &ms->node[node];
	bool same = m->unwatched.defect == defect;

	m->unwatched.defect = defect;
	core_keep(m->unwatched.text, sizeof(m->unwatched.text), reason);
	if (address.n > 0)
		core_keep(m->address, sizeof(m->address), address);
	health_log(ms, m, LOG_WARN, &m->unwatched, "that is over", same);
}

void health_note_probe(struct members *ms, struct member *m, const struct probe *probe)
{
	bool denied = m->lesser.defect || m->refusal.defect;
	bool same = health_becomes(&m->lesser, probe->lesser ? probe->defect : DEFECT_NONE, probe->lesser ? probe->refusal : SPAN(""));

	health_log(ms, m, LOG_WARN, &m->lesser, "it no longer refuses that", same);
	same = health_becomes(&m->refusal, probe->lesser ? DEFECT_NONE : probe->defect, probe->lesser ? SPAN("") : probe->refusal);
	ms->gained |= !same && !m->refusal.defect;
	if (denied && !m->lesser.defect && !m->refusal.defect)
		m->denial.defect = DEFECT_NONE; /* the denial was about the same */
	health_log(ms, m, LOG_ERROR, &m->refusal, "it refuses nothing any more", same);
	health_note_name(ms, m, probe);
	health_note_clock(ms, m);
	health_log_silence(ms, m, true);
}

/*
 * Refusals that depend on the key, or on a command that the probe does not try. All others concern the whole server: a probe shows them unless they come and
 * go, as with a server that is almost full.
 */
static bool health_is_of_one_call(enum defect defect)
{
	return defect == DEFECT_PERMISSION || defect == DEFECT_COMMAND || defect == DEFECT_KEY || defect == DEFECT_OTHER;
}

/* name: of the lock, only for the log; empty: it is about no lock. */
static void health_note_denial(struct members *ms, struct member *m, enum defect defect, struct span name, const char *what, struct span text)
{
	bool known = m->denial.defect == defect && instant_diff(ms->core->now, m->denial.at) < DENIAL_SHOWN_US;
	char now[sizeof(m->denial.text)];

	snprintf(now, sizeof(now), "%s%.*s", what, (int)text.n, text.n ? text.p : "");
	known &= (name.n == 0 && defect != DEFECT_KEY) || strcmp(m->denial.text, now) == 0; /* each of several locks and keys is logged */
	m->denial.defect = defect;
	m->denial.at = ms->core->now;
	strcpy(m->denial.text, now);
	if (!known && member_may_log(ms, m, false))
		core_log(ms->core, LOG_WARN, "node", "node=%s state=%s cause=%s%s%s reason=%s", ms->core->conf.label[m->index], member_state_reported(ms, m),
		         defect_table[defect].word, name.n ? " name=" : "", name.n ? core_quoted(ms->core, name) : "",
		         core_quoted(ms->core, span_of(m->denial.text)));
}

#define WRONG_TYPE "it has a key of another type under the name of"
#define UNQUEUED   "it gives no place in the queue of"
#define OF_KEY_MAX (4 * NAME_MAX_BYTES + 96)

/* The name of the lock or slot. */
static struct span health_of_key(struct members *ms, struct span key, const char *what, char named[OF_KEY_MAX])
{
	bool slot = span_starts(key, SPAN(SLOT_PREFIX));
	struct span name = slot ? (struct span){key.p + sizeof(SLOT_PREFIX) - 1, key.n - (sizeof(SLOT_PREFIX) - 1)} : name_unescaped(key);

	snprintf(named, OF_KEY_MAX, "%s the %s %s: ", what, slot ? "slot" : "lock", core_quoted(ms->core, name));
	return name;
}

static void health_note_key(struct members *ms, unsigned node, struct span key, enum defect defect, const char *what, struct span text)
{
	char named[OF_KEY_MAX];
	struct span name = health_of_key(ms, key, what, named);

	health_note_denial(ms, &ms->node[node], defect, name, named, text);
}

void health_note_wrong_type(struct members *ms, unsigned node, struct span key)
{
	health_note_key(ms, node, key, DEFECT_KEY, WRONG_TYPE, SPAN("it is no string"));
}

void health_note_unqueued(struct members *ms, const struct answer *a, struct span key)
{
	if (health_is_of_one_call(a->defect))
		health_note_key(ms, a->node, key, a->defect, UNQUEUED, a->text);
}

void health_forget_key(struct members *ms, unsigned node, struct span key, bool queued)
{
	struct member *m = &ms->node[node];
	char named[OF_KEY_MAX];

	(void)health_of_key(ms, key, WRONG_TYPE, named);
	if (strncmp(m->denial.text, named, strlen(named)) == 0)
		m->denial.defect = DEFECT_NONE;
	(void)health_of_key(ms, key, UNQUEUED, named);
	if (queued && strncmp(m->denial.text, named, strlen(named)) == 0)
		m->denial.defect = DEFECT_NONE;
}

bool health_note_failure(struct members *ms, struct member *m, const struct answer *a)
{
	bool probed, suspected;

	if (a->unsent || a->defect == DEFECT_NONE || !m->connected || m->state != MEMBER_JOINED || member_owns_call(a->call))
		return false;
	if (m->refusal.defect)
		return false;
	probed = instant_diff(ms->core->now, m->asked_at) < PROBE_APART_US;
	suspected = m->asked == ASKED_NOTHING && m->asked_at.us == m->suspect_at.us; /* and that probe was carried out */
	if (health_is_of_one_call(a->defect) || (probed && suspected))
		health_note_denial(ms, m, a->defect, SPAN(""), "it refused a call: ", a->text);
	if (!probed)
		m->suspect_at = ms->core->now;
	return !probed;
}

static void health_log_far(struct members *ms, struct member *m, bool again)
{
	bool far = member_is_far(ms, m);

	if (far == m->far_logged || !member_may_log(ms, m, again))
		return;
	m->far_logged = far;
	core_log(ms->core, far ? LOG_ERROR : LOG_NOTICE, "node-slow", "node=%s %s%s", ms->core->conf.label[m->index],
	         far ? "reason=" : "note=\"it answers in time again\"", far ? core_quoted(ms->core, span_of(m->far)) : "");
}

/* A single answer after the timeout measures a pause, not the network, and counts as the timeout. */
void health_note_trip(struct members *ms, struct member *m, int64_t us)
{
	int64_t timeout = ms->core->conf.timeout_us;
	bool was = member_is_far(ms, m), late = us > timeout;

	m->late = late ? m->late + 1 : 0;
	if (late && m->late >= LATE_IS_SLOW)
		m->rtt_us = was ? (m->rtt_us + us) / 2 : us;
	else if (!m->rtt_us)
		m->rtt_us = late ? timeout : us;
	else if (!late)
		m->rtt_us = (m->rtt_us + us) / 2; /* after it was far */
	if (member_is_far(ms, m)) {
		m->lates[0].n = m->lates[1].n = 0;
		m->late_text[0] = '\0';
		snprintf(m->far, sizeof(m->far), "slower than redis.timeout (%" PRId64 " ms): its round trip is %" PRId64 ".%" PRId64 " ms", timeout / MSEC,
		         m->rtt_us / MSEC, m->rtt_us % MSEC / (MSEC / 10));
	}
	health_log_far(ms, m, was == member_is_far(ms, m));
}

static uint64_t member_trips(const struct member *m)
{
	uint64_t n = 0;

	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
		n += m->trips.count[i];
	return n;
}

void health_note_late(struct members *ms, struct member *m, struct instant sent)
{
	struct instant now = ms->core->now;
	uint64_t n, trips, timed = member_trips(m);
	int64_t late_us, all_us;
	bool was = member_is_late(ms, m);

	if (instant_before(sent, m->late_at) || member_is_far(ms, m))
		return; /* the same pause delayed it; or all are late */
	if (!m->lates[0].n || instant_diff(now, m->lates[0].since) >= LATE_PART_US) {
		m->lates[1] = m->lates[0];
		m->lates[0].since = now;
		m->lates[0].trips = timed;
		m->lates[0].n = 0;
		m->lates[0].us = 0;
	}
	if (m->lates[1].n && instant_diff(now, m->lates[1].since) >= 2 * LATE_PART_US)
		m->lates[1].n = 0;
	m->lates[0].n++;
	m->lates[0].us += instant_diff(now, instant_max(sent, m->late_at));
	m->late_at = now;
	n = m->lates[0].n + m->lates[1].n;
	trips = timed + 1 - m->lates[m->lates[1].n > 0].trips;
	trips = trips > n ? trips : n;
	/*
	 * Round trips that were under way in one pause count as one. A busy store that pauses often has few of them, but for much of the time no answer
	 * comes.
	 */
	late_us = m->lates[0].us + (m->lates[1].n ? m->lates[1].us : 0);
	all_us = instant_diff(now, m->lates[m->lates[1].n > 0].since) + late_us / (int64_t)n;
	m->late_text[0] = '\0';
	if (n >= LATE_LEAST && n * LATE_MOST >= trips)
		snprintf(m->late_text, sizeof(m->late_text), "%u %% of the round trips of the last minute were slower than redis.timeout (%" PRId64 " ms)",
		         (unsigned)(n * 100 / trips), ms->core->conf.timeout_us / MSEC);
	else if (n >= LATE_LEAST && late_us * LATE_MOST >= all_us)
		snprintf(m->late_text, sizeof(m->late_text), "for %u %% of the last minute it did not answer within redis.timeout (%" PRId64 " ms)",
		         (unsigned)(late_us * 100 / all_us), ms->core->conf.timeout_us / MSEC);
	if (m->late_text[0] && !was && member_may_log(ms, m, false))
		core_log(ms->core, LOG_WARN, "node-slow", "node=%s reason=%s", ms->core->conf.label[m->index], core_quoted(ms->core, span_of(m->late_text)));
}

void health_note_stall(struct members *ms, struct member *m)
{
	m->stalled = true;
	m->stalled_at = ms->core->now;
	if (!member_is_far(ms, m) && member_may_log(ms, m, false))
		core_log(ms->core, LOG_WARN, "node-slow", "node=%s timeout_ms=%" PRId64, ms->core->conf.label[m->index], ms->core->conf.timeout_us / MSEC);
}

struct trouble health_note_break(struct members *ms, struct member *m, struct trouble why)
{
	memmove(m->breaks.at, m->breaks.at + 1, (BREAKS_MOST - 1) * sizeof(m->breaks.at[0]));
	m->breaks.at[BREAKS_MOST - 1] = ms->core->now;
	if (!member_breaks(ms, m))
		return why;
	snprintf(m->breaks.text, sizeof(m->breaks.text), "its connection broke %d times within %" PRId64 " s: %s", BREAKS_MOST,
	         instant_diff(ms->core->now, m->breaks.at[0]) / SEC + 1, why.text);
	return (struct trouble){m->breaks.text, DEFECT_BREAKS};
}
