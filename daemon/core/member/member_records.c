/* SPDX-License-Identifier: BSD-2-Clause */
/* See member_records.h. */
#include "daemon/core/member/member_records.h"

#include "daemon/core/member/clock_bounds.h"
#include "daemon/core/member/fences.h"

#include <string.h>

struct journal_record members_record(struct members *ms)
{
	return (struct journal_record){.kind = JOURNAL_STORES,
	                               .marker = span_of(ms->cfg),
	                               .seen = fences_most(ms),
	                               .delay_us = ms->other_us,
	                               .until_us = ms->other_until.us,
	                               .flags = ms->trusting ? JOURNAL_TRUSTING : 0};
}

static struct journal_record record_begin(const struct members *ms, const struct member *m, enum journal_kind kind)
{
	return (struct journal_record){.kind = kind, .name = span_of(ms->core->conf.label[m->index])};
}

static struct journal_record record_of_marker(const struct members *ms, const struct member *m, int64_t what, const char *marker)
{
	struct journal_record r = record_begin(ms, m, JOURNAL_MARKER);

	r.flags = what;
	r.marker = span_of(marker);
	return r;
}

/* Of a jump that is not judged yet the next process learns again, by what the clock was before. */
static struct clock_bounds clock_to_tell(const struct member *m)
{
	if (m->jump.open)
		return m->jump.before;
	return m->clock.known ? clock_now(&m->clock) : (struct clock_bounds){0};
}

static struct journal_record record_of_store(const struct members *ms, const struct member *m)
{
	struct journal_record r = record_begin(ms, m, JOURNAL_STORE);
	struct clock_bounds clock = clock_to_tell(m);

	r.value = span_of(m->run_id);
	r.marker = span_of(m->marker);
	r.address = span_of(m->address);
	r.seen = m->fence_seen;
	r.joined = m->fence_joined;
	r.issued_us = m->issued_us;
	r.evicted = m->evicted;
	r.flags = (m->was_ours ? JOURNAL_WAS_OURS : 0) | (clock.known ? JOURNAL_CLOCK : 0) | (clock.known && m->met.done ? JOURNAL_MET : 0);
	r.low_us = clock.low;
	r.high_us = clock.high;
	r.since_us = clock.at.us;
	return r;
}

static struct journal_record record_of_quarantine(const struct members *ms, const struct member *m)
{
	struct journal_record r = record_begin(ms, m, JOURNAL_QUARANTINE);

	r.marker = span_of(m->quarantine.marker);
	r.since_us = m->quarantine.since.us;
	r.until_us = m->quarantine.end.us;
	r.line = span_of(m->quarantine.why);
	r.stamp_us = m->quarantine.first.us;
	r.sequence = m->quarantine.losses;
	r.note = span_of(m->quarantine.cause ? defect_table[m->quarantine.cause].word : "");
	return r;
}

unsigned member_records(const struct members *ms, unsigned node, struct journal_record ret_record[MEMBER_RECORDS_MOST])
{
	const struct member *m = &ms->node[node];
	unsigned n = 0;

	if (!*m->run_id)
		return 0; /* it has never answered */
	ret_record[n++] = record_of_store(ms, m);
	if (*m->vouched.marker) {
		ret_record[n] = record_of_marker(ms, m, JOURNAL_VOUCHED, m->vouched.marker);
		ret_record[n].since_us = m->vouched.at.us;
		ret_record[n++].low_us = m->vouched.clock_us;
	}
	if (*m->replaced.j)
		ret_record[n++] = record_of_marker(ms, m, JOURNAL_REPLACED_J, m->replaced.j);
	if (*m->replaced.q)
		ret_record[n++] = record_of_marker(ms, m, JOURNAL_REPLACED_Q, m->replaced.q);
	if (m->evidence.why) {
		ret_record[n] = record_of_marker(ms, m, JOURNAL_EVIDENCE, m->evidence.marker);
		ret_record[n++].why = m->evidence.why;
	}
	if (*m->quarantine.marker)
		ret_record[n++] = record_of_quarantine(ms, m);
	return n;
}

