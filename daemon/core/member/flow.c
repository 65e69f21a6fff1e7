/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/member/flow.h"

#define WINDOW_FIRST 256
#define WINDOW_MOST  1024
#define WINDOW_FEW   16 /* in a window this small a long or uneven way may explain the delay: the window is halved only at the timeout */
#define GROWTH       8 /* how much the window grows for each window of answers */

void flow_begin(struct flow *f, unsigned most)
{
	f->most = most ? most : WINDOW_MOST;
	f->window = f->most < WINDOW_FIRST ? f->most : WINDOW_FIRST;
	f->credit = 0;
	f->least_us = INT64_MAX;
	f->halved = INSTANT_PAST;
}

void flow_sent(struct flow *f, struct instant now)
{
	if (f->open++ == 0)
		f->heard = now;
}

static void flow_grow(struct flow *f)
{
	f->credit += GROWTH;
	if (f->credit < f->window)
		return;
	f->credit = 0;
	if (f->window < f->most)
		f->window++;
}

/* Halves once for all calls that were under way together. */
static void flow_halve(struct flow *f, struct instant sent, struct instant now, unsigned least)
{
	if (instant_before(sent, f->halved))
		return;
	f->window = f->window / 2 > least ? f->window / 2 : least;
	f->halved = now;
}

void flow_answered(struct flow *f, struct instant sent, struct instant now, bool executed, int64_t timeout_us)
{
	int64_t took = instant_diff(now, sent);
	bool used = 2 * f->open >= f->window; /* else answers in time say nothing about a larger window */

	f->open--;
	f->heard = now;
	if (!executed)
		return;
	/* An answer that leaves no call open has measured the way alone, even if the way has become longer. */
	if (took < f->least_us || f->open == 0)
		f->least_us = took < timeout_us ? took : timeout_us;
	if (took >= timeout_us)
		flow_halve(f, sent, now, 1);
	else if (f->window > WINDOW_FEW && 3 * (took - f->least_us) > timeout_us - f->least_us)
		flow_halve(f, sent, now, WINDOW_FEW);
	else if (used)
		flow_grow(f);
}
