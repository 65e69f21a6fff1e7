/* SPDX-License-Identifier: BSD-2-Clause */
/* What the world calls when something happens, and what the checks ask each other: file by file. */
#ifndef SIM_HOOKS_H
#define SIM_HOOKS_H

#include "tests/sim/check/checker.h"
#include "tests/sim/world/daemon.h"

/* The node has carried out an ACQUIRE or EXTEND: its vote counts. */
static inline bool is_vote(const struct answer *a)
{
	return a->class == ANSWER_EXECUTED && (a->code == 'G' || a->code == 'E' || a->code == 'A');
}

/* grants.c: what clients believe and what is granted. */
void check_belief(struct world *w, const struct hold *h);
void check_grant(struct world *w, struct sim_daemon *d, struct request_sim *q, int64_t fence);
/* A waiter got its turn while its session had no connection; a hold continues on another connection. */
void check_turn(struct world *w, struct sim_daemon *d, int64_t name, int64_t fence);
void check_resumed(struct conn *c, int64_t name, int64_t owner, int64_t fence);
/*
 * checker_delay: the hold ended against its holder's will and was in force until `from`: the lock-delay begins, if the plan has one. checker_delay_from: the
 * same, when it was in force until `latest` at most. checker_undelay: the holder ended the hold after all.
 */
void checker_delay(struct world *w, int64_t name, int64_t fence, int64_t from);
void checker_delay_from(struct world *w, int64_t name, int64_t fence, int64_t latest);
/* UNLOCK keep= was answered OK: nobody may be granted the name meanwhile. */
void checker_keep(struct world *w, const struct request_sim *q, int64_t fence);
void checker_undelay(struct world *w, int64_t name, int64_t fence);
void checker_undelay_all(struct world *w); /* a first start forgets them */
/* Whether the LOCK q stands behind the other in the queue of their daemon, whatever its clock. */
bool stands_behind(const struct world *w, const struct request_sim *q, const struct request_sim *other);

/* readers.c: readers together, writers alone. */
void check_read_delay(const struct sim_client *c, int64_t name, struct span reason); /* it has lost what it read, or its path to the daemon breaks */
void check_reading(const struct sim_client *c, int64_t name);    /* the client begins to believe, or believes for longer */
void readers_said(struct request_sim *q, struct span line);     /* an OK of the daemon */
void readers_granted(struct request_sim *q, int64_t name, struct span line); /* a row, or an OK, says so */
void readers_released(struct request_sim *q, struct span line);
void readers_refused(const struct request_sim *q, struct span code); /* an ERR of the daemon */
void readers_lost(struct conn *c, struct span line);            /* a push */

void readers_taken(struct request_sim *q, int64_t name, struct span line); /* … for a job */

/* job_locks.c: the locks of jobs. */
void check_job_lock(const struct sim_client *c); /* the client begins to rely on its lock, or believes for longer */
void check_jobs_beside(const struct sim_client *c, int64_t name);
void job_locks_said(struct request_sim *q, struct span line); /* an OK of the daemon */
void job_locks_pushed(struct conn *c, struct span line); /* a push of the daemon */
bool is_of_job(struct span line); /* a push about the lock of one */

/* ruled.c: rules. */
void ruled_said(struct request_sim *q, struct span line, struct span word); /* any reply */
void ruled_anew(const struct sim_daemon *d);      /* the daemon has judged all by its new rules, in the last step */
bool ruled_out(const struct request_sim *q);      /* it is about to be denied */

/* read_line.c: the line of readers and writers. */
void check_read_order(struct request_sim *q, int64_t name);           /* it is granted */
void check_read_turn(const struct request_sim *q);                    /* it reads */
void reader_is_alone(struct conn *c, int64_t name, bool alone); /* its session has the name alone from now on, or not any more */
void line_conn_over(struct conn *c);
void readers_call(struct sim_daemon *d, const struct call *call);
void readers_ran(const struct server *s, const struct flight *f, unsigned i);
void readers_step(struct sim_daemon *d); /* after each step of the daemon */

/* nests.c: deadlocks among the names n0 …. */
void nests_begun(struct request_sim *q);
void nests_said(struct request_sim *q, struct span line);
void nests_pushed(struct conn *c, struct span line);
void nests_conn_over(struct conn *c);
void nests_step(struct world *w);

/* metered.c: rate limits. */
void metered_ran(struct server *s, const struct flight *f);
void metered_lost(struct server *s);
void metered_settle(struct server *s); /* before its clock is set back: a key that is over by then may be gone */
void metered_release(struct server *s);
void metered_said(struct request_sim *q, struct span line, struct span word);