/* --- back --------------------------------------------------------------------------------------------------------------- */

bool members_restore(struct members *ms, const struct journal_record *r)
{
	ms->trusting &= (r->flags & JOURNAL_TRUSTING) != 0;
	if (!span_equal(r->marker, span_of(ms->cfg)))
		return false;
	ms->fence_most = r->seen;
	ms->other_us = r->delay_us;
	ms->other_until.us = r->until_us;
	return true;
}

static void clock_restore(struct members *ms, struct member *m, const struct journal_record *r)
{
	struct member_clock *c = &m->clock;

	c->known = c->again = true;
	c->low = r->low_us;
	c->high = r->high_us;
	c->at = c->sent = (struct instant){r->since_us};
	c->firm = clock_now(c);
	m->met.done = r->flags & JOURNAL_MET;
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		ms->node[i].beside[m->index] = c->firm;
}

static bool store_restore(struct members *ms, struct member *m, const struct journal_record *r)
{
	if (r->value.n >= sizeof(m->run_id) || r->marker.n >= MARKER_MAX || r->low_us > r->high_us)
		return false;
	core_keep(m->run_id, sizeof(m->run_id), r->value);
	core_keep(m->marker_text[0], sizeof(m->marker_text[0]), r->marker);
	m->marker = m->marker_text[0];
	core_keep(m->address, sizeof(m->address), r->address);
	m->fence_seen = r->seen;
	m->fence_joined = r->joined;
	m->issued_us = r->issued_us;
	m->evicted = r->evicted;
	m->was_ours = r->flags & JOURNAL_WAS_OURS;
	if (r->flags & JOURNAL_CLOCK)
		clock_restore(ms, m, r);
	return true;
}

static bool marker_restore(struct member *m, const struct journal_record *r)
{
	if (r->marker.n >= MARKER_MAX)
		return false;
	if (r->flags & JOURNAL_VOUCHED) {
		core_keep(m->vouched.marker, sizeof(m->vouched.marker), r->marker);
		m->vouched.at.us = r->since_us;
		m->vouched.clock_us = r->low_us;
	} else if (r->flags & JOURNAL_REPLACED_J) {
		core_keep(m->replaced.j, sizeof(m->replaced.j), r->marker);
	} else if (r->flags & JOURNAL_REPLACED_Q) {
		core_keep(m->replaced.q, sizeof(m->replaced.q), r->marker);
	} else if (r->flags & JOURNAL_EVIDENCE) {
		/* What a later version knows of as well is a sign that memory was lost. */
		m->evidence.why = r->why <= EVIDENCE_JUMPED ? (enum evidence)r->why : EVIDENCE_FENCE;
		core_keep(m->evidence.marker, sizeof(m->evidence.marker), r->marker);
	}
	return true;
}

static bool quarantine_restore(struct member *m, const struct journal_record *r)
{
	char cause[32];

	if (r->marker.n >= MARKER_MAX)
		return false;
	core_keep(m->quarantine.marker, sizeof(m->quarantine.marker), r->marker);
	core_keep(m->quarantine.why, sizeof(m->quarantine.why), r->line);
	m->quarantine.since.us = r->since_us;
	m->quarantine.end.us = r->until_us;
	m->quarantine.first.us = r->stamp_us;
	m->quarantine.losses = (unsigned)r->sequence;
	core_keep(cause, sizeof(cause), r->note);
	m->quarantine.cause = r->note.n ? defect_of_word(cause) : DEFECT_NONE;
	return true;
}

bool member_restore(struct members *ms, const struct journal_record *r)
{
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		struct member *m = &ms->node[i];

		if (!span_equal(r->name, span_of(ms->core->conf.label[i])))
			continue;
		return r->kind == JOURNAL_STORE    ? store_restore(ms, m, r)
		       : r->kind == JOURNAL_MARKER ? marker_restore(m, r)
		                                   : quarantine_restore(m, r);
	}
	return true;
}
