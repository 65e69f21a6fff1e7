/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the daemon listens: at the sockets that were passed to it, or at the configured addresses. */
#include "daemon/main/internal.h"

#include "daemon/base/mem.h"
#include "daemon/main/passed.h"
#include "daemon/net/carry.h"
#include "daemon/net/listener.h"
#include "daemon/net/inherited.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The error, in words that suit the address better than those of the system. */
static const char *listen_trouble(int r)
{
	switch (r) {
	case -ENOTSOCK:
		return "the file at this path is not a socket: remove it, or name another path";
	case -EADDRINUSE:
		return "another program listens there already";
	case -EADDRNOTAVAIL:
		return "this host has no such address";
	case -EAGAIN:
		return "this name cannot be resolved now";
	case -ENOENT:
		return "the folder of this path does not exist";
	case -EPERM:
		return "this user may not give the socket to the group of listen.unix_group: it must be a member of it";
	default:
		return strerror(-r);
	}
}

static int listen_failed(const char *what, const char *where, int r)
{
	log_event(LOG_ERROR, "listen", "%s=%s error=\"%s\"", what, where, listen_trouble(r));
	return r;
}

static bool has_passed_tls(const struct daemon *d)
{
	for (size_t i = 0; i < d->systemd.sockets_n; i++)
		if (passed_is_tls(&d->systemd.sockets[i]))
			return true;
	return false;
}

bool daemon_speaks_tls(const struct daemon *d)
{
	return d->conf->listen.tls_host || has_passed_tls(d);
}

/* The check of the configuration covers only its own addresses. */
static int passed_check(const struct daemon *d)
{
	for (size_t i = 0; i < d->systemd.sockets_n; i++) {
		const struct systemd_socket *s = &d->systemd.sockets[i];
		const char *flaw = passed_flaw(d->conf, passed_kind(s));

		if (!flaw)
			continue;
		log_event(LOG_ERROR, "listen", "passed=%s fd=%d error=\"%s\"", s->name, s->fd, flaw);
		return UNPROTECTED;
	}
	return 0;
}

static int listen_passed(struct daemon *d)
{
	for (size_t i = 0; i < d->systemd.sockets_n; i++) {
		const struct systemd_socket *s = &d->systemd.sockets[i];
		int r = net_listen_fd(d->net, s->fd, passed_is_tls(s));

		if (r >= 0)
			continue;
		log_event(LOG_ERROR, "listen", "passed=%s fd=%d error=\"%s\"", s->name, s->fd,
		          r == -EINVAL ? "this is no stream socket that listens: the unit needs ListenStream=" : strerror(-r));
		return r;
	}
	return 0;
}

/* "127.0.0.1:7420", "[::1]:7420" */
const char *tcp_text(const char *host, uint16_t port, char *out, size_t size)
{
	snprintf(out, size, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, (unsigned)port);
	return out;
}

struct listener_access listen_access(const struct conf *c)
{
	static const mode_t mode[] = {[UNIX_MODE_OWNER] = 0600, [UNIX_MODE_GROUP] = 0660, [UNIX_MODE_ALL] = 0666};

	return (struct listener_access){.mode = mode[c->listen.unix_mode], .has_group = c->listen.unix_group != NULL,
	                                .group = (gid_t)c->listen.unix_gid};
}

static int listen_configured(struct daemon *d)
{
	const struct conf *c = d->conf;
	char where[300];
	int r;

	if (!c->listen.unix_path)
		snprintf(d->unix_path, sizeof(d->unix_path), "%s/redlockd.sock", d->runtime.dir);
	else
		snprintf(d->unix_path, sizeof(d->unix_path), "%s", c->listen.unix_path);
	if (d->unix_path[0]) {
		r = net_listen_unix(d->net, d->unix_path);
		if (r < 0)
			return listen_failed("unix", d->unix_path, r);
	}
	if (c->listen.tcp_host) {
		r = net_listen_tcp(d->net, c->listen.tcp_host, c->listen.tcp_port, false);
		if (r < 0)
			return listen_failed("tcp", tcp_text(c->listen.tcp_host, c->listen.tcp_port, where, sizeof(where)), r);
	}
	return 0;
}

static int listen_tls(struct daemon *d)
{
	const struct conf *c = d->conf;
	struct ssl_ctx_st *context = credentials_listen(&d->credentials, c);
	char where[300];
	int r;

	if (!context)
		return -EINVAL;
	net_set_tls(d->net, context);
	if (has_passed_tls(d))
		return 0;
	r = net_listen_tcp(d->net, c->listen.tls_host, c->listen.tls_port, true);
	return r < 0 ? listen_failed("tls", tcp_text(c->listen.tls_host, c->listen.tls_port, where, sizeof(where)), r) : 0;
}

