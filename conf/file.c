/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that the configuration names: secrets, users, and the modes of these files. Reading them must never block. A secret is never a value of the
 * configuration, and never part of a message. Neither is a line of the file of users.
 */
#include "conf/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX        ((off_t)1024 * 1024) /* bytes */
#define SECRET_MAX      4096
#define API_TOKEN_LEAST 16 /* bytes: nothing slows down a client that guesses */
#define USERS_MOST      10000
#define USER_NAME_MOST  256
#define HASH_MOST       383 /* crypt(3): CRYPT_OUTPUT_SIZE without its NUL */

const char *conf_file_name(const struct conf *c, enum conf_key key)
{
	const void *field = (const char *)c + setting_table[key].offset;

	return *(char *const *)field;
}

/* Joins folder[0..n), "/" and name; false if the path is too long. */
static bool path_join(const char *folder, size_t n, const char *name, char ret_path[PATH_MAX])
{
	int length = snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)n, folder, name);

	errno = ENAMETOOLONG; /* if it is too long */
	return length > 0 && length < PATH_MAX;
}

/* Whether a file exists, even if it cannot be examined. */
static bool is_there(const char *path)
{
	struct stat st;

	return !stat(path, &st) || errno != ENOENT;
}

bool conf_file_path(const struct conf *c, enum conf_key key, char *ret_path)
{
	const char *name = conf_file_name(c, key), *credentials = getenv("CREDENTIALS_DIRECTORY");
	const struct conf_source *source = c->origin[key].source;
	const char *slash = source ? strrchr(source->label, '/') : NULL;

	if (*name != '/' && credentials && path_join(credentials, strlen(credentials), name, ret_path) && is_there(ret_path))
		return true;
	if (*name != '/' && slash)
		return path_join(source->label, (size_t)(slash - source->label), name, ret_path);
	errno = ENAMETOOLONG; /* if it is too long */
	return snprintf(ret_path, PATH_MAX, "%s", name) < PATH_MAX;
}

static int file_take(int fd, char **ret_text, size_t *ret_n)
{
	struct stat st;
	char *text;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;
	if (st.st_size > FILE_MAX)
		return -EFBIG;
	text = conf_alloc((size_t)st.st_size + 1);
	n = read(fd, text, (size_t)st.st_size); /* a regular file, so it reads all of it */
	*ret_text = n < 0 ? NULL : text;
	*ret_n = n < 0 ? 0 : (size_t)n;
	if (n >= 0)
		return 0;
	n = -errno;
	free(text);
	return (int)n;
}

int conf_file(const struct conf *c, enum conf_key key, char **ret_text, size_t *ret_n)
{
	char path[PATH_MAX];
	int fd, r;

	*ret_text = NULL;
	*ret_n = 0;
	if (!conf_file_name(c, key))
		return 0;
	if (!conf_file_path(c, key, path))
		return -errno;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = file_take(fd, ret_text, ret_n);
	close(fd);
	return r;
}

int conf_secret(const struct conf *c, enum conf_key key, char **ret_secret)
{
	char *text;
	size_t n, length, end;
	int r = conf_file(c, key, &text, &n);

	*ret_secret = NULL;
	if (r || !text)
		return r;
	length = strcspn(text, "\r\n");
	end = length + strspn(text + length, "\r\n");
	if (length > 0 && length <= SECRET_MAX && end == n)
		*ret_secret = conf_strndup(text, length);
	explicit_bzero(text, n);
	free(text);
	return *ret_secret ? 0 : -EINVAL;
}

