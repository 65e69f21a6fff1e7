/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stage for the core: one to three daemons' services over the same 1 to 5 stores, which are C memory stores with a mood, and sessions that
 * speak lines. There is one stage, time stands still unless a test moves it, and every call waits in a queue of its daemon and store.
 *
 * While a test runs, the stage itself holds every daemon to what holds always: a new grant's fence is greater than all before it of that name;
 * nobody is granted a name, or confirmed in it, while another session may still believe that it holds it; a value for which a release was sent
 * is never sent for anything else; every call is answered once. stage_close ends all sessions and sees that nothing of them is left.
 */
#ifndef UNIT_STAGE_H
#define UNIT_STAGE_H

#include "daemon/core/journal.h"
#include "daemon/core/service.h"
#include "daemon/store/memory.h"
#include "proto/proto.h"

#include <sys/queue.h>

#define STAGE_DAEMONS  3
#define STAGE_SESSIONS 64
#define STAGE_WALL_US  INT64_C(1700000000000000)
#define CALL_KINDS     (CALL_LOOK + 1)

enum mood {
	MOOD_WELL,
	MOOD_SILENT,   /* what is asked of it waits */
	MOOD_TARDY,    /* carries out, and answers when it is well again */
	MOOD_LOSSY,    /* carries out, and the answer is lost */
	MOOD_REFUSING, /* says `refusal` and does nothing, but answers a probe */
};

struct parcel {
	TAILQ_ENTRY(parcel) link;
	struct call call;
	bool done;
	struct answer answer;
	struct probe probe;
	char name[NAME_MAX_BYTES], value[VALUE_MAX], new_value[VALUE_MAX];
	char marker[MARKER_MAX], new_marker[MARKER_MAX], ticket[128], prior[512];
	char holder[MARKER_MAX], seen[MARKER_MAX], run_id[64];
};
TAILQ_HEAD(parcels, parcel);

struct stage_daemon {
	struct core_conf conf;
	struct service *service;
	struct effects effects;
	bool stopped; /* as by SIGSTOP: no step, no answer */
	bool ending;  /* EVENT_STOP was told: it has hung up on all, and what it says to them is dropped */
	char host[16];
	struct parcels queue[NODES_MAX];
};

struct stage_node {
	struct memory *memory;
	bool up;
	enum mood mood;
	const char *refusal;
	bool mute; /* REFUSING: the probe as well */
	int64_t clock_us;   /* by how much its clock was stepped */
	int64_t fence_lost; /* by how much its fence fell back */
	struct probe
		probe; /* run_id is always told; the other texts, where set, and the figures, where not 0, instead of the store's */
	char run_id[64];
	unsigned lives;
	unsigned count[CALL_KINDS]; /* calls that were asked of it */
	struct parcel last[CALL_KINDS];
	struct parcels astray; /* under way on connections that broke */
};

struct stage {
	struct core_conf conf; /* what daemons are started with */
	struct instant now;
	struct stage_daemon daemon[STAGE_DAEMONS];
	struct stage_node node[NODES_MAX];
};
extern struct stage stage;

/* The stores are there and blank; nobody is connected yet. The configuration may be changed. */
void stage_open(unsigned nodes);
/* The daemon connects to the stores that are up. */
void daemon_starts(unsigned d);
void daemon_ends(unsigned d); /* as by kill -9: its sessions hear no more, what is in flight arrives */
/* The two, and time until a quorum has joined. */
void stage_begin(unsigned nodes);
void stage_close(void);

/* --- journals: what a daemon appends is kept --- */

/* A daemon is started on the journal of another, which goes on appending to none. Returns how many records it refused. */
unsigned daemon_inherits(unsigned d, unsigned from);
void daemon_returns(unsigned d); /* kill -9, and a new life at once on its own journal */
void journal_is_copied(unsigned to, unsigned from);
void journal_is_compacted(unsigned d);
void journal_fails(unsigned d);
void journal_mends(unsigned d); /* with a snapshot */
unsigned journal_length(unsigned d);
bool journal_ends_with(unsigned d, enum journal_kind kind, const char *name);
void journal_loses_tail(unsigned d, unsigned records); /* they were not written when it crashed */
void journal_is_damaged(unsigned d, unsigned record);
void journal_says(unsigned d, unsigned record, unsigned at, char byte); /* there instead */