/* --- the web listeners --- */

struct place {
	struct web *web; /* NULL: it is switched off */
	char **where;
	const struct conf_address *address;
	const struct carried_web *former;
	const char *key;
	const char *lacks; /* why other hosts may not reach it; NULL: they may */
};

/* The check of the configuration covers only its own address. */
static bool web_is_still_protected(const struct place *p, int fd)
{
	if (!p->lacks || !reach_of_socket(fd))
		return true;
	log_event(LOG_ERROR, "listen", "fd=%d error=\"other hosts reach the former address of %s, and %s: it is closed\"", fd, p->key, p->lacks);
	return false;
}

/* The file of a Unix socket is unlinked at the end if it is still the same. */
static void path_note(const char *where, struct listener *l)
{
	struct stat st;

	if (strncmp(where, "unix:", 5) != 0 || lstat(where + 5, &st))
		return;
	l->path = mem_copy(where + 5, strlen(where + 5));
	l->device = st.st_dev;
	l->inode = st.st_ino;
}

/* The sockets of the previous process. */
static void web_take(struct daemon *d, const struct place *p, struct inherited *before)
{
	for (size_t i = 0; p->former && i < p->former->fds; i++) {
		struct listener l = {.fd = carried_take_fd(d, p->former->fd + i)};

		if (l.fd < 0)
			continue;
		path_note(p->former->where, &l);
		inherited_add(before, &l, false);
	}
}

/* Its new address is not available: the old sockets stay. */
static void web_goes_on(const struct place *p, struct inherited *before)
{
	struct listener l;
	bool tls;

	while (inherited_take(before, &l, &tls)) {
		if (!web_is_still_protected(p, l.fd) || web_listen_at(p->web, &l) < 0) {
			listener_release(&l);
			continue;
		}
		if (!*p->where)
			log_event(LOG_ERROR, "listen", "note=\"%s stays where it was before the restart\"", p->key);
		mem_free(*p->where);
		*p->where = mem_text(p->former->where);
	}
}

static int place_listen(struct daemon *d, const struct place *p)
{
	struct inherited before = {0};
	int r = 0;

	web_take(d, p, &before);
	if (p->web && (r = web_listen(p->web, &before)) == 0)
		*p->where = mem_text(p->address->label);
	if (r < 0) {
		listen_failed(strchr(p->key, '.') + 1, p->address->label, r);
		web_goes_on(p, &before);
	}
	inherited_release(&before);
	return r;
}

static int listen_web(struct daemon *d)
{
	const struct conf *c = d->conf;
	const struct carried *before = d->carried;
	const struct place http = {d->web, &d->web_where, &c->listen.http, before ? &before->web : NULL, "listen.http",
	                           c->http.token_file ? NULL : "there is no http.token_file"};
	const struct place api = {d->api, &d->api_where, &c->listen.api, before ? &before->api : NULL, "listen.api",
	                          c->api.tls || c->insecure ? NULL : "api.tls is no"};
	int r = place_listen(d, &http), also = place_listen(d, &api);

	return r < 0 ? r : also;
}

/* --- all --- */

/* The check of the configuration covers only the addresses in it, not those of the previous process. */
static bool is_still_protected(void *context, int fd, bool tls)
{
	const struct daemon *d = context;

	if (conf_is_protected(d->conf) || (tls && d->conf->tls.client_ca_file) || !reach_of_socket(fd))
		return true;
	log_event(LOG_ERROR, "listen", "fd=%d error=\"everybody who reaches the former address could take and release locks: it is closed\"", fd);
	return false;
}

/* Sessions that were handed over are worth more than a new address that is not available: the sockets of the previous process stay. */
static int listen_as_before(struct daemon *d, int r)
{
	if (!d->carried || r == UNPROTECTED || net_listen_again(d->net, is_still_protected, d) < 0)
		return r;
	log_event(LOG_ERROR, "listen", "note=\"the daemon listens where it did before the restart\"");
	d->address_lacks = true;
	return 0;
}

/*
 * Passed sockets replace the configured ones, but listen.tls only if one of them is called tls. This stage comes late, so clients connect to a daemon that is
 * ready. Passed sockets never replace listen.http.
 */
int listen_start(struct daemon *d)
{
	int r = passed_check(d);

	if (!r && daemon_speaks_tls(d))
		r = listen_tls(d);
	if (!r)
		r = d->systemd.sockets_n > 0 ? listen_passed(d) : listen_configured(d);
	if (r < 0)
		r = listen_as_before(d, r);
	else
		net_listen_no_more(d->net);
	if (r < 0)
		return r;
	r = listen_web(d);
	d->address_lacks |= r < 0;
	return d->carried ? 0 : r;
}