/* permitted.c: permits of semaphores. */
void check_permit(const struct sim_client *c, const struct seating *s); /* the client begins to believe, or believes for longer */
void check_permit_owner(const struct sim_client *c, const struct seating *s, struct span line); /* a row or a push about it */
void permitted_said(struct request_sim *q, struct span line);           /* an OK of the daemon */

/* repeated.c: requests with count= that are repeated. Each but the last three is about the request of the client that is not answered, or just is. */
void check_repeat_refused(const struct sim_client *c, struct span code);
void check_repeat_count(const struct sim_client *c, int64_t count);
void check_repeat_locked(const struct sim_client *c, int64_t name, int64_t count, int64_t fence);
void check_repeat_rows(const struct sim_client *c);
void check_repeat_row(const struct sim_client *c, unsigned owner, int64_t name, int64_t count); /* of RESUME */
void check_repeat_permit_row(const struct sim_client *c, unsigned owner, int64_t permits);
void check_repeat_job_row(const struct sim_client *c, unsigned jobs);
void check_repeat_taken(const struct sim_client *c, struct span line, bool ok);
void check_repeat_alone(const struct sim_client *c);
void repeated_said(const struct request_sim *q, struct span line); /* any reply of a daemon */
void check_repeat_belief(const struct sim_client *c, unsigned owner, int64_t name);
void check_repeat_job(const struct sim_client *c);
void check_repeat_permit(const struct sim_client *c, const struct repeat_permit *p);

/* chores.c: deferred work. */
void chores_ran(struct server *s, const struct flight *f);
void chores_lost(struct server *s);
/* A memory store: the next run of the home knows what was done until now. passes: more may be done in this pass, and then undone by a kill. */
void chores_written(struct server *s, bool passes);
void chores_undone(struct server *s);
void chores_said(struct request_sim *q, struct span line, struct span word);
void check_chore(const struct sim_client *c);
void check_chores_left(struct world *w);
void chores_begun(struct request_sim *q);
void chores_row(struct request_sim *q, struct span line);

/* named.c: COMPLETE and RECENT. */
void named_run_begins(struct sim_daemon *d);
void named_granted(const struct request_sim *q, struct span line);
void named_begin(struct request_sim *q);
void named_row(struct request_sim *q, struct span line);
void named_said(struct request_sim *q, struct span line, bool ok);

/* told.c: who has a name at another daemon. */
void told_granted(const struct request_sim *q);
void told_freed(const struct conn *c, int64_t name);
void told_said(struct request_sim *q, struct span line); /* any reply */
void told_row(struct request_sim *q, struct span line);  /* any row */

/* gathered.c: LOCKALL and LOCKANY. */
void gathered_row(struct request_sim *q, struct span line);
void gathered_said(struct request_sim *q, struct span line, struct span word); /* the reply to any request about one of these names */
void readers_conn_over(struct conn *c);
void readers_begin(struct request_sim *q);

/* progress.c: how soon free names are granted. */
void check_progress(struct world *w);
/* A key that was left behind may block the name until then: liveness is not checked. */
void checker_excuse(struct world *w, int64_t name, int64_t until);
/* The clock of that node was set back: the keys that stand there last that much longer. */
void checker_sets_back(struct world *w, unsigned node);
/* A key of that name stood at a node before its clock was set back, and nobody renews it: it blocks the name for that much longer. */
bool outlives_its_lease(const struct world *w, int64_t name);
int64_t round_trip_us(const struct plan *p); /* a quorum answers within this */

/* running.c: the requests that a daemon has begun. */
void running_begin(struct request_sim *q);
/* Has the client not read its last replies yet? Its next untagged request begins when it has. */
bool running_awaits(const struct request_sim *q);
void running_has_read(struct conn *c); /* the client has read its last replies */
struct request_sim *running_of_line(struct conn *c, struct span line); /* what the line answers; NULL: nothing */
void running_done(struct request_sim *q); /* answered. Behind an untagged request the next one of its session begins */
void running_over(struct conn *c);        /* the connection is over */

/* track.c: tracks each session by the lines of its daemon. */
void track_syncs(struct world *w, int64_t name); /* the UNLOCK sync=yes that began are carried out: those of this name; -1: all */
void track_line(struct conn *c, struct span line);
void track_conn_over(struct conn *c);

