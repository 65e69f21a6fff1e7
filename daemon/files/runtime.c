/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses, makes and locks the runtime directory. */
#include "daemon/files/runtime.h"

#include "daemon/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME "redlockd.lock"

static int runtime_choose(struct runtime *r, const char *configured)
{
	const char *systemd = getenv("RUNTIME_DIRECTORY"), *xdg = getenv("XDG_RUNTIME_DIR");
	int n;

	if (configured)
		n = snprintf(r->dir, sizeof(r->dir), "%s", configured);
	else if (systemd && *systemd)
		n = snprintf(r->dir, sizeof(r->dir), "%.*s", (int)strcspn(systemd, ":"), systemd);
	else if (geteuid() == 0)
		n = snprintf(r->dir, sizeof(r->dir), "/run/redlockd");
	else if (xdg && *xdg)
		n = snprintf(r->dir, sizeof(r->dir), "%s/redlockd", xdg);
	else
		n = snprintf(r->dir, sizeof(r->dir), "/tmp/redlockd-%" PRIuMAX, (uintmax_t)geteuid());
	return n < 0 || (size_t)n >= sizeof(r->dir) ? -ENAMETOOLONG : 0;
}

static bool is_trusted(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid();
}

/* In a folder like /tmp any user can make names. So the directory, or a link to it, may belong to another user, who could replace our files. */
static int runtime_make(const struct runtime *r)
{
	bool shared = strncmp(r->dir, "/tmp/redlockd-", 14) == 0;
	struct stat named, st;

	if (mkdir(r->dir, shared ? 0700 : 0755) && errno != EEXIST)
		return -errno;
	if (lstat(r->dir, &named) || stat(r->dir, &st))
		return -errno;
	if (!S_ISDIR(shared ? named.st_mode : st.st_mode))
		return -ENOTDIR;
	return is_trusted(&named) && is_trusted(&st) ? 0 : -EPERM;
}

const char *runtime_trouble(int r)
{
	if (r == -EWOULDBLOCK)
		return "another redlockd lives there; give each its own runtime_dir";
	return r == -EPERM ? "the directory, or the link to it, belongs to another user: it must belong to root or to the user of the daemon" : strerror(-r);
}

/* The lock file shows that the directory is in use. It can be deleted, and another daemon would then lock a new one. So the directory is locked too. */
static int runtime_lock(struct runtime *r)
{
	char path[sizeof(r->dir) + 16];
	int rc;

	snprintf(path, sizeof(path), "%s/" LOCK_NAME, r->dir);
	r->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	r->folder = r->lock < 0 ? -1 : open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->folder < 0)
		rc = -errno;
	else if (flock(r->lock, LOCK_EX | LOCK_NB) || (flock(r->folder, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK))
		rc = -EWOULDBLOCK; /* other errors of the directory are ignored: NFS cannot lock one */
	else
		rc = 0;
	if (rc)
		runtime_close(r);
	return rc;
}

int runtime_open(struct runtime *r, const char *configured, const char **ret_what)
{
	int rc;

	r->lock = r->folder = -1;
	*ret_what = "runtime directory";
	rc = runtime_choose(r, configured);
	if (!rc)
		rc = runtime_make(r);
	if (!rc) {
		*ret_what = "lock in the runtime directory";
		rc = runtime_lock(r);
	}
	return rc;
}

int runtime_go_on(struct runtime *r, const char *dir, int lock, int folder, const char **ret_what)
{
	if (lock < 0 || folder < 0)
		return runtime_open(r, dir, ret_what);
	*r = (struct runtime){.lock = lock, .folder = folder};
	snprintf(r->dir, sizeof(r->dir), "%s", dir);
	return 0;
}

bool runtime_is_chosen(const struct runtime *r, const char *configured, struct runtime *ret_chosen)
{
	return runtime_choose(ret_chosen, configured) == 0 && strcmp(ret_chosen->dir, r->dir) == 0;
}

int runtime_look(const struct runtime *r)
{
	struct stat named, locked;

	if (stat(r->dir, &named))
		return errno == ENOENT || errno == ENOTDIR ? 1 : -errno;
	if (fstat(r->folder, &locked) || named.st_dev != locked.st_dev || named.st_ino != locked.st_ino)
		return 1;
	return fstatat(r->folder, LOCK_NAME, &locked, AT_SYMLINK_NOFOLLOW) && errno != ENOENT ? -errno : 0;
}

int runtime_again(struct runtime *r)
{
	struct runtime new = *r;
	int rc;

	new.lock = new.folder = -1;
	rc = runtime_make(&new);
	if (!rc)
		rc = runtime_lock(&new);
	if (rc)
		return rc;
	runtime_close(r);
	*r = new;
	return 0;
}

void runtime_close(struct runtime *r)
{
	if (r->lock >= 0)
		close(r->lock);
	if (r->folder >= 0)
		close(r->folder);
	r->lock = r->folder = -1;
}

void runtime_boot_id(char *out, size_t size)
{
	FILE *f = fopen(RUNTIME_BOOT_ID, "re");

	out[0] = '\0';
	if (!f)
		return;
	if (!fgets(out, (int)size, f))
		out[0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	fclose(f);
}

struct instant runtime_began(void)
{
	FILE *f = fopen("/proc/1/stat", "re");
	char text[1024] = "", *rest;
	unsigned long long ticks = 0;
	struct instant at = {0}, now;

	if (!f)
		return at;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	/* proc_pid_stat(5): the 22nd field; the name in brackets may contain anything. */
	rest = strrchr(text, ')');
	/* NOLINTNEXTLINE(cert-err34-c): the kernel writes valid numbers */
	if (!rest || sscanf(rest + 1, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &ticks) != 1)
		return at;
	now = clock_boottime();
	at.us = (int64_t)(ticks * SEC / (unsigned long long)sysconf(_SC_CLK_TCK));
	/* In a time namespace process 1 may have started before the zero of its clock. The number is useless then. */
	if (instant_before(now, at))
		at.us = 0;
	return at;
}
