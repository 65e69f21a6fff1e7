/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/net/carry.c under random traffic. The same clients say the same to a net that is paused and carried at any time, and to one that is not: the sink
 * must be told the same lines of each session in the same order, and each client must hear the same bytes.
 */
#include "tests/fixture/net_loop.h"

#include "daemon/base/rng.h"
#include "tests/fixture/seed.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS   6u
#define LIVES     30u /* of a run: a client that has ended is followed by another */
#define LINES     40u /* of a life */
#define STEPS     4000u
#define MUCH_MOST 300000u

enum end { END_QUIT, END_EOF, END_CLOSE };

struct client {
	int fd, little; /* little: so many bytes of its receive buffer, 0: as usual */
	bool tcp;
	uint64_t session;
	enum end end;
	char script[LINES * 120];
	size_t said, n; /* of the script */
	unsigned lines_told;
	size_t owed; /* bytes that the service has sent */
	bool off, awaits; /* as the service sees it */
	bool half, over;  /* it was told half_closed; eof or gone */
	struct buf told, heard;
};

struct run {
	struct net_loop w;
	struct client client[LIVES];
	unsigned live[CLIENTS], born;
	struct rng rng, whims; /* whims: when the net is carried */
	bool carries, paused;
	unsigned carried, pauses;
};

static struct run runs[2], *run;

static bool chance(struct rng *r, unsigned of)
{
	return rng_below(r, of) == 0;
}

/* --- the service --------------------------------------------------------------------------------------------------- */

static struct client *client_of(uint64_t session)
{
	for (unsigned i = run->born; i-- > 0;)
		if (run->client[i].session == session)
			return &run->client[i];
	ck_abort_msg("a session that nobody has");
}

static void sends(struct net_loop *w, uint64_t session, const char *bytes, size_t n)
{
	client_of(session)->owed += n;
	net_send(w->net, session, bytes, n);
}

static void serves(struct net_loop *w, uint64_t session, const char *line)
{
	static char much[MUCH_MOST + 1];
	struct client *c = client_of(session);
	unsigned n = 0;
	char head[64];

	ck_assert(!run->paused && !c->over && !c->off);
	buf_printf(&c->told, "%s\n", line);
	c->lines_told++;
	if (sscanf(line, "e%u", &n) == 1) {
		memset(much, 'a' + c->lines_told % 26, n);
		much[n] = '\n';
		sends(w, session, head, (size_t)snprintf(head, sizeof(head), "%u %u ", c->lines_told, n));
		sends(w, session, much, n + 1);
	} else if (!strcmp(line, "off")) {
		c->off = true;
		net_read(w->net, session, false);
	} else if (!strcmp(line, "await")) {
		c->awaits = true;
		net_await_sent(w->net, session);
	} else if (!strcmp(line, "quit")) {
		net_send(w->net, session, "bye\n", 4);
		net_hangup(w->net, session);
		c->over = true;
	}
}

/* toolong, half_closed, sent, eof: what it was stands at the end of what was written down. */
static void ends(struct net_loop *w, uint64_t session)
{
	struct client *c = client_of(session);
	const char *what = (buf_append(&w->told, "", 1), buf_begin(&w->told));

	for (const char *next = what; *next; next = strchr(next, '\n') + 1)
		what = next;
	if (!strncmp(what, "toolong", 7)) {
		buf_printf(&c->told, "(too long)\n");
		c->lines_told++;
	} else if (!strncmp(what, "sent", 4)) {
		ck_assert(c->awaits);
		c->awaits = false;
	} else if (!strncmp(what, "half", 4)) {
		ck_assert(!c->half && !c->over);
		c->half = true;
	} else {
		ck_assert(!strncmp(what, "eof", 3) && !c->over);
		c->over = true;
		buf_printf(&c->told, "(eof)\n");
		net_send(w->net, session, "eof\n", 4);
		net_hangup(w->net, session);
	}
	buf_clear(&w->told);
}

/* --- clients ------------------------------------------------------------------------------------------------------- */