/* account.c: what each owner of a session holds. */
struct account *account_of(const struct request_sim *q); /* of the owner and name of the request */
/* An OK says that the name is held with this token and count; count < 0: it does not say the count. */
void account_confirmed(const struct request_sim *q, struct account *a, int64_t count, int64_t fence);
bool account_may_have_turn(const struct request_sim *q, const struct account *a);
void account_begin(const struct request_sim *q, struct account *a);
void account_asked(const struct request_sim *q); /* an EXTEND began: later replies promise no more than it asks for */
void account_reloaded(struct sim_daemon *d); /* its lease may be another one */
void account_not_asked(const struct request_sim *q);
void account_vouched(const struct request_sim *q, const struct account *a, int64_t name, struct span line);
void account_end(struct account *a);
void account_lost(struct conn *c, int64_t name, int64_t fence); /* against its holder's will: what was promised was in force */
void account_excuse(struct conn *c, int64_t name);
void account_dropped(struct conn *c, int64_t name, const struct account *a); /* its connection ended */

/* reply_time.c: by when requests must be answered. */
void reply_time_begin(struct request_sim *q);
void reply_time_stopped(struct sim_daemon *d); /* a stopped daemon answers nobody: the bounds move */
void reply_time_check(struct sim_daemon *d);

/* resumed.c: tracks sessions that outlive their connections. */
/* What the session that this connection is resuming held of that name; NULL: the connection resumes none. */
struct account *resumed_account(struct conn *c, int64_t owner, int64_t name);
/* The request may repeat one from before the RESUME, and so keep its old place in the queue. */
bool resumed_is_behind(const struct request_sim *q);
/* The connection ends. An unanswered RESUME has moved the session all the same. */
void resumed_conn_over(struct conn *c);
void resumed_hello(struct request_sim *q, struct span line);
void resumed_turn(struct request_sim *q, struct account *a, int64_t fence); /* the first reply that shows a hold which the session did not know of */
void resumed_row(struct request_sim *q, struct span line);
void resumed_ok(struct request_sim *q, struct span line);
void resumed_lost(struct conn *c, int64_t owner, int64_t name, int64_t fence);
void resumed_losses_told(struct conn *c); /* before a reply to another request */
void resumed_refused(struct request_sim *q, struct span code);

/* detached.c: requests of sessions that lost their connection. */
void detached_begin(struct conn *c);
void detached_move(struct conn *to, const struct conn *from);

/* recount.c: counts the votes of a daemon. */
void recount_call(struct sim_daemon *d, const struct call *call);
void recount_answer(struct sim_daemon *d, const struct call *call, const struct answer *a, struct instant emitted);
void recount_step(struct sim_daemon *d);
struct instant recount_vote(const struct world *w, const struct call *call, struct instant sent);
bool recount_is_released(const struct sim_daemon *d, uint64_t serial); /* of a value that this run of the daemon has made and released */
struct instant recount_deadline(const struct sim_daemon *d, const struct lease *l);
void recount_run_begins(struct sim_daemon *d);
void reply_time_restarted(struct sim_daemon *d);
void recount_goes_on(struct sim_daemon *d); /* in another process */
void recount_run_is_named(struct sim_daemon *d); /* it has read its journal */
/* Checks that a quorum of votes stands and covers valid_ms. */
void recount_check(struct sim_daemon *d, int64_t name, int64_t valid_ms, enum invariant what);
/* The same of a RISK, which a timer may tell before the answer is read that comes in its step. */
void recount_check_risk(struct sim_daemon *d, int64_t name, int64_t left_ms);

/* floors.c: the token that each grant of a lease must exceed. */
int64_t floor_of_lease(const struct world *w, const struct call *call, int64_t name); /* of the lease that begins with this call */
void floor_keep(struct world *w, int64_t name, uint64_t value, int64_t floor);

/* delays.c: how long the lock-delays are. */
void delays_call(struct sim_daemon *d, const struct call *call); /* before the call is counted */
int64_t delay_of_call(const struct world *w, const struct call *call);
void delay_granted(struct world *w, int64_t name, int64_t fence, int64_t delay_us);
int64_t delay_of_grant(const struct world *w, int64_t name, int64_t fence);

/* doubts.c: a daemon may have a reason to quarantine a node that lost nothing. */
bool node_may_be_doubted(const struct sim_daemon *d, const struct server *s);

/* keys.c: what a command did to the keys of a node. */
void keys_before(struct server *s, const struct flight *f); /* before and after a command runs */
void keys_after(struct server *s, const struct flight *f);
void keys_torn(struct server *s); /* instead: the server was killed meanwhile */
void keys_watch(struct server *s);

