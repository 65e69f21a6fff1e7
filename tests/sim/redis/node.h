/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated Redis server: a model store (strings, hashes, sorted sets, TTL on the server's wall clock, script cache, publish) on which the shipped
 * Lua scripts run in process, in the Lua version that Redis embeds. It has no clock and draws nothing: the same calls give the same answers.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include "daemon/core/event.h"

struct sim_node;

struct sim_node_conf {
	const char *key_prefix; /* "lock:" */
	int64_t skew_us, tolerance_us; /* of daemon/core/quorum.h */
	const char *run_id; /* 40 characters; copied */
};

struct sim_node *sim_node_new(const struct sim_node_conf *conf);
void sim_node_free(struct sim_node *n);

/*
 * Carries out the calls as the daemon's upstream would hand them over: those of a batch (equal marker, all ACQUIRE, EXTEND, RELEASE) as one EVALSHA through the
 * shipped scripts, PROBE and JOIN as their own. wall_us: the server's clock (TIME) at the start of the command. ret_answer has one slot per call, in
 * order; their spans stay until the next sim_node_… call.
 */
void sim_node_call(struct sim_node *n, const struct call *call, size_t count, int64_t wall_us, struct answer *ret_answer);

/* What happens to servers. */
void sim_node_restart_blank(struct sim_node *n, const char *run_id);
void sim_node_restart_whole(struct sim_node *n, const char *run_id,
			    int64_t wall_us); /* persisted to the last write; what expired meanwhile is gone */
void sim_node_snapshot(struct sim_node *n);   /* remembers the data set as it is */
void sim_node_restart_old(struct sim_node *n, const char *run_id,
			  int64_t wall_us); /* from the last snapshot; blank if there is none */
/* The whole host is as it was at the last snapshot, identity and all; false if there is none. */
bool sim_node_roll_back(struct sim_node *n, int64_t wall_us);
void sim_node_flush(struct sim_node *n);    /* FLUSHALL: run_id stays */
/*
 * Commands answer this error text; NULL: well again. As in Redis, one that begins with OOM meets only what needs memory (SET, not DEL), READONLY, MISCONF and
 * NOREPLICAS only what writes; OOM ends where the script under way has written. All others meet every command. Stays over restarts, as does the role.
 */
void sim_node_fail(struct sim_node *n, const char *error);
bool sim_node_is_well(const struct sim_node *n); /* it takes all that is written */
void sim_node_set_role(struct sim_node *n, const char *role,
		       const char *replid); /* "slave" refuses writes: READONLY; a restart gives a replid of its own */
void sim_node_evict(struct sim_node *n, struct span name); /* the lock key goes, evicted_keys grows */
void sim_node_put(struct sim_node *n, struct span name, struct span value,
		  int64_t expires_ms);                                            /* SET by a foreign client; 0 = no TTL */
void sim_node_put_hash(struct sim_node *n, struct span name, int64_t expires_ms); /* a key of another type */
void sim_node_delete(struct sim_node *n, struct span name);
/* PUBLISH from a script; returns to how many it went. NULL: nobody listens. */
void sim_node_publish_to(struct sim_node *n, int64_t (*published)(void *context, struct span channel, struct span message),
			 void *context);

/* What a checker looks at. An expires_ms of 0 is no TTL; the value of a key of another type is "". Looking changes nothing. */
struct span sim_node_marker(const struct sim_node *n);
int64_t sim_node_fence(const struct sim_node *n);
bool sim_node_get(struct sim_node *n, struct span name, int64_t wall_us, struct span *ret_value, int64_t *ret_expires_ms);
void sim_node_set_replid(struct sim_node *n, const char *replid);
const char *sim_node_replid(const struct sim_node *n);
/* It was not a replica since it was started. */
bool sim_node_has_own_data(const struct sim_node *n);
/* A marker names its run id and its replication id, as they are now. */
bool sim_node_is_named(const struct sim_node *n, struct span marker);
/* The place of a ticket in the line of a name, and when it ends. */
bool sim_node_place(struct sim_node *n, struct span name, struct span ticket, int64_t *ret_expires_ms);
/* Every live key, marker and fence among them, in the order of the keys (with their prefix). */
void sim_node_each(struct sim_node *n, int64_t wall_us,
		   void (*visit)(void *context, struct span key, struct span value, int64_t expires_ms), void *context);
/* Every change of a key's value, as it is made, by whatever cause: the value before and after ("" = absent, or of another type). An expired key goes when it is met. */
void sim_node_watch(struct sim_node *n, void (*changed)(void *context, struct span key, struct span before, struct span after),
		    void *context);

#endif