static void script_write(struct client *c)
{
	struct rng *r = &run->rng;
	char *at = c->script;

	for (unsigned i = 0; i < LINES; i++) {
		const char *tail = chance(r, 4) ? "\r\n" : "\n";

		switch (rng_below(r, 12)) {
		case 0:
			at += sprintf(at, "off%s", tail);
			break;
		case 1:
			at += sprintf(at, "await%s", tail);
			break;
		case 2: /* line_max is 64 */
			at += sprintf(at, "%s%s", &"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"[rng_below(r, 30)], tail);
			break;
		case 3:
			at += sprintf(at, "e%u%s", (unsigned)rng_below(r, MUCH_MOST), tail);
			break;
		case 4:
			at += sprintf(at, "%s", tail);
			break;
		case 5:
		case 6:
			at += sprintf(at, "note %u%s", i, tail);
			break;
		default:
			at += sprintf(at, "e%u%s", (unsigned)rng_below(r, 300), tail);
		}
	}
	c->end = (enum end)rng_below(r, c->tcp ? END_CLOSE : END_CLOSE + 1);
	if (c->end == END_QUIT)
		at += sprintf(at, "quit\nnever\n");
	else if (c->end == END_EOF)
		at += sprintf(at, "unfinished");
	c->n = (size_t)(at - c->script);
}