/* known_node.c: which nodes a daemon may ask for votes. */
void known_node_run_begins(struct sim_daemon *d);
bool known_node_all(const struct sim_daemon *d); /* this run of the daemon has probed every node */
void known_node_call(struct sim_daemon *d, const struct call *call, int64_t name, struct lease *l);
void known_node_vote_falls(const struct sim_daemon *d, struct lease *l, unsigned node, struct instant until);
/* The end of a vote. In the step of an answer that ended it sooner the old end counts: a timer of that step runs before the answer is read. */
struct instant known_node_vote(const struct sim_daemon *d, const struct lease *l, unsigned node);
void known_node_probe(struct sim_daemon *d, unsigned node);
void known_node_answer(struct sim_daemon *d, const struct call *call, const struct answer *a, struct instant emitted);

/* scripts.c: what the scripts did. To be called before the fence that is known of the server is updated. */
void scripts_ran(struct server *s, const struct flight *f);

/* carried.c: leases of the process before. */
void carried_begin(const struct sim_daemon *d, struct lease *l);
void carried_answer(const struct sim_daemon *d, struct lease *l, const struct call *call, const struct answer *a);
bool carried_unsurely(const struct sim_daemon *d, const struct lease *l, struct instant at);
/* eviction.c: keys that vanished while nodes vouch for them. */
void eviction_answer(struct sim_daemon *d, struct lease *l, const struct call *call, const struct answer *a, struct instant emitted);
void eviction_step(struct sim_daemon *d, const struct lease *l, int64_t name);

/* released.c: values that a daemon gave up. */
void released_run_begins(struct sim_daemon *d);
void released_note(struct sim_daemon *d, struct span value);
void released_adopted(struct sim_daemon *d, const struct call *call, int64_t name);
void released_ran(struct server *s, const struct flight *f, unsigned i);
void released_step(struct sim_daemon *d);

/* watched.c: WATCH and SUBSCRIBE. */
void watched_anew(struct conn *c);
void watched_event(struct conn *c, struct span line);     /* an EVENT is told */
void watched_contended(struct conn *c, struct span line); /* any other push */

/* broken.c: BREAK and KILL. */
void broken_told(struct request_sim *q, struct span line); /* OK, to any request */
void broken_hung_up(struct conn *c); /* killed */
void broken_torn(const struct sim_daemon *d, int64_t since); /* records of the pass that began then are not in the journal */
void broken_resumed(const struct request_sim *q); /* a RESUME is OK */
struct span broken_bare(struct span value); /* without the mark of a broken one */
bool broken_allows(const struct flight *f, int64_t name, struct span before, struct span after);
void broken_ran(struct server *s, const struct flight *f, unsigned i);

/* notices.c: notices that sessions must get in time. */
void notice_awake(struct sim_daemon *d);        /* the daemon starts, or goes on after a stop */
bool conn_quit_is_queued(const struct conn *c); /* its QUIT is read and waits behind other requests */
void notice_step(struct sim_daemon *d);
void notice_granted(const struct request_sim *q, struct lease *l, int64_t fence);
void notice_pushed(struct conn *c, int64_t name, struct span line);

/* extended.c: what an EXTEND did to its key. */
void extended_ran(struct server *s, const struct flight *f, unsigned i);

/* tickets.c: the tickets that daemons show. */
int64_t ticket_us(struct span ticket);
/* The place of a LOCK that the daemon has certainly read, and that repeats no LOCK, which would keep its old place; INT64_MAX: it does not wait. */
int64_t ticket_place(const struct request_sim *q);
/* After the step: the ticket that was shown, if any, stands before those of who came later than the waiter of this place. */
void ticket_check_place(struct sim_daemon *d, int64_t shown_us, int64_t place, int64_t name, const char *word);
void ticket_set(struct ticket *t, struct span text);
bool ticket_is(const struct ticket *t, struct span text);
void tickets_run_begins(struct sim_daemon *d);
void tickets_call(struct sim_daemon *d, const struct call *call, int64_t name);
void tickets_granted(struct sim_daemon *d, int64_t name, unsigned node);
void tickets_won(struct sim_daemon *d, int64_t name);
void tickets_withdrawn(struct sim_daemon *d, const struct call *call, int64_t name);
void tickets_unlinked(struct sim_daemon *d, unsigned node);
void tickets_step(struct sim_daemon *d);
void tickets_thawed(struct sim_daemon *d);
/* handover.c: leases that are handed over. */
void handover_wanted(struct sim_daemon *d, struct span name);
void handover_granted(struct sim_daemon *d, const struct lease *l, const struct request_sim *q, struct instant deadline);
/* take_places.c: the queue places of daemons at the nodes. */
void places_ran(struct server *s, const struct flight *f, unsigned i);
void places_key(struct server *s, int64_t name, bool was, bool is);
void places_lost(struct server *s);

#endif
