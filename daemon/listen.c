/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the daemon listens: at the sockets that were passed to it, or at the configured addresses. */
#include "daemon/internal.h"

#include "daemon/base/mem.h"
#include "daemon/net/carry.h"
#include "daemon/net/listener.h"
#include "daemon/passed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What is wrong with the address, where the words of the system would not say it. */
static const char *listen_trouble(int r)
{
	switch (r) {
	case -ENOTSOCK:
		return "a file that is no socket stands at this path: remove it, or name another path";
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

/* The configuration was checked for its own addresses only. */
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
		r = net_listen_tcp(d->net, c->listen.tcp_host, c->listen.tcp_port);
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
	r = net_listen_tls(d->net, c->listen.tls_host, c->listen.tls_port);
	return r < 0 ? listen_failed("tls", tcp_text(c->listen.tls_host, c->listen.tls_port, where, sizeof(where)), r) : 0;
}

/* --- the web listener --- */

/* "unix:/run/redlockd/http" */
static const char *web_path(const char *where)
{
	return strncmp(where, "unix:", 5) == 0 ? where + 5 : NULL;
}

/* The configuration was checked for its own address only. */
static bool web_stays_protected(const struct daemon *d, int fd)
{
	if (d->conf->http.token_file || !reach_of_socket(fd))
		return true;
	log_event(LOG_ERROR, "listen", "fd=%d error=\"other hosts reach the former address of listen.http, and there is no http.token_file: it is closed\"",
	          fd);
	return false;
}

/* Takes the sockets of the process before. 0: there are none. */
static size_t web_take(struct daemon *d, int fd[LISTENER_ADDRESSES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; d->carried && i < d->carried->web_fds; i++) {
		int one = carried_take_fd(d, d->carried->web_fd + i);

		if (one >= 0 && n < LISTENER_ADDRESSES_MAX && web_stays_protected(d, one))
			fd[n++] = one;
		else if (one >= 0)
			close(one);
	}
	return n;
}

static int web_goes_on(struct daemon *d)
{
	int fd[LISTENER_ADDRESSES_MAX];
	size_t n = web_take(d, fd);

	if (n == 0)
		return -EADDRNOTAVAIL;
	d->web_where = mem_copy(d->carried->web, strlen(d->carried->web));
	return web_unpack(d->web, fd, n, web_path(d->web_where));
}

/* At the sockets of the process before, if they are for this address, or if it cannot be had. */
static int listen_web(struct daemon *d)
{
	const char *where = d->conf->listen.http.label;
	int r;

	if (d->carried && strcmp(d->carried->web, where) == 0 && web_goes_on(d) == 0)
		return 0;
	r = web_listen(d->web);
	if (r == 0) {
		d->web_where = mem_copy(where, strlen(where));
		return 0;
	}
	listen_failed("http", where, r);
	if (web_goes_on(d) == 0)
		log_event(LOG_ERROR, "listen", "note=\"the web listener listens where it did before the restart\"");
	return r;
}

/* The sockets of the process before that nobody took are closed, and their file is of no use. */
static void web_leave(struct daemon *d)
{
	const char *path = d->carried ? web_path(d->carried->web) : NULL;

	for (size_t i = 0; d->carried && i < d->carried->web_fds; i++) {
		int fd = carried_take_fd(d, d->carried->web_fd + i);

		if (fd >= 0)
			close(fd);
	}
	if (path && (!d->web_where || strcmp(d->web_where, d->carried->web) != 0))
		listener_sweep(path);
}

/* --- all --- */

/* The configuration was checked for the addresses that it names, and not for those of the process before. */
static bool stays_protected(void *context, int fd, bool tls)
{
	const struct daemon *d = context;

	if (conf_is_protected(d->conf) || (tls && d->conf->tls.client_ca_file) || !reach_of_socket(fd))
		return true;
	log_event(LOG_ERROR, "listen", "fd=%d error=\"everybody who reaches the former address could take and release locks: it is closed\"", fd);
	return false;
}

/* Sessions that were carried here are worth more than a new address that cannot be had: the sockets of the process before go on. */
static int listen_as_before(struct daemon *d, int r)
{
	if (!d->carried || r == UNPROTECTED || net_listen_again(d->net, stays_protected, d) < 0)
		return r;
	log_event(LOG_ERROR, "listen", "note=\"the daemon listens where it did before the restart\"");
	return 0;
}

/*
 * Passed sockets replace the configured ones, but listen.tls only if one of them is called tls. It is the last stage, so that a client connects to a daemon
 * that is ready. Passed sockets are none of listen.http.
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
	r = d->web ? listen_web(d) : 0;
	web_leave(d);
	return d->carried ? 0 : r;
}