static void client_says(struct client *c, size_t n)
{
	ssize_t r;

	if (n > c->n - c->said)
		n = c->n - c->said;
	r = n ? send(c->fd, c->script + c->said, n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
	if (r > 0)
		c->said += (size_t)r;
}

/* False: there is no more, for ever. */
static bool client_hears(struct client *c, size_t n)
{
	static char bytes[65536];
	ssize_t r = recv(c->fd, bytes, n < sizeof(bytes) ? n : sizeof(bytes), MSG_DONTWAIT);

	if (r > 0)
		buf_append(&c->heard, bytes, (size_t)r);
	ck_assert_msg(r >= 0 || errno == EAGAIN, "%s", strerror(errno));
	return r != 0;
}

/* --- the loop, with whims ------------------------------------------------------------------------------------------ */

static void pause_ends(void)
{
	if (run->paused)
		net_pause(run->w.net, false);
	run->paused = false;
}

static void pass(void)
{
	struct net_loop *w = &run->w;

	if (run->carries && chance(&run->whims, 20)) {
		run->paused = true;
		net_pause(w->net, true);
		run->pauses++;
	} else if (run->paused && chance(&run->whims, 4)) {
		pause_ends();
	}
	if (run->paused && chance(&run->whims, 4)) {
		net_loop_packs(w);
		net_loop_unpacks(w);
		run->paused = false;
		run->carried++;
	}
	event_base_loop(w->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	net_flush(w->net);
	buf_clear(&w->told);
}

static void client_is_born(unsigned place)
{
	struct client *c = &run->client[run->born];
	unsigned long opened = run->w.opened;

	*c = (struct client){.tcp = chance(&run->rng, 2), .little = chance(&run->rng, 2) ? 32768 : 0};
	pause_ends();
	c->fd = c->tcp ? net_loop_tcp(&run->w) : net_loop_unix(&run->w);
	if (c->little)
		setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &c->little, sizeof(c->little));
	while (run->w.opened == opened)
		pass();
	c->session = run->w.session;
	script_write(c);
	run->live[place] = run->born++;
}

static void client_is_switched_on(struct client *c)
{
	if (!c->off)
		return;
	c->off = false;
	net_read(run->w.net, c->session, true);
}

/* Says and hears all that is left of its life. */
static void client_ends(struct client *c)
{
	double until = net_loop_clock() + 30;
	bool more = true;

	while (c->said < c->n || (c->end == END_CLOSE && c->lines_told < LINES)) {
		ck_assert_msg(net_loop_clock() < until, "it hears nothing: %u lines, %s", c->lines_told, run->paused ? "paused" : "not paused");
		client_says(c, 1 + rng_below(&run->whims, 500));
		client_hears(c, 65536);
		if (!c->over)
			client_is_switched_on(c);
		pass();
	}
	if (c->end == END_EOF)
		shutdown(c->fd, SHUT_WR);
	while (more && c->end != END_CLOSE) {
		ck_assert_msg(net_loop_clock() < until, "it never ends: %u lines, %s", c->lines_told, run->paused ? "paused" : "not paused");
		more = client_hears(c, 65536);
		if (!c->over)
			client_is_switched_on(c);
		pass();
	}
	if (c->end == END_CLOSE) {
		/* Lines of a client that is gone are told as long as they are taken. */
		client_is_switched_on(c);
		for (; buf_length(&c->heard) < c->owed || c->awaits; pass())
			client_hears(c, 65536);
		net_loop_says(&run->w, c->fd, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n");
	}
	close(c->fd);
	for (unsigned sessions = net_sessions(run->w.net); c->end == END_CLOSE && net_sessions(run->w.net) == sessions; pass())
		ck_assert_msg(net_loop_clock() < until, "it is never gone");
	while (net_closing(run->w.net) > 0)
		pass();
	ck_assert_msg(c->over || c->end == END_CLOSE, "no end was told");
}

/* --- the test ------------------------------------------------------------------------------------------------------ */

static void run_all(struct run *r, uint64_t seed, bool carries)
{
	const uint64_t key[2] = {seed, 1}, other[2] = {seed, 2};

	run = r;
	rng_init(&r->rng, key);
	rng_init(&r->whims, other);
	r->carries = carries;
	r->born = 0;
	net_loop_init(&r->w, NET_LOOP_CONF);
	r->w.on_line = serves;
	r->w.on_end = ends;
	for (unsigned i = 0; i < CLIENTS; i++)
		client_is_born(i);
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned place = (unsigned)rng_below(&r->rng, CLIENTS);
		struct client *c = &r->client[r->live[place]];

		if (r->born < LIVES && chance(&r->rng, STEPS / LIVES)) {
			client_ends(c);
			client_is_born(place);
			continue;
		}
		if (chance(&r->rng, 8))
			client_is_switched_on(c);
		if (c->said < c->n - 20) /* the rest is for the end */
			client_says(c, 1 + rng_below(&r->whims, c->n - 20 - c->said < 60 ? c->n - 20 - c->said : 60));
		if (chance(&r->whims, 3))
			client_hears(c, 1 + rng_below(&r->whims, 20000));
		if (chance(&r->whims, 3))
			pass();
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		client_ends(&r->client[r->live[i]]);
	pause_ends();
	net_loop_until(&r->w, net_sessions(r->w.net) == 0);
	net_loop_release(&r->w);
}

static const char *text_of(struct buf *b)
{
	buf_append(b, "", 1);
	return buf_begin(b);
}

FIXTURE(.seconds = 120)

LOOP_TEST(a_net_that_is_carried_tells_and_says_what_one_that_is_not_does, 8)
{
	const uint64_t seed = seed_pick("net_carry_random") + (uint64_t)_i;

	run_all(&runs[0], seed, false);
	run_all(&runs[1], seed, true);
	ck_assert_uint_eq(runs[0].carried, 0);
	ck_assert_uint_gt(runs[1].carried, 20);
	ck_assert_uint_gt(runs[1].pauses, runs[1].carried);
	ck_assert_uint_eq(runs[0].born, runs[1].born);
	for (unsigned i = 0; i < runs[0].born; i++) {
		struct client *a = &runs[0].client[i], *b = &runs[1].client[i];

		ck_assert_uint_eq((uint32_t)a->session, (uint32_t)b->session);
		ck_assert_str_eq(text_of(&a->told), text_of(&b->told));
		ck_assert_uint_eq(buf_length(&a->heard), buf_length(&b->heard));
		ck_assert_mem_eq(buf_begin(&a->heard), buf_begin(&b->heard), buf_length(&a->heard));
		buf_release(&a->told);
		buf_release(&b->told);
		buf_release(&a->heard);
		buf_release(&b->heard);
	}
}
