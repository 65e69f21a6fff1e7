/* SPDX-License-Identifier: BSD-2-Clause */
/* See clients.h. */
#include "tests/bench/drive/clients.h"
#include "daemon/base/instant.h"
#include "daemon/base/mem.h"
#include "daemon/base/rng.h"

#include <err.h>
#include <string.h>

/* The client that freed a name last, and when. */
struct freed {
	const struct client *by; /* NULL: the name was taken since */
	int64_t at_us;
};

static struct {
	const struct options *o;
	const struct driver *driver;
	struct client *client;
	struct freed *freed; /* by name */
	struct rng rng;
	bool resting;
	unsigned active;     /* clients that do not rest */
	unsigned timed;      /* clients with a time to wait for */
	int64_t begun_us;
	struct samples took; /* from asking to the grant */
	struct samples over; /* from one client's release to the grant of another */
} b;

static int64_t between(int64_t least, int64_t most)
{
	return most > least ? least + (int64_t)rng_below(&b.rng, (uint64_t)(most - least + 1)) : least;
}

static void client_waits(struct client *c, enum client_state state, int64_t for_us)
{
	c->state = state;
	c->due_us = gen_clock() + for_us;
	b.timed++;
}

static void client_asks(struct client *c)
{
	c->state = CLIENT_ASKING;
	c->asked_us = gen_clock();
	b.driver->ask(c);
}

static void client_rests(struct client *c)
{
	c->state = CLIENT_RESTING;
	if (--b.active == 0)
		gen_tell("resting");
}

/* The clients that yielded to this one ask again. */
static void others_ask(const struct client *c)
{
	for (unsigned i = 0; i < b.o->clients; i++) {
		struct client *other = &b.client[i];

		if (other != c && other->state == CLIENT_YIELDING)
			client_asks(other);
	}
}

static void client_is_done(struct client *c)
{
	if (b.resting)
		client_rests(c);
	else if (b.o->turns && b.freed[c->name].by == c) /* no other client has got the lock yet */
		c->state = CLIENT_YIELDING;
	else
		client_asks(c);
}

static void client_ends(struct client *c)
{
	b.freed[c->name] = (struct freed){c, gen_clock()};
	if (b.o->ending == END_LEAVE) {
		b.driver->leave(c);
		client_is_done(c);
		return;
	}
	c->state = CLIENT_RELEASING;
	b.driver->release(c);
}

void client_granted(struct client *c)
{
	struct freed *freed = &b.freed[c->name];
	int64_t now = gen_clock();

	samples_add(&b.took, now - c->asked_us);
	if (freed->by && freed->by != c)
		samples_add(&b.over, now - freed->at_us);
	freed->by = NULL;
	c->grants++;
	if (b.o->turns)
		others_ask(c);
	if (b.o->hold_most_us)
		client_waits(c, CLIENT_HOLDING, between(b.o->hold_least_us, b.o->hold_most_us));
	else
		client_ends(c);
}

void client_refused(struct client *c)
{
	if (b.resting && !b.o->turns)
		client_rests(c);
	else
		client_waits(c, CLIENT_PAUSING, between(b.o->pause_least_us, b.o->pause_most_us));
}

void client_released(struct client *c)
{
	client_is_done(c);
}

/* A client that yields when the others rest has nobody to yield to. */
static void yielding_rest(void)
{
	for (unsigned i = 0; i < b.o->clients; i++)
		if (b.client[i].state == CLIENT_YIELDING)
			client_rests(&b.client[i]);
}

static void client_is_due(struct client *c)
{
	b.timed--;
	if (c->state == CLIENT_HOLDING) {
		client_ends(c);
	} else {
		c->state = CLIENT_ASKING;
		b.driver->ask(c);
	}
}

static int64_t clients_tick(void)
{
	int64_t now, next = INT64_MAX;

	if (b.resting)
		yielding_rest();
	if (!b.timed)
		return -1;
	now = gen_clock();
	for (unsigned i = 0; i < b.o->clients; i++) {
		struct client *c = &b.client[i];

		if ((c->state == CLIENT_HOLDING || c->state == CLIENT_PAUSING) && c->due_us <= now)
			client_is_due(c);
		if ((c->state == CLIENT_HOLDING || c->state == CLIENT_PAUSING) && c->due_us < next)
			next = c->due_us;
	}
	return next == INT64_MAX ? -1 : next > now ? next - now : 0;
}

static void clients_go(void)
{
	b.resting = false;
	for (unsigned i = 0; i < b.o->clients; i++) {
		if (b.client[i].state != CLIENT_RESTING)
			continue;
		b.active++;
		client_asks(&b.client[i]);
	}
}

static void clients_begin(void)
{
	samples_clear(&b.took);
	samples_clear(&b.over);
	for (unsigned i = 0; i < b.o->clients; i++)
		b.client[i].grants = 0;
	b.begun_us = gen_clock();
}

/* Jain's index of fairness (Jain, Chiu, Hawe 1984), in millionths: (sum of x)^2 / (n * sum of x^2). */
static uint64_t fairness(void)
{
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < b.o->clients; i++) {
		double x = (double)b.client[i].grants;

		sum += x;
		squares += x * x;
	}
	return squares > 0 ? (uint64_t)(1e6 * sum * sum / ((double)b.o->clients * squares)) : 0;
}

static void clients_end(void)
{
	gen_tell("figures n=%zu us=%lld p50_us=%u p99_us=%u over=%zu over_p50_us=%u over_p99_us=%u jain=%llu", b.took.n,
		 (long long)(gen_clock() - b.begun_us), samples_at(&b.took, 0.5), samples_at(&b.took, 0.99), b.over.n, samples_at(&b.over, 0.5),
		 samples_at(&b.over, 0.99), (unsigned long long)fairness());
}

static void clients_command(const char *word)
{
	if (strcmp(word, "connect") == 0) {
		b.driver->open(b.o);
		gen_tell("connected n=%u", b.o->clients);
	} else if (strcmp(word, "go") == 0) {
		clients_go();
	} else if (strcmp(word, "rest") == 0) {
		b.resting = true;
	} else if (strcmp(word, "begin") == 0) {
		clients_begin();
	} else if (strcmp(word, "end") == 0) {
		clients_end();
	} else {
		errx(2, "unknown command: %s", word);
	}
}

struct client *client_at(unsigned number)
{
	return &b.client[number];
}

void clients_run(const char *addresses, const struct options *o, const struct driver *driver)
{
	const uint64_t key[2] = {(uint64_t)gen_clock(), 0};
	unsigned names = o->names ? o->names : o->clients;

	b.o = o;
	b.driver = driver;
	b.client = mem_alloc(o->clients * sizeof(*b.client));
	b.freed = mem_alloc(names * sizeof(*b.freed));
	for (unsigned i = 0; i < o->clients; i++)
		b.client[i] = (struct client){.number = i, .name = i % names};
	rng_init(&b.rng, key);
	gen_run(addresses, clients_command, clients_tick);
}
