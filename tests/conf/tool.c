/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration part of the daemon's command line, alone: --config, --set, --check-config, --dump-config as redlockd has them, and
 * --diff FILE, which says what a reload from --config to FILE would change.
 */
#include "conf/conf.h"

#include <getopt.h>
#include <stdlib.h>

#define SETS_MAX 64

static void change_print(void *context, const char *path, const char *from, const char *to, bool reloadable)
{
	(void)context;
	printf("%s %s -> %s%s\n", path, from, to, reloadable ? "" : " (restart)");
}

static int diff_print(const struct conf *c, const char *path)
{
	struct conf_report report = {.out = stderr};
	struct conf other;
	int r = conf_read(&other, path, NULL, 0, &report);

	if (!r)
		printf("%u need a restart\n", conf_diff(c, &other, change_print, NULL));
	conf_release(&other);
	return r;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"config", 1, NULL, 'c'},       {"set", 1, NULL, 's'},
						{"check-config", 0, NULL, 'k'}, {"dump-config", 0, NULL, 'd'},
						{"diff", 1, NULL, 'f'},         {0}};
	struct conf_report report = {.out = stderr};
	const char *path = NULL, *diff = NULL, *sets[SETS_MAX];
	struct conf c;
	size_t count = 0;
	bool dump = false;
	int o, r;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'c')
			path = optarg;
		else if (o == 'f')
			diff = optarg;
		else if (o == 's' && count < SETS_MAX)
			sets[count++] = optarg;
		else if (o == 'd')
			dump = true;
		else if (o != 'k')
			return 64;
	}
	r = conf_read(&c, path, sets, count, &report);
	if (!r && diff)
		r = diff_print(&c, diff);
	else if (!r && dump)
		conf_dump(&c, stdout);
	else if (!r)
		conf_summary(&c, stdout);
	conf_release(&c);
	return r ? 78 : EXIT_SUCCESS;
}
