/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * daemon/core/deadlock.c: random requests with priorities. DEADLOCK is answered to a request if and only if some owners could never go on with it, as a second
 * opinion finds by letting go of one owner after the other.
 */
#include "tests/fixture/cluster.h"

#include "daemon/base/rng.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define OWNERS 6
#define NAMES  5
#define ASKED  40
#define ROUNDS 300

/* What was asked for and neither refused nor answered by a lock that is held already; in the order of the queue of its name. */
struct place {
	unsigned owner, name, priority, asked;
};

static struct place line[ASKED];
static unsigned places;
static int holder[NAMES]; /* -1: nobody */

static bool stands_before(const struct place *a, const struct place *b)
{
	return a->priority != b->priority ? a->priority > b->priority : a->asked < b->asked;
}

/* Whether this place has its turn when all these owners are gone. */
static bool has_turn(const struct place *p, unsigned gone)
{
	if (holder[p->name] >= 0 && !(gone >> holder[p->name] & 1))
		return false;
	for (unsigned i = 0; i < places; i++)
		if (line[i].name == p->name && stands_before(&line[i], p) && !(gone >> line[i].owner & 1))
			return false;
	return true;
}

static bool has_or_waits(unsigned owner, unsigned name)
{
	for (unsigned i = 0; i < places; i++)
		if (line[i].owner == owner && line[i].name == name)
			return true;
	return holder[name] == (int)owner;
}

static bool all_go_on(void)
{
	unsigned gone = 0, before;

	do {
		before = gone;
		for (unsigned owner = 0; owner < OWNERS; owner++) {
			bool goes = true;

			for (unsigned i = 0; i < places; i++)
				goes &= line[i].owner != owner || has_turn(&line[i], gone);
			gone |= (unsigned)goes << owner;
		}
	} while (gone != before);
	return gone == (1U << OWNERS) - 1;
}

static void ask(struct rng *rng, unsigned asked)
{
	static const unsigned priorities[] = {0, 0, 1, 5, 9};
	struct place p = {(unsigned)rng_below(rng, OWNERS), (unsigned)rng_below(rng, NAMES), priorities[rng_below(rng, 5)], asked};
	char tag[16];
	const char *answer;
	bool refused;

	if (has_or_waits(p.owner, p.name))
		return;
	snprintf(tag, sizeof(tag), "@t%u ", asked);
	says(p.owner + 1, "%sLOCK %c wait=20m priority=%u", tag, (int)('a' + p.name), p.priority);
	answer = next_line(p.owner + 1);
	refused = answer && strstr(answer, "ERR DEADLOCK");
	line[places++] = p;
	ck_assert_msg(refused == !all_go_on(), "request %u, of session %u for %c with priority %u: %s", asked, p.owner + 1, (int)('a' + p.name), p.priority,
	              answer ? answer : "waits");
	if (answer)
		places--;
	if (answer && !refused)
		holder[p.name] = (int)p.owner;
}

START_TEST(a_request_is_refused_if_it_closes_a_cycle_and_only_then)
{
	struct rng rng;

	rng_init(&rng, (const uint64_t[]){(uint64_t)_i, 0});
	cluster_begin(1);
	places = 0;
	for (unsigned i = 0; i < NAMES; i++)
		holder[i] = -1;
	for (unsigned asked = 0; asked < ASKED; asked++)
		ask(&rng, asked);
}
END_TEST

Suite *overtaking_suite(void);
Suite *overtaking_suite(void)
{
	Suite *suite = suite_create("overtaking");
	TCase *overtaking = tcase_create("overtaking");

	tcase_add_checked_fixture(overtaking, NULL, cluster_close);
	tcase_add_loop_test(overtaking, a_request_is_refused_if_it_closes_a_cycle_and_only_then, 0, ROUNDS);
	suite_add_tcase(suite, overtaking);
	return suite;
}
