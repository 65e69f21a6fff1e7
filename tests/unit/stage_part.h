/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the files of the stage. */
#ifndef UNIT_STAGE_PART_H
#define UNIT_STAGE_PART_H

#include "tests/unit/stage.h"

int daemon_step(unsigned d, struct event *event);
void daemon_node_event(unsigned d, unsigned node, enum event_kind kind);
void daemon_is_made(unsigned d); /* it knows nobody yet */
void daemon_connects(unsigned d); /* to the stores that are up */
void node_is_born(unsigned i); /* stage_stores.c: blank, with a run_id of its own */

/* stage_audience.c: the sessions and what they were told. */
void audience_opens(void);
void audience_closes(void);
void audience_hears(uint64_t session, struct span bytes);
void audience_is_hung_up(uint64_t session, struct span reason);
void audience_is_awaited(uint64_t session);
bool audience_reads(void); /* tells of those who have read what was sent; true: there were some */
void audience_is_read(uint64_t session, bool on);
void audience_log(const char *event, struct span text);
void audience_leaves(unsigned d); /* all of that daemon hang up */
void audience_loses_daemon(unsigned d);
int64_t audience_asks(unsigned d, const char *metric); /* STATS */

/* stage_journal.c */
void journals_open(void); /* all are empty */
void journal_keeps(unsigned d, struct span bytes);

/* stage_promises.c: what holds always. */
void promises_open(void);
void promises_close(void);
void promise_call(const struct call *c);
void promise_line(unsigned session, const char *line);    /* that it is told */
void promise_request(unsigned session, const char *line); /* that it makes */
void promise_end(unsigned session, bool sure);            /* sure: it acts no more */
/* Its client speaks on another session from now on, and reads no more what this one is told. A test that tells of one move tells of all. */
void promise_moves(unsigned from, unsigned to);

#endif
