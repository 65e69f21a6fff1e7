/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes and frees a configuration. Each default goes through the same reader as the values of a file, so every default of the
 * table is a value that a file could contain.
 */
#include "conf/conf.h"

#include "conf/schema.h"
#include "conf/source.h"
#include "conf/value.h"

#include <stdlib.h>
#include <string.h>

static void default_set(struct conf *c, const struct setting *s)
{
	char why[WHY_MAX];
	bool written;

	if (!s->given)
		return;
	if (value_parse(c, s, s->given, strlen(s->given), &written, why))
		abort(); /* a mistake in schema.def */
	if (written)
		c->origin[s->key].written = conf_strdup(s->given);
}

void conf_init(struct conf *ret_conf)
{
	*ret_conf = (struct conf){0};
	for (size_t i = 0; i < CONF_KEYS; i++)
		default_set(ret_conf, &setting_table[i]);
}

void conf_release(struct conf *c)
{
	for (size_t i = 0; i < CONF_KEYS; i++) {
		value_release(c, &setting_table[i]);
		free(c->origin[i].written);
	}
	source_free(c->sources);
	*c = (struct conf){0};
}

int conf_read(struct conf *ret_conf, const char *path, const char *const *sets, size_t count, struct conf_report *report)
{
	int r = 0;

	conf_init(ret_conf);
	if (path && conf_load(ret_conf, path, report))
		r = -1;
	for (size_t i = 0; i < count; i++)
		if (conf_set(ret_conf, sets[i], report))
			r = -1;
	if (conf_check(ret_conf, report))
		r = -1;
	if (report->files && conf_modes_check(ret_conf, path, report))
		r = -1;
	if (report->files && conf_password_check(ret_conf, report))
		r = -1;
	if (report->files && conf_users_check(ret_conf, report))
		r = -1;
	if (report->more && report->more(ret_conf, report))
		r = -1;
	conf_report_print(report);
	return r;
}
