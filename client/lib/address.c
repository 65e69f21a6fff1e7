/* SPDX-License-Identifier: BSD-2-Clause */
/* See address.h. */
#include "client/lib/address.h"
#include "client/lib/boottime.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SYSTEM_SOCKET "/run/redlockd/redlockd.sock"
#define TCP_DEFAULT   "127.0.0.1:7420"
#define PORT_DEFAULT  "7420"
#define TLS_SCHEME    "tls://"
#define TLS_PORT      "7422"
#define FULL_PAUSE_MS 10

static int address_put(char *out, size_t size, const char *directory, const char *rest)
{
	int n = snprintf(out, size, "%s%s", directory, rest);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int redlock_address(char *out, size_t size)
{
	const char *given = secure_getenv("REDLOCK_ADDR"), *runtime = secure_getenv("XDG_RUNTIME_DIR");
	char user[sizeof(((struct sockaddr_un *)0)->sun_path)];

	if (given && *given)
		return address_put(out, size, given, "");
	if (!access(SYSTEM_SOCKET, F_OK))
		return address_put(out, size, SYSTEM_SOCKET, "");
	if (runtime && *runtime && !address_put(user, sizeof(user), runtime, "/redlockd/redlockd.sock") && !access(user, F_OK))
		return address_put(out, size, user, "");
	return address_put(out, size, TCP_DEFAULT, "");
}

/* With keepalive even a caller that waits for ever notices when the host of the daemon is gone. */
static void tcp_tune(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},    {SOL_SOCKET, SO_KEEPALIVE, 1}, {IPPROTO_TCP, TCP_KEEPIDLE, 30},
		{IPPROTO_TCP, TCP_KEEPINTVL, 10}, {IPPROTO_TCP, TCP_KEEPCNT, 3},
	};
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		(void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(options[i].value));
}

int address_again(const struct address *address, bool *ret_pending)
{
	int fd = socket(address->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	if (fd < 0)
		return -errno;
	if (address->to.ss_family != AF_UNIX)
		tcp_tune(fd);
	/* Signals do not interrupt a non-blocking connect, so there is no EINTR. */
	r = connect(fd, (const struct sockaddr *)&address->to, address->n) ? -errno : 0;
	if (r && r != -EINPROGRESS) {
		close(fd);
		return r;
	}
	*ret_pending = r != 0;
	return fd;
}

int address_connected(int fd)
{
	struct pollfd writable = {.fd = fd, .events = POLLOUT};
	int error = 0;
	socklen_t n = sizeof(error);

	if (poll(&writable, 1, 0) <= 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n))
		error = errno;
	return error ? -error : 1;
}

/* Waits for the connection. A Unix socket whose queue is full returns -EAGAIN: try again after a pause. */
static int address_open(const struct sockaddr *to, socklen_t n, int64_t timeout_ms, struct address *ret_address)
{
	int64_t until = boottime_after(timeout_ms);
	bool pending = true;
	int fd, r = 0;

	memcpy(&ret_address->to, to, n);
	ret_address->n = n;
	while ((fd = address_again(ret_address, &pending)) == -EAGAIN && boottime_poll_ms(until) > 0)
		(void)poll(NULL, 0, FULL_PAUSE_MS);
	while (fd >= 0 && pending && !(r = address_connected(fd)) && boottime_poll_ms(until) > 0)
		(void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, boottime_poll_ms(until));
	if (fd < 0 || !pending || r > 0)
		return fd == -EAGAIN ? -ETIMEDOUT : fd;
	close(fd);
	return r ? r : -ETIMEDOUT;
}

static int unix_connect(const char *path, int64_t timeout_ms, struct address *ret_address)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = strlen(path);
	struct stat st;
	int fd;

	if (n >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	memcpy(to.sun_path, path, n + 1);
	fd = address_open((const struct sockaddr *)&to, sizeof(to), timeout_ms, ret_address);
	return fd == -ECONNREFUSED && !stat(path, &st) && !S_ISSOCK(st.st_mode) ? -ENOTSOCK : fd;
}

