/* SPDX-License-Identifier: BSD-2-Clause */
/* conf/ as a whole, through conf.h. tests/conf checks the wording of messages. */
#include "conf/schema.h"
#include "tests/fixture/loaded_conf.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

FIXTURE(.setup = begin, .teardown = end)

TEST(the_defaults_are_those_of_the_table)
{
	ck_assert_ptr_null(conf.listen.unix_path);
	ck_assert_str_eq(conf.listen.tcp_host, "127.0.0.1");
	ck_assert_uint_eq(conf.listen.tcp_port, 7420);
	ck_assert_int_eq(conf.store, STORE_MEMORY);
	ck_assert_uint_eq(conf.redis.nodes, 0);
	ck_assert_str_eq(conf.redis.key_prefix, "lock:");
	ck_assert_int_eq(conf.redis.timeout, 50 * MS);
	ck_assert_ptr_null(conf.redis.set);
	ck_assert_uint_eq(conf.redis.generation, 1);
	ck_assert(!conf.redis.foreign);
	ck_assert_uint_eq(conf.redis.links, 1);
	ck_assert_int_eq(conf.lease, 10 * SECOND);
	ck_assert_int_eq(conf.min_lease, 100 * MS);
	ck_assert_int_eq(conf.max_lease, 30 * SECOND);
	ck_assert_int_eq(conf.max_delay, 0);
	ck_assert_int_eq(conf.guard, GUARD_STRICT);
	ck_assert_uint_eq(conf.limits.line, 139264);
	ck_assert_uint_ge(conf.limits.clients, 10000);
	ck_assert_uint_lt(conf.limits.output, 8 << 20);
	ck_assert_uint_eq(conf.limits.name, 512);
	ck_assert_int_eq(conf.log.level, 3);
	ck_assert_int_eq(conf_check(&conf, &report), 0);
	ck_assert_uint_eq(report.warnings, 0);
}

/* All that people read is made from the rows, so they must be fit for it. */
TEST(every_row_is_complete)
{
	for (size_t i = 0; i < CONF_KEYS; i++) {
		const struct setting *s = &setting_table[i];
		size_t n = strlen(s->help);
		bool dotted = strchr(s->path, '.') != NULL;

		ck_assert_msg(s->path && s->key == i, "row %zu", i);
		ck_assert_msg(!s->given == (s->unset && s->example), "%s", s->path);
		ck_assert_msg(n && s->help[n - 1] == '.', "%s", s->path);
		ck_assert_msg(dotted == (setting_section(s) != NULL), "%s", s->path);
		ck_assert_msg(setting_find(s->path) == s, "%s is there twice", s->path);
		ck_assert_msg(!section_find(s->path), "%s", s->path);
	}
}

TEST(the_rows_of_a_section_stand_together)
{
	for (size_t i = 0; i < section_count; i++) {
		unsigned runs = 0;

		for (size_t k = 0; k < CONF_KEYS; k++) {
			bool here = setting_section(&setting_table[k]) == &section_table[i];

			runs += here && (!k || setting_section(&setting_table[k - 1]) != &section_table[i]);
		}
		ck_assert_msg(runs == 1, "%s", section_table[i].name);
	}
}

TEST(a_file_goes_over_the_defaults_and_a_set_over_the_file)
{
	ck_assert_int_eq(load("lease: 9s\nredis: {timeout: 60ms}\n"), 0);
	ck_assert_int_eq(conf_set(&conf, "redis.timeout=80ms", &report), 0);
	ck_assert_int_eq(conf_set(&conf, "redis.timeout=90ms", &report), 0);
	ck_assert_int_eq(conf.lease, 9 * SECOND);
	ck_assert_int_eq(conf.redis.timeout, 90 * MS);
	ck_assert_int_eq(conf.max_lease, 30 * SECOND);
}

