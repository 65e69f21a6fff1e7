/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a store serves: apart from its membership, what that locks need it has refused, and whether its answers come in time. A store that does not serve
 * is still asked about what is held, and does as much as it can: one without memory still renews and releases. It is asked for nothing new, and counts for no
 * quorum. A store that refuses only what limits, jobs, queues, slots or messages need does serve, and its trouble is reported.
 */
#ifndef CORE_HEALTH_H
#define CORE_HEALTH_H

#include "daemon/core/member/members.h"

/* What keeps a store from serving, or from serving well. */
struct trouble {
	const char *text; /* "" if all is well */
	enum defect defect; /* DEFECT_NONE also if its memory is the cause */
};
/* The text is in memory of the effects, or of the store. */
struct trouble member_trouble(const struct members *ms, const struct member *m);
/* Why stores do not serve, for people: "2 in quarantine, 1 down; r3: connect: Connection refused". Gives an example of each cause. */
void health_show_missing(const struct members *ms, char *text, size_t size);
/* What serving stores have refused, or lack: "; r3: it refused a call: NOPERM no". "" if nothing. */
void health_show_serving(const struct members *ms, char *text, size_t size);
/* Its state, as reported to people and programs. */
const char *member_state_reported(const struct members *ms, const struct member *m);

/*
 * Whether one more line may be logged about it: LINES_AT_ONCE at once, then one each LINES_APART_US: a store that comes and goes fills no log. The
 * next line says how many were left out. again: this line was left out before, and is counted already.
 */
bool member_may_log(struct members *ms, struct member *m, bool again);
#define LINES_AT_ONCE     10
#define LINES_APART_US (10 * SEC)

unsigned members_serving(const struct members *ms);
unsigned members_voting(const struct members *ms); /* slow ones count as well */

/* The store publishes for this daemon, or refuses to. Each change is logged once: meanwhile timers replace the messages. */
void member_subscribed(struct members *ms, unsigned node, enum defect defect, struct span refusal);
/* Whether sentinels confirm that it is still the master, and agree; or its name leads to one server. address: see EVENT_UNWATCHED. */
void member_unwatched(struct members *ms, unsigned node, enum defect defect, struct span reason, struct span address);
/* A probe was carried out: notes what the store refuses, or no longer refuses. */
void health_note_probe(struct members *ms, struct member *m, const struct probe *probe);
/* A call was not carried out. True: the store has refused it, and is to be probed at once. */
bool health_note_failure(struct members *ms, struct member *m, const struct answer *a);
/* Its connection broke for this reason. Returns what to report, and the defect. From the third time within a minute, the report is that it breaks so often. */
struct trouble health_note_break(struct members *ms, struct member *m, struct trouble why);
/* It has a key of another type under the name of a lock or slot; the key is named as in calls. */
void health_note_wrong_type(struct members *ms, unsigned node, struct span key);
/* A ticket was not queued: notes why. */
void health_note_unqueued(struct members *ms, const struct answer *a, struct span key);
/* It has executed a call about this lock or slot, whose key is ours, or of the right type; queued: it also queued the ticket. */
void health_forget_key(struct members *ms, unsigned node, struct span key, bool queued);
static inline void health_note_served(struct members *ms, unsigned node, struct span key, bool queued)
{
	if (ms->node[node].denial.defect)
		health_forget_key(ms, node, key, queued);
}
/* A call was answered after this time, and the store is slow, or was, or this answer is late. */
void health_note_trip(struct members *ms, struct member *m, int64_t us);
/* A call that was sent at this moment was answered after the timeout. */
void health_note_late(struct members *ms, struct member *m, struct instant sent);
/* A call is unanswered for longer than the timeout. */
void health_note_stall(struct members *ms, struct member *m);

#endif
