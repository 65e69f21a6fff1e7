/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/core/event/metric.c: the figures of groups of names, and where they are counted. */
#include "tests/fixture/cluster.h"

#include "daemon/core/event/metric.h"
#include "daemon/core/service/service.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static void groups_are(const char *groups)
{
	cluster.conf.name_groups = groups;
	service_reload(cluster.daemon[0].service, &cluster.conf);
}

/* The samples of groups, each as "name group …=value", a line each; no buckets. */
static char told[65536];

static void take(void *context, const struct sample *s)
{
	size_t *n = context;
	char name[SAMPLE_NAME], value[SAMPLE_TEXT];

	sample_name(s, name);
	if (strncmp(name, "group_", 6) != 0)
		return;
	sample_text(s, value);
	*n += (size_t)sprintf(told + *n, "%s", name);
	for (unsigned i = 0; i < s->labels; i++)
		*n += (size_t)sprintf(told + *n, " %s", s->label[i].value);
	*n += (size_t)sprintf(told + *n, "=%s\n", value);
}

static void is_told(const char *sample)
{
	size_t n = 0;

	told[0] = '\0';
	service_tally(cluster.daemon[0].service, &(struct sampler){&n, take, false});
	ck_assert_msg(strstr(told, sample) != NULL, "no %s in\n%s", sample, told);
}

FIXTURE(.teardown = cluster_close)

TEST(a_daemon_without_groups_tells_none)
{
	cluster_begin(1);
	says(1, "LOCK orders/1");
	hears(1, "OK name=*");
	is_told("");
	ck_assert_str_eq(told, "");
}

TEST(waits_holds_and_refusals_count_for_the_group_of_the_name)
{
	cluster_begin(3);
	groups_are("orders\torders/*\njobs\tjobs/*");
	says(1, "LOCK orders/1");
	hears(1, "OK name=*");
	says(2, "LOCK orders/1");
	hears(2, "BUSY *");
	says(2, "LOCK orders/1 wait=2s");
	passes(SEC);
	says(1, "UNLOCK orders/1");
	hears(1, "OK *");
	hears(2, "OK name=*");
	says(1, "LOCK orders/1 wait=3s");
	passes(3 * SEC);
	hears(1, "TIMEOUT *");
	is_told("group_requests_total orders ok=2\n");
	is_told("group_requests_total orders busy=1\n");
	is_told("group_requests_total orders timeout=1\n");
	is_told("group_requests_total orders error=0\n");
	is_told("group_requests_total jobs ok=0\n");
	is_told("group_wait_seconds_count orders=4\n");
	is_told("group_wait_seconds_sum orders=4.000000\n");
	is_told("group_hold_seconds_count orders=1\n");
	is_told("group_hold_seconds_sum orders=1.000000\n");
	is_told("group_hold_seconds_count jobs=0\n");
}

TEST(a_name_counts_for_the_first_group_that_it_matches_and_another_name_for_none)
{
	static const char *const names[] = {"orders/1", "orders/19", "orders/9", "orders/", "order", "x", "xx", "b"};

	cluster_begin(1);
	groups_are("one\torders/1\norders\torders/*\nx\tx\nxs\tx*\nlate\torders*");
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		says(1, "LOCK %s", names[i]);
		hears(1, "OK name=*");
	}
	is_told("group_requests_total one ok=1\n");
	is_told("group_requests_total orders ok=3\n");
	is_told("group_requests_total x ok=1\n");
	is_told("group_requests_total xs ok=1\n");
	is_told("group_requests_total late ok=0\n");
}

TEST(a_lock_that_is_lost_counts_as_a_hold_and_a_loss)
{
	cluster_begin(3);
	groups_are("all\t*");
	says(1, "LOCK a renew=no ttl=2s");
	hears(1, "OK name=*");
	passes(3 * SEC);
	hears(1, "! LOST *");
	is_told("group_losses_total all=1\n");
	is_told("group_hold_seconds_count all=1\n");
}

TEST(a_permit_counts_by_the_name_of_its_semaphore_and_its_slots_do_not)
{
	cluster_begin(3);
	groups_are("all\t*");
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	says(2, "ACQUIRE a limit=1");
	hears(2, "BUSY *");
	passes(SEC);
	says(1, "RELEASE a");
	hears(1, "OK *");
	is_told("group_requests_total all ok=1\n");
	is_told("group_requests_total all busy=1\n");
	is_told("group_hold_seconds_count all=1\n");
	is_told("group_hold_seconds_sum all=1.000000\n");
	says(1, "ACQUIRE a limit=1");
	hears(1, "OK *");
	all_feel(MOOD_SILENT);
	passes(30 * SEC);
	all_feel(MOOD_WELL);
	passes(60 * SEC);
	is_told("group_losses_total all=1\n");
	is_told("group_hold_seconds_count all=2\n");
}

TEST(each_name_of_a_LOCKALL_counts_when_it_is_granted_and_the_one_that_refuses_it)
{
	cluster_begin(3);
	groups_are("a\ta*\nb\tb*");
	says(1, "LOCKALL a b1 b2");
	for (unsigned i = 0; i < 3; i++)
		hears(1, "\\* *");
	hears(1, "OK *");
	is_told("group_requests_total a ok=1\n");
	is_told("group_requests_total b ok=2\n");
	says(2, "LOCKALL b1 c");
	hears(2, "BUSY name=b1 *");
	is_told("group_requests_total b busy=1\n");
}

TEST(a_reload_keeps_the_figures_of_the_labels_that_stay)
{
	cluster_begin(1);
	groups_are("a\ta*\nb\tb*");
	says(1, "LOCK a");
	says(1, "LOCK b");
	hears(1, "OK name=*");
	hears(1, "OK name=*");
	groups_are("c\tc*\nb\tx*\nd\ta*");
	says(1, "LOCK b2");
	hears(1, "OK name=*");
	is_told("group_requests_total b ok=1\n");
	is_told("group_requests_total d ok=0\n");
	ck_assert_ptr_null(strstr(told, "total a "));
	groups_are(NULL);
	is_told("");
	ck_assert_str_eq(told, "");
}