static int resolve_error(int code)
{
	if (code == EAI_SYSTEM)
		return -errno;
	return code == EAI_MEMORY ? -ENOMEM : -EHOSTUNREACH;
}

static int host_connect(const char *host, const char *port, int64_t timeout_ms, struct address *ret_address)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found, *at;
	int r = getaddrinfo(host, port, &hints, &found), fd = -EHOSTUNREACH;

	if (r)
		return resolve_error(r);
	for (at = found; at && fd < 0; at = at->ai_next)
		fd = address_open(at->ai_addr, at->ai_addrlen, timeout_ms, ret_address);
	freeaddrinfo(found);
	return fd;
}

static bool port_valid(const char *port)
{
	size_t n = strspn(port, "0123456789");
	unsigned long number = strtoul(port, NULL, 10);

	return n > 0 && n <= 5 && !port[n] && number > 0 && number < 65536;
}

struct parsed {
	bool local, tls;
	char text[ADDRESS_HOST];
	const char *host, *port; /* in text. local: host is the path */
};

/* Splits host:port, host, [v6]:port, [v6] or :port in text. Returns what is wrong with it; NULL: nothing. */
static const char *tcp_split(struct parsed *p, const char *port_default)
{
	bool bracket = *p->text == '[';
	char *end = bracket ? strchr(p->text, ']') : p->text + strcspn(p->text, ":");

	if (!end)
		return "a bracket is open: [::1]:7420";
	if (bracket)
		*end++ = '\0';
	if (*end && *end != ':')
		return "behind the bracket is a port, or nothing: [::1]:7420";
	p->port = end + (*end != '\0');
	*end = '\0';
	if (!bracket && strchr(p->port, ':'))
		return "an IPv6 address must be in brackets: [::1]:7420";
	if (!*p->port)
		p->port = port_default;
	if (!port_valid(p->port))
		return "a port is a number from 1 to 65535";
	p->host += bracket;
	if (!*p->host)
		p->host = "127.0.0.1";
	return NULL;
}

/* Returns what is wrong with the address, for people; NULL: nothing. Cuts an address that is too long. */
static const char *address_parse(const char *addr, struct parsed *p)
{
	bool is_unix = !strncmp(addr, "unix:", strlen("unix:"));

	p->tls = !strncmp(addr, TLS_SCHEME, strlen(TLS_SCHEME));
	p->local = !p->tls && (is_unix || strchr(addr, '/'));
	addr += is_unix ? strlen("unix:") : p->tls ? strlen(TLS_SCHEME) : 0;
	snprintf(p->text, sizeof(p->text), "%s", addr);
	p->host = p->text;
	if (p->tls && (!*addr || strchr(addr, '/')))
		return "an address inside TLS is tls://host:port";
	if (!*addr)
		return "an address is host:port, or the path of a Unix socket, with a '/'";
	return p->local ? NULL : tcp_split(p, p->tls ? TLS_PORT : PORT_DEFAULT);
}

bool address_is_tls(const char *addr, char ret_host[ADDRESS_HOST])
{
	struct parsed p;

	if (address_parse(addr, &p) || !p.tls)
		return false;
	snprintf(ret_host, ADDRESS_HOST, "%s", p.host);
	return true;
}

const char *address_flaw(const char *addr)
{
	struct parsed p;

	return address_parse(addr, &p);
}

int address_connect(const char *addr, int64_t timeout_ms, struct address *ret_address)
{
	struct parsed p;

	if (strlen(addr) >= sizeof(p.text))
		return -ENAMETOOLONG;
	if (address_parse(addr, &p))
		return -EINVAL;
	return p.local ? unix_connect(p.host, timeout_ms, ret_address) : host_connect(p.host, p.port, timeout_ms, ret_address);
}