/* Two lives run on copies of one journal from now on: each may use a value that the other has released. */
void lives_share_values(void);

/* --- sessions: 1 .. STAGE_SESSIONS - 1; one that speaks before it is opened is a local one of daemon 0 --- */

void session_opens(unsigned k, unsigned d);
void session_opens_from_afar(unsigned k, unsigned d); /* over TCP, from another host */
void says(unsigned k, const char *format, ...) __attribute__((format(printf, 2, 3)));
void says_bytes(unsigned k, const char *line, size_t n);
void says_too_much(unsigned k);
void half_closes(unsigned k);
void parts(unsigned k);      /* the same, but lines may still come */
void looks_away(unsigned k); /* does not read what it is told, until it looks again; hears is of what it was told all the same */
void looks_again(unsigned k);
void goes(unsigned k, enum gone how);
bool hung_up(unsigned k); /* by the daemon */
bool is_read(unsigned k);
unsigned unanswered(unsigned k); /* requests without their reply */

/* The next line of session k matches the pattern of fnmatch(3). A row starts with "\\* ". Returns the line as it was. */
#define hears(k, pattern) session_hears(k, pattern, __FILE__, __LINE__)
#define hears_nothing(k)  session_hears_nothing(k, __FILE__, __LINE__)
const char *session_hears(unsigned k, const char *pattern, const char *file, int line);
void session_hears_nothing(unsigned k, const char *file, int line);
const char *next_line(unsigned k); /* whatever it is; NULL: none */
/* Forgets what k was told; returns how many lines. */
unsigned ignores(unsigned k);
/* A field of a line, as an integer; fails when there is none. */
int64_t number_in(const char *line, const char *field);
/* Was a line logged since the last call of this? "event key=value …" */
bool was_logged(const char *pattern);
/* The figure of this name, as STATS says it, of daemon d. */
int64_t figure(unsigned d, enum metric which);

/* --- time --- */

void passes(int64_t us); /* what is due meanwhile is done at its time */
void jumps(int64_t us);  /* everybody was stopped: nothing happened meanwhile */
void wakes(unsigned d);  /* one step of EVENT_TIME now */
void is_woken(unsigned d, unsigned node, const char *name); /* the store says that the name was freed */
void runs(void);         /* until no store has anything to do: called by all of these */

/* --- stores --- */

void feels(unsigned node, enum mood mood); /* what waits is carried out and answered as the new mood will have it */
void all_feel(enum mood mood);
void refuses(unsigned node, const char *text);
void comes(unsigned node);
void falls(
	unsigned
		node); /* the connections of all daemons are lost: what is in flight there is answered by "unknown", carried out or not */
void breaks(unsigned node);  /* well from now on, and new connections stand at once: what waits there is answered by "unknown" and stays under way */
void arrives(unsigned node);                     /* that is carried out now */
void serves_astray(unsigned node, unsigned many); /* the first that many of it are, and the others never */
void restarts_blank(unsigned node);                           /* falls, forgets all, has a new run_id, comes */
void is_flushed(unsigned node);                               /* forgets all, keeps its run_id and the connections */
void serves(unsigned node, unsigned many);                    /* carries out and answers that many although it is silent */
void serves_daemon(unsigned d, unsigned node, unsigned many); /* of its calls; serves means daemon 0's */
unsigned waiting_at(unsigned node);                           /* calls of daemon 0 that wait there */
void loses(unsigned node, unsigned many);                     /* answers the first that many by "unknown" */
struct call late_call(unsigned node, enum call_kind kind);   /* the last of the kind that it was asked, to be carried out late; one at a time */
bool key_is_there(unsigned node, const char *name);
int64_t key_ttl_us(unsigned node, const char *name); /* -1: not there */
void key_is_overwritten(unsigned node, const char *name, const char *value, int64_t ttl_us);
const char *marker_of(unsigned node);
void marker_is_set(unsigned node, const char *marker);
unsigned asked(enum call_kind kind); /* of that kind, asked of all stores so far */
/* "state" or "state: reason" of a store, as LIST nodes of daemon d says it. */
const char *store_state(unsigned d, unsigned node);
/* Of three, store 0 comes to this state, unusable: session 1 is granted a lock without its vote. */
void store_becomes(const char *state);

#endif
