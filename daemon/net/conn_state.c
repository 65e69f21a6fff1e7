/* SPDX-License-Identifier: BSD-2-Clause */
/* See conn_state.h. */
#include "daemon/net/conn_state.h"

#include "daemon/base/log.h"
#include "daemon/net/held.h"
#include "daemon/net/sockets.h"

#include <inttypes.h>

static const char *const state_name[] = {
	[CONN_OPEN] = "open",       [CONN_ENDED] = "ended",         [CONN_DISMISSED] = "dismissed", [CONN_FAILED] = "failed",
	[CONN_CLOSING] = "closing", [CONN_LINGERING] = "lingering",
};

void conn_set_state(struct conn *c, enum conn_state state, const char *why)
{
	log_event(LOG_DEBUG, "conn-state", "session=%" PRIx64 " fd=%d from=%s to=%s why=%s", c->session, c->fd,
		  state_name[c->state], state_name[state], why);
	c->state = (unsigned char)state;
}

/* --- lists --------------------------------------------------------------------------------------------------------- */

void conn_want_turn(struct conn *c)
{
	if (c->is_ready)
		return;
	c->is_ready = true;
	if (conn_is_ending(c)) {
		TAILQ_INSERT_TAIL(&c->hub->ended, c, link);
	} else {
		if (TAILQ_EMPTY(&c->share->waiting))
			TAILQ_INSERT_TAIL(&c->hub->turns, c->share, in_turns);
		TAILQ_INSERT_TAIL(&c->share->waiting, c, link);
		c->share->unread += c->unread;
	}
	event_active(c->hub->run_turns, EV_TIMEOUT, 1);
}

void conn_leave_turns(struct conn *c)
{
	if (!c->is_ready)
		return;
	c->is_ready = false;
	if (conn_is_ending(c)) {
		TAILQ_REMOVE(&c->hub->ended, c, link);
		return;
	}
	TAILQ_REMOVE(&c->share->waiting, c, link);
	c->share->unread -= c->unread;
	if (TAILQ_EMPTY(&c->share->waiting))
		TAILQ_REMOVE(&c->hub->turns, c->share, in_turns);
}

void conn_wait_to_be_read(struct conn *c, bool parted)
{
	c->parted |= parted;
	if (c->unread || conn_is_ending(c))
		return;
	c->unread = true;
	if (c->is_ready)
		c->share->unread++;
	else
		conn_want_turn(c);
}

void conn_mark_dirty(struct conn *c)
{
	if (c->is_dirty)
		return;
	c->is_dirty = true;
	/* A client that waited for what another has just requested goes first: others may wait for its next request. */
	if (c->hub->current && c->hub->current != c)
		TAILQ_INSERT_HEAD(&c->hub->dirty, c, dirty);
	else
		TAILQ_INSERT_TAIL(&c->hub->dirty, c, dirty);
}

/* --- the beginning of the end -------------------------------------------------------------------------------------- */

void conn_fail(struct conn *c, enum gone how)
{
	static const char *const why[GONE_N] = {"hangup", "reset", "keepalive", "overflow", "restart"};

	if (c->state >= CONN_FAILED)
		return;
	conn_leave_turns(c);
	conn_set_state(c, CONN_FAILED, why[how]);
	c->fate = (unsigned char)how;
	conn_drop_output(c);
	conn_drop_input(c);
	sockets_forget(c);
	if (c->hub->current == c)
		c->hub->current = NULL;
	conn_want_turn(c);
}

void conn_dismiss(struct conn *c)
{
	if (c->state >= CONN_DISMISSED)
		return;
	conn_leave_turns(c);
	conn_set_state(c, CONN_DISMISSED, "restart");
	if (c->hub->current == c)
		c->hub->current = NULL;
	conn_want_turn(c);
}

/* --- what epoll is asked for --------------------------------------------------------------------------------------- */

/*
 * Level-triggered while input is taken, else edge-triggered, with EV_READ in both cases. The kernel always reports errors and hang-ups, which count as EV_READ.
 * Level-triggered, it would report them again and again. In a pause no session takes input.
 */
static short conn_wants(const struct conn *c)
{
	int wants = EV_READ | EV_CLOSED;

	if (c->blocked || c->stuck)
		wants |= EV_WRITE;
	if (!conn_takes_input(c) || (c->hub->paused && c->state < CONN_CLOSING))
		wants |= EV_ET;
	return (short)wants;
}

void conn_watch(struct conn *c)
{
	/* A connection that cannot be watched ends: a session fails here, a closing one ends by its deadline. */
	if (!sockets_watch(c, conn_wants(c)) && c->session)
		conn_fail(c, GONE_RESET);
}

void conn_arm(struct conn *c)
{
	if (c->state != CONN_FAILED && c->watched != conn_wants(c))
		conn_watch(c);
}
