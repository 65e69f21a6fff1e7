/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Modes of files that the configuration names, and of the configuration itself: nobody but owner and group may read a secret, or write what says whom to trust.
 * An owner gives a file to a group on purpose; "others" are all users of the host. It must never open a file.
 */
#include "conf/conf.h"

#include "conf/report.h"
#include "conf/schema.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum use { SECRET, TRUSTED };

static const struct {
	enum conf_key key;
	enum use use;
} guarded[] = {
	{KEY_REDIS_PASSWORD_FILE, SECRET},
	{KEY_REDIS_SENTINEL_PASSWORD_FILE, SECRET},
	{KEY_REDIS_TLS_KEY_FILE, SECRET},
	{KEY_HTTP_TOKEN_FILE, SECRET},
	{KEY_HTTP_METRICS_TOKEN_FILE, SECRET},
	{KEY_API_TOKEN_FILE, SECRET},
	{KEY_TLS_KEY_FILE, SECRET},
	{KEY_REDIS_TLS_CA_FILE, TRUSTED},
	{KEY_TLS_CLIENT_CA_FILE, TRUSTED},
	{KEY_AUTH_USERS_FILE, TRUSTED},
};

/* Another check says what is wrong with a file that is not there. A pipe or a device is guarded by other means. */
static void mode_check(const char *path, enum use use, const struct conf_source *source, struct source_place place, struct conf_report *report)
{
	unsigned forbidden = use == SECRET ? S_IRWXO : S_IWOTH;
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode) || !(st.st_mode & forbidden))
		return;
	report_error(report, source, place, "every user of this host may %s %s (mode %04o): chmod %s %s", st.st_mode & S_IWOTH ? "write" : "read", path,
	             (unsigned)st.st_mode & 07777, use == SECRET ? "0640" : "0644", path);
}

int conf_modes_check(const struct conf *c, const char *path, struct conf_report *report)
{
	unsigned before = report->errors;
	char where[PATH_MAX];

	for (const struct conf_source *s = c->sources; s && path; s = s->next)
		if (strcmp(s->label, path) == 0)
			mode_check(path, TRUSTED, s, (struct source_place){0}, report);
	for (size_t i = 0; i < sizeof(guarded) / sizeof(guarded[0]); i++) {
		enum conf_key key = guarded[i].key;
		const struct conf_origin *o = &c->origin[key];

		if (conf_file_name(c, key) && !o->bad && conf_file_path(c, key, where))
			mode_check(where, guarded[i].use, o->source, (struct source_place){o->line, o->column}, report);
	}
	return report->errors == before ? 0 : -1;
}