TEST(each_type_finds_its_field)
{
	ck_assert_int_eq(load("listen: {unix: /a, tcp: \"[::1]:80\"}\nstore: redis\n"
			      "redis: {nodes: [h, \"[::1]:1\", unix:/s], foreign: on, generation: 7}\n"
			      "guard: trust-first-start\nlimits: {line: 1m, clients: 5}\nlog: {level: debug}\n"),
			 0);
	ck_assert_str_eq(conf.listen.unix_path, "/a");
	ck_assert_str_eq(conf.listen.tcp_host, "::1");
	ck_assert_uint_eq(conf.listen.tcp_port, 80);
	ck_assert_int_eq(conf.store, STORE_REDIS);
	ck_assert_uint_eq(conf.redis.nodes, 3);
	ck_assert_str_eq(conf.redis.node[0].host, "h");
	ck_assert_uint_eq(conf.redis.node[0].port, 6379);
	ck_assert_str_eq(conf.redis.node[1].host, "::1");
	ck_assert_str_eq(conf.redis.node[1].label, "[::1]:1");
	ck_assert_str_eq(conf.redis.node[2].path, "/s");
	ck_assert_ptr_null(conf.redis.node[2].host);
	ck_assert(conf.redis.foreign);
	ck_assert_uint_eq(conf.redis.generation, 7);
	ck_assert_int_eq(conf.guard, GUARD_TRUST_FIRST_START);
	ck_assert_uint_eq(conf.limits.line, 1 << 20);
	ck_assert_int_eq(conf.log.level, 4);
}

TEST(no_switches_a_listener_off)
{
	ck_assert_int_eq(load("listen: {unix: no, tcp: \"no\"}\n"), 0);
	ck_assert_str_eq(conf.listen.unix_path, "");
	ck_assert_ptr_null(conf.listen.tcp_host);
	ck_assert_int_eq(conf_check(&conf, &report), -1);
	ck_assert_uint_eq(report.errors, 1);
}

TEST(a_refused_value_leaves_the_one_before)
{
	ck_assert_int_eq(load("lease: 9s\nredis: {nodes: [a]}\n"), 0);
	ck_assert_int_eq(load("lease: 9\nredis: {nodes: [b, b]}\n"), -1);
	ck_assert_uint_eq(report.errors, 2);
	ck_assert_int_eq(conf.lease, 9 * SECOND);
	ck_assert_str_eq(conf.redis.node[0].host, "a");
}