static void secret_check(const struct conf *c, enum conf_key key, struct conf_report *report)
{
	const char *elsewhere = getenv("CREDENTIALS_DIRECTORY") ? ", nor is it in $CREDENTIALS_DIRECTORY" : "; $CREDENTIALS_DIRECTORY is not set";
	char path[PATH_MAX] = "", *secret = NULL;
	int r;

	if (!conf_file_name(c, key) || c->origin[key].bad)
		return;
	(void)conf_file_path(c, key, path);
	r = conf_secret(c, key, &secret);
	if (r == -EINVAL)
		conf_refuse(c, key, report, "%s: it holds no secret: it must have one line of 1 to %d bytes, the secret alone", path, SECRET_MAX);
	else if (r == -ENOTSUP)
		conf_refuse(c, key, report, "%s: it is no regular file", path);
	else if (r < 0)
		conf_refuse(c, key, report, "%s: cannot be read: %s%s", path, strerror(-r), r == -ENOENT && *conf_file_name(c, key) != '/' ? elsewhere : "");
	else if (key == KEY_API_TOKEN_FILE && strlen(secret) < API_TOKEN_LEAST)
		conf_refuse(c, key, report, "the token can be guessed: it has %zu bytes, and needs %d (did you mean the output of 'openssl rand -hex 16'?)",
		            strlen(secret), API_TOKEN_LEAST);
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

void secrets_check(const struct conf *c, struct conf_report *report)
{
	static const enum conf_key secret[] = {KEY_REDIS_PASSWORD_FILE, KEY_REDIS_SENTINEL_PASSWORD_FILE, KEY_HTTP_TOKEN_FILE, KEY_HTTP_METRICS_TOKEN_FILE,
	                                       KEY_API_TOKEN_FILE};

	for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
		secret_check(c, secret[i], report);
}

struct users_reading {
	struct conf_report *report;
	const struct conf_source *source;
	struct conf_users *users;
	void *by_name; /* a tree of tsearch(3): the loop of the daemon waits for a reload, so comparing each name with all others takes too long */
	unsigned line;
	bool bad;
};

/* Shows no source line, because it contains a hash, or a secret that was put there by mistake. */
#define refuse(r, ...) ((r)->bad = true, report_add((r)->report, GRADE_SECRET, (r)->source, (struct source_place){(r)->line, 1}, __VA_ARGS__))

static int names_compare(const void *a, const void *b)
{
	const struct conf_user *one = a, *other = b;

	return strcmp(one->name, other->name);
}

/* False: another user has this name. */
static bool name_is_new(struct users_reading *r, struct conf_user *user)
{
	struct conf_user **found = tsearch(user, &r->by_name, names_compare);

	if (!found)
		abort(); /* like conf_alloc */
	return *found == user;
}

/* The tree does not own the users. */
static void user_keep(void *user)
{
	(void)user;
}

static void user_add(struct users_reading *r, char *name, char *hash)
{
	struct conf_user *user = &r->users->user[r->users->count];
	char show[SHOW_MAX];

	if (strlen(name) > USER_NAME_MOST || !text_printable(name, strlen(name))) {
		refuse(r, "the name of a user is a text of 1 to %d bytes", USER_NAME_MOST);
		return;
	}
	if (*hash != '$' || strlen(hash) > HASH_MOST || !text_printable(hash, strlen(hash))) {
		refuse(r, "behind '%s' stands no hash as 'redlock passwd NAME' prints it", text_show(name, show));
		return;
	}
	if (r->users->count == USERS_MOST) {
		refuse(r, "at most %d users", USERS_MOST);
		return;
	}
	user->name = name;
	if (!name_is_new(r, user)) {
		refuse(r, "user '%s' stands here a second time", text_show(name, show));
		return;
	}
	*user = (struct conf_user){conf_strdup(name), conf_strdup(hash)};
	r->users->count++;
}

/* Empty lines and lines that begin with # are ignored. */
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
		refuse(r, "a line is a name and a hash, as 'redlock passwd NAME' prints it");
	else
		user_add(r, name, hash);
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
	struct users_reading r = {.report = report};
	char *text, *line, *rest;
	size_t n;
	int error = conf_file(c, KEY_AUTH_USERS_FILE, &text, &n);

	assert(error || text); /* the key has a value */
	if (!error && memchr(text, '\0', n))
		error = -EINVAL;
	if (error) {
		conf_refuse(c, KEY_AUTH_USERS_FILE, report, "the file cannot be used: %s", users_fault(-error));
		free(text);
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

/*
 * Only the owner and the group may read a secret, or write a file that says whom to trust. An owner gives a file to a group on purpose; "others" are
 * all users of the host. Another check reports a missing file. Pipes and devices are protected by other means.
 */
static void mode_check(const char *path, enum use use, const struct conf_source *source, struct source_place place, struct conf_report *report)
{
	unsigned forbidden = use == SECRET ? S_IRWXO : S_IWOTH;
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode) || !(st.st_mode & forbidden))
		return;
	report_error(report, source, place, "every user of this host may %s %s (mode %04o): chmod %s %s", st.st_mode & S_IWOTH ? "write" : "read", path,
	             (unsigned)st.st_mode & 07777, use == SECRET ? "0640" : "0644", path);
}

void modes_check(const struct conf *c, const char *path, struct conf_report *report)
{
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
}
