/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated Redis server: a model store (strings, hashes, sorted sets, TTL on the server's wall clock, script cache, publish) on which the shipped Lua
 * scripts run in process, in the Lua version that Redis embeds. It has no clock and draws nothing: the same calls give the same answers.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include "daemon/core/event/event.h"

struct memory;
struct sim_node;

struct sim_node_conf {
	const char *key_prefix; /* "lock:" */
	int64_t skew_us, tolerance_us; /* of daemon/core/member/members.h */
	const char *run_id; /* 40 characters; copied */
};

struct sim_node *sim_node_new(const struct sim_node_conf *conf);
void sim_node_free(struct sim_node *n);

/*
 * Carries out calls as the daemon's upstream sends them: those of a batch (equal marker, all ACQUIRE, EXTEND, RELEASE) as one EVALSHA of the shipped scripts,
 * PROBE and MARK on their own. wall_us: the server's clock (TIME) at the start of the command. ret_answer has one slot per call, in order; the spans are valid
 * until the next sim_node_… call.
 */
void sim_node_call(struct sim_node *n, const struct call *call, size_t count, int64_t wall_us, struct answer *ret_answer);

/*
 * From now on the node is the memory store of its daemon, which is injected: all calls go there, and none of what happens to servers below may. NULL: the
 * daemon does not run. sim_node_wall: what that store's clock shows at this moment of its host.
 */
void sim_node_embed(struct sim_node *n, struct memory *memory);
int64_t sim_node_wall(const struct sim_node *n, struct instant now);

/* What happens to servers. */
void sim_node_restart_blank(struct sim_node *n, const char *run_id);
void sim_node_restart_whole(struct sim_node *n, const char *run_id,
			    int64_t wall_us); /* all writes persisted; keys that expired meanwhile are gone */
void sim_node_snapshot(struct sim_node *n);   /* remembers the present data set */
void sim_node_restart_old(struct sim_node *n, const char *run_id,
			  int64_t wall_us); /* with the data of the last snapshot; blank if there is none */
/* The whole host returns to the last snapshot, identity included. False: there is none. */
bool sim_node_roll_back(struct sim_node *n, int64_t wall_us);
void sim_node_flush(struct sim_node *n);    /* FLUSHALL: run_id stays */
/*
 * Commands are answered by this error; NULL: no longer. As in Redis, OOM refuses only what needs memory (SET, not DEL), and nothing in a script that has
 * written; READONLY, MISCONF and NOREPLICAS refuse only writes; all others refuse every command. The error stays over restarts, as the role does.
 */
void sim_node_fail(struct sim_node *n, const char *error);
bool sim_node_is_well(const struct sim_node *n); /* no error, and no replica */
void sim_node_set_role(struct sim_node *n, const char *role,
		       const char *replid); /* "slave" refuses writes with READONLY; a restart gives its own replid */
void sim_node_evict(struct sim_node *n, struct span name); /* removes the lock key and counts it in evicted_keys */
void sim_node_put(struct sim_node *n, struct span name, struct span value,
		  int64_t expires_ms);                                            /* SET by a foreign client; 0 = no TTL */
void sim_node_put_hash(struct sim_node *n, struct span name, int64_t expires_ms); /* sets a key of another type */
void sim_node_delete(struct sim_node *n, struct span name);
/* Called for each PUBLISH; returns the number of subscribers. NULL: there is none. */
void sim_node_publish_to(struct sim_node *n, int64_t (*published)(void *context, struct span channel, struct span message),
			 void *context);

/* What a checker looks at; looking changes nothing. expires_ms 0: no TTL. The value of a key of another type is "". */
struct span sim_node_marker(struct sim_node *n);
int64_t sim_node_fence(struct sim_node *n);
bool sim_node_get(struct sim_node *n, struct span name, int64_t wall_us, struct span *ret_value, int64_t *ret_expires_ms);
void sim_node_set_replid(struct sim_node *n, const char *replid);
const char *sim_node_replid(const struct sim_node *n);
/* Has the server not been a replica since it started? */
bool sim_node_has_own_data(const struct sim_node *n);
/* Does the marker name its present run id and replication id? */
bool sim_node_is_named(const struct sim_node *n, struct span marker);
/* Is the ticket in the queue of the name, and until when? */
bool sim_node_place(struct sim_node *n, struct span name, struct span ticket, int64_t wall_us, int64_t *ret_expires_ms);
/* Has the hash "redlockd:<prefix>" + key that field? And its value; of a memory store: "". */
bool sim_node_field(struct sim_node *n, struct span key, struct span field, struct span *ret_value);
/* Visits every live key, marker and fence included, sorted by key (with its prefix). */
void sim_node_each(struct sim_node *n, int64_t wall_us,
		   void (*visit)(void *context, struct span key, struct span value, int64_t expires_ms), void *context);
/*
 * Called for every change of a key, whatever its cause: the value before and after; "": no key, or one of another type. An expired key is removed when it is
 * next accessed.
 */
void sim_node_watch(struct sim_node *n, void (*changed)(void *context, struct span key, struct span before, struct span after),
		    void *context);

#endif
