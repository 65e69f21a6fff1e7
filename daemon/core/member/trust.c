/* SPDX-License-Identifier: BSD-2-Clause */
/* See trust.h. */
#include "daemon/core/member/trust.h"

#include "daemon/core/member/probe.h"
#include "daemon/core/member/quorum.h"

#define TRUST_WAIT_US SEC

static unsigned trust_count_blank(const struct members *ms)
{
	unsigned blank = 0;

	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		blank += ms->node[i].blank;
	return blank;
}

/* All stores are blank; or a quorum is, and the slower ones have had their time. */
static bool trust_is_due(const struct members *ms, unsigned blank)
{
	unsigned nodes = ms->core->conf.nodes;

	return blank == nodes || (blank >= quorum_of(nodes) && !instant_before(ms->core->now, ms->trust_until));
}

/* A store that is being asked at this moment follows when it answers: see judge_is_trusted. */
void trust_blank(struct members *ms)
{
	unsigned blank = trust_count_blank(ms);

	if (ms->trusting && ms->trust_until.us == INT64_MAX && blank >= quorum_of(ms->core->conf.nodes))
		ms->trust_until = instant_add(ms->core->now, TRUST_WAIT_US);
	if (ms->trusting && !trust_is_due(ms, blank))
		return;
	for (unsigned i = 0; i < ms->core->conf.nodes; i++)
		if (ms->node[i].blank && ms->node[i].asked == ASKED_NOTHING)
			member_mark(ms, &ms->node[i], SPAN(""), 'j');
}

void trust_withdraw(struct members *ms)
{
	ms->trusting = false;
	for (unsigned i = 0; i < ms->core->conf.nodes; i++) {
		struct member *m = &ms->node[i];

		if (m->blank && m->asked == ASKED_NOTHING)
			member_mark(ms, m, SPAN(""), 'q');
		m->blank = false;
	}
}
