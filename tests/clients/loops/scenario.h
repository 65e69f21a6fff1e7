/* SPDX-License-Identifier: BSD-2-Clause */
/* A story that is the same in each loop: main is in scenario.c, and what differs in with_NAME.c. */
#ifndef CLIENTS_SCENARIO_H
#define CLIENTS_SCENARIO_H

#include <redlock.h>

#define TICK_MS 10

/* Begins to watch the connection, and calls scenario_tick from then on, each TICK_MS. */
void loop_begin(struct redlock *c);
/* A request was sent. */
void loop_update(void);
/* Until loop_end. */
void loop_run(void);
void loop_end(void);

void scenario_tick(void);
/* What the header calls when something may have come. */
void scenario_ready(void *arg, int r);

#endif