TEST(every_bound_holds_on_both_sides)
{
	static const struct {
		const char *assignment;
		int r;
	} table[] = {
		{"redis.timeout=999us", -1},
		{"redis.timeout=1ms", 0},
		{"redis.timeout=10s", 0},
		{"redis.timeout=10001ms", -1},
		{"limits.line=511", -1},
		{"limits.line=512", 0},
		{"limits.line=1m", 0},
		{"limits.line=1048577", -1},
		{"redis.links=0", -1},
		{"redis.links=1", 0},
		{"redis.links=16", 0},
		{"redis.links=17", -1},
		{"limits.name=513", -1},
		{"limits.output=7m", 0},
		{"limits.output=8m", -1},
		{"lease=99ms", -1},
		{"redis.key_prefix=\"\"", -1},
		{"redis.nodes=[\"a:1\"]", 0},
		{"redis.nodes=[\"a:0\"]", -1},
		{"listen.tcp=a:0", 0},
		{"listen.tcp=a:65535", 0},
		{"listen.tcp=a:65536", -1},
		{"redis.generation=18446744073709551617", -1},
		{"limits.line=8K", 0},
		{"limits.line=8kb", -1},
		{"limits.line=k", -1},
		{"limits.line=9223372036854775807k", -1},
		{"limits.line=-1", -1},
		{"limits.clients=1k", -1},
		{"limits.clients=1_000", -1},
		{"limits.clients=0x10", -1},
		{"lease=10", -1},
		{"lease=10S", -1},
		{"lease=1.5s", 0},
		{"lease=", -1},
		{"lease=87841h", -1},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		ck_assert_msg(conf_set(&conf, table[i].assignment, &report) == table[i].r, "%s", table[i].assignment);
}

TEST(messages_come_in_the_order_of_the_text)
{
	static const char *const order[] = {"test.yaml:1:8: error: lease", "test.yaml:2:1: error: unknown",
					    "test.yaml:3:14: error: log.level", "test.yaml:4:15: error: redis.user",
					    "--set:1:1: error: unknown"};
	char *text = NULL, *at;
	size_t n;

	report.out = open_memstream(&text, &n);
	ck_assert_int_eq(load("lease: 1m\nnonsense: 1\nlog: {level: loud}\nredis: {user: x}\n"), -1);
	ck_assert_int_eq(conf_set(&conf, "x=1", &report), -1);
	ck_assert_int_eq(conf_check(&conf, &report), -1); /* finds what is wrong with lines 1 and 4 */
	conf_report_print(&report);
	ck_assert_uint_eq(report.errors, 5);
	fclose(report.out);
	at = text;
	for (size_t i = 0; i < 5; i++) {
		at = strstr(at, order[i]);
		ck_assert_msg(at != NULL, "%s is not behind the one before in:\n%s", order[i], text);
	}
	free(text);
	report = (struct conf_report){0};
}

TEST(a_size_counts_in_units_of_1024)
{
	ck_assert_int_eq(conf_set(&conf, "limits.stored=3M", &report), 0);
	ck_assert_uint_eq(conf.limits.stored, 3 << 20);
	ck_assert_int_eq(conf_set(&conf, "limits.stored=1g", &report), 0);
	ck_assert_uint_eq(conf.limits.stored, 1 << 30);
}

/* A dotted key means the same as its key in a section, and YAML's aliases mean what they repeat. */
TEST(keys_have_the_forms_of_yaml)
{
	ck_assert_int_eq(load("redis.links: 3\nlease: &l 9s\nmin_lease: *l\nredis: {tls.ca_file: a, tls: {key_file: b}}\n"), 0);
	ck_assert_uint_eq(conf.redis.links, 3);
	ck_assert_int_eq(conf.min_lease, 9 * SECOND);
	ck_assert_str_eq(conf.redis.tls.ca_file, "a");
	ck_assert_str_eq(conf.redis.tls.key_file, "b");
	ck_assert(conf.redis.tls.on);
	ck_assert_int_eq(load("redis.links: 3\nredis: {links: 4}\n"), -1);
}

TEST(keys_that_were_refused_take_no_part_in_conflicts)
{
	ck_assert_int_eq(load("store: redis\nlease: 1\nmin_lease: 20s\nredis: {nodes: []}\n"), -1);
	ck_assert_uint_eq(report.errors, 2);
	ck_assert_int_eq(conf_check(&conf, &report), 0);
}

TEST(a_key_that_was_not_read_is_not_called_missing)
{
	ck_assert_int_eq(load("store: redis\nlease: \"\n"), -1);
	ck_assert_int_eq(conf_check(&conf, &report), 0);
}

/* A prefix that is the beginning of the daemon's own keys, or the reverse. */
TEST(a_prefix_that_reaches_the_markers_is_refused)
{
	static const char *const bad[] = {"r", "redlockd", "redlockd:", "redlockd:x:"}, *const good[] = {"lock:", "redlocks:",
													 "x", "edlockd:"};

	for (size_t i = 0; i < 4; i++) {
		char assignment[64];

		snprintf(assignment, sizeof(assignment), "redis.key_prefix='%s'", bad[i]);
		ck_assert_int_eq(conf_set(&conf, assignment, &report), 0);
		ck_assert_msg(conf_check(&conf, &report) == -1, "%s", bad[i]);
		snprintf(assignment, sizeof(assignment), "redis.key_prefix='%s'", good[i]);
		ck_assert_int_eq(conf_set(&conf, assignment, &report), 0);
		ck_assert_msg(conf_check(&conf, &report) == 0, "%s", good[i]);
	}
}

TEST(an_assignment_is_one_line)
{
	ck_assert_int_eq(conf_set(&conf, "lease=5s\n", &report), -1);
	ck_assert_int_eq(conf_set(&conf, "lease=5s\r\nmax_lease: 9s", &report), -1);
	ck_assert_int_eq(conf_set(&conf, "lease=5s", &report), 0);
	ck_assert_int_eq(conf.lease, 5 * SECOND);
}

TEST(each_key_has_its_line_of_help)
{
	char *text = NULL;
	size_t n, lines = 0;
	FILE *out = open_memstream(&text, &n);

	conf_keys(out);
	fclose(out);
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	ck_assert_uint_eq(lines, CONF_KEYS);
	free(text);
}
