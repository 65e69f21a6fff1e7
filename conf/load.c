/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads texts from a file, the command line or a caller.
 */
#include "conf/conf.h"

#include "conf/reader.h"
#include "conf/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int conf_load_text(struct conf *c, const char *label, const char *text, size_t n, struct conf_report *report)
{
	return reader_run(c, source_add(&c->sources, label, text, n), 0, NULL, report);
}

/* Reads up to one byte more than a configuration may have, so that a longer file is detected. */
static ssize_t file_read(const char *path, char *text, size_t size)
{
	size_t n = 0;
	ssize_t r = 1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (n < size && r) {
		r = read(fd, text + n, size - n);
		if (r < 0 && errno != EINTR)
			break;
		n += r > 0 ? (size_t)r : 0;
	}
	r = r < 0 ? -errno : (ssize_t)n;
	close(fd);
	return r;
}

bool conf_may_be_read_again(const char *path)
{
	struct stat st;

	return !path || stat(path, &st) || S_ISREG(st.st_mode);
}

int conf_load(struct conf *c, const char *path, struct conf_report *report)
{
	char *text = conf_alloc(SOURCE_MAX + 1);
	ssize_t n = file_read(path, text, SOURCE_MAX + 1);
	int r = -1;

	if (n < 0)
		report_error(report, source_add(&c->sources, path, "", 0), (struct source_place){0}, "cannot be read: %s",
			     strerror((int)-n));
	else
		r = conf_load_text(c, path, text, (size_t)n, report);
	free(text);
	return r;
}

static int set_refuse(const struct conf_source *source, const char *path, struct conf_report *report)
{
	struct source_place place = {1, 1};
	char hint[HINT_MAX], show[SHOW_MAX];

	text_show(path, show);
	if (section_find(path)) {
		report_error(report, source, place, "'%s' is a section; name one of its keys, as in redis.timeout=80ms", show);
		return -1;
	}
	setting_hint_path(path, hint);
	report_error(report, source, place, "unknown key '%s'%s", show, hint);
	return -1;
}

int conf_set(struct conf *c, const char *assignment, struct conf_report *report)
{
	struct conf_source *source = source_add(&c->sources, "--set", assignment, strlen(assignment));
	const char *equals = strchr(assignment, '=');
	const struct setting *s;
	char *path;
	int r;

	if (!equals || strpbrk(assignment, "\r\n")) {
		report_error(report, source, (struct source_place){1, 1},
			     equals ? "an assignment is one line" : "an assignment is path=value, as in lease=30s");
		return -1;
	}
	path = conf_strndup(assignment, (size_t)(equals - assignment));
	s = setting_find_path(path);
	r = s ? reader_run(c, source, (size_t)(equals + 1 - assignment), s, report) : set_refuse(source, path, report);
	free(path);
	return r;
}
