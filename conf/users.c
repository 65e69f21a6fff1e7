/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of users: a line each, a name and the hash of a secret. No line of it is ever part of a message.
 */
#include "conf/conf.h"

#include "conf/report.h"
#include "conf/file.h"
#include "conf/words.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USERS_FILE_MOST ((size_t)1024 * 1024)
#define USERS_MOST      10000
#define USER_NAME_MOST  256
#define HASH_MOST       383 /* crypt(3): CRYPT_OUTPUT_SIZE, less its NUL */

struct users_reading {
	struct conf_report *report;
	const struct conf_source *source;
	struct conf_users *users;
	void *by_name; /* tsearch(3): the loop of a daemon waits for a reload, so no name is compared with all others */
	unsigned line;
	bool bad;
};

/* No source line is shown: it holds a hash, or a secret that was put there by mistake. */
#define complain(r, ...) ((r)->bad = true, report_secret((r)->report, (r)->source, (struct source_place){(r)->line, 1}, __VA_ARGS__))

static int names_compare(const void *a, const void *b)
{
	const struct conf_user *one = a, *other = b;

	return strcmp(one->name, other->name);
}

/* False: another has it. */
static bool name_is_new(struct users_reading *r, struct conf_user *user)
{
	struct conf_user **found = tsearch(user, &r->by_name, names_compare);

	if (!found)
		abort(); /* as conf_alloc */
	return *found == user;
}

/* The tree has no users of its own. */
static void user_keep(void *user)
{
	(void)user;
}

static void user_add(struct users_reading *r, char *name, char *hash)
{
	struct conf_user *user = &r->users->user[r->users->count];
	char show[SHOW_MAX];

	if (strlen(name) > USER_NAME_MOST || !text_printable(name, strlen(name))) {
		complain(r, "the name of a user is a text of 1 to %d bytes", USER_NAME_MOST);
		return;
	}
	if (*hash != '$' || strlen(hash) > HASH_MOST || !text_printable(hash, strlen(hash))) {
		complain(r, "behind '%s' stands no hash as 'redlock passwd NAME' prints it", text_show(name, show));
		return;
	}
	if (r->users->count == USERS_MOST) {
		complain(r, "at most %d users", USERS_MOST);
		return;
	}
	user->name = name;
	if (!name_is_new(r, user)) {
		complain(r, "user '%s' stands here a second time", text_show(name, show));
		return;
	}
	*user = (struct conf_user){conf_strdup(name), conf_strdup(hash)};
	r->users->count++;
}

/* An empty line, and one that begins with #, is ignored. */
static void user_read(struct users_reading *r, char *line)
{
	static const char blanks[] = " \t\r";
	char *rest = NULL, *name, *hash;

	r->line++;
	if (line[strspn(line, blanks)] == '#')
		return;
	name = strtok_r(line, blanks, &rest);
	if (!name)
		return;
	hash = strtok_r(NULL, blanks, &rest);
	if (!hash || strtok_r(NULL, blanks, &rest))
		complain(r, "a line is a name and a hash, as 'redlock passwd NAME' prints it");
	else
		user_add(r, name, hash);
}

/* The bytes of a regular file, with a NUL behind them. 0 or -errno. */
static int users_text(const struct conf *c, char **ret_text, size_t *ret_n)
{
	int fd = file_open(c, KEY_AUTH_USERS_FILE, O_NONBLOCK);
	struct stat st;
	ssize_t n = 0;
	char *text;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (size_t)st.st_size > USERS_FILE_MOST) {
		close(fd);
		return S_ISREG(st.st_mode) ? -EFBIG : -ENOTSUP;
	}
	text = conf_alloc((size_t)st.st_size + 1);
	n = read(fd, text, (size_t)st.st_size); /* of a regular file, so all of it */
	close(fd);
	if (n < 0 || memchr(text, '\0', (size_t)n)) {
		free(text);
		return n < 0 ? -EIO : -EINVAL;
	}
	*ret_text = text;
	*ret_n = (size_t)n;
	return 0;
}

static const char *users_fault(int error)
{
	switch (error) {
	case ENOTSUP:
		return "it is no regular file";
	case EFBIG:
		return "it has more than 1 MiB";
	case EINVAL:
		return "it is binary";
	default:
		return strerror(error);
	}
}

struct conf_users *conf_users(struct conf *c, struct conf_report *report)
{
	struct conf_origin *o = &c->origin[KEY_AUTH_USERS_FILE];
	struct users_reading r = {.report = report};
	char *text = NULL, *line, *rest;
	size_t n = 0;
	int error;

	error = users_text(c, &text, &n);
	if (error) {
		report_error(report, o->source, (struct source_place){o->line, o->column}, "the file cannot be used: %s", users_fault(-error));
		return NULL;
	}
	r.source = source_add(&c->sources, c->auth.users_file, "", 0);
	r.users = conf_alloc(sizeof(*r.users) + USERS_MOST * sizeof(r.users->user[0]));
	for (rest = text; (line = strsep(&rest, "\n"));)
		user_read(&r, line);
	tdestroy(r.by_name, user_keep);
	explicit_bzero(text, n);
	free(text);
	if (r.bad) {
		conf_users_free(r.users);
		return NULL;
	}
	return r.users;
}

void conf_users_free(struct conf_users *users)
{
	for (size_t i = 0; users && i < users->count; i++) {
		free(users->user[i].name);
		free(users->user[i].hash);
	}
	free(users);
}

int conf_users_check(struct conf *c, struct conf_report *report)
{
	unsigned before = report->errors;

	if (c->auth.users_file && !c->origin[KEY_AUTH_USERS_FILE].bad)
		conf_users_free(conf_users(c, report));
	return report->errors == before ? 0 : -1;
}
