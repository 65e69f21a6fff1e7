/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS of all connections of this process: one context, from the files that redlock_use_tls names, or the environment. */
#include "client/lib/conn.h"
#include "client/lib/channel.h"
#include "tls/context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MOST   (1024 * 1024) /* bytes */
#define SERVER_MOST 254

static struct ssl_ctx_st *context;
static char server_name[SERVER_MOST]; /* "": the host of the address */

/* --- files ----------------------------------------------------------------------------------------------------------- */

static ssize_t text_read(int fd, char *text, size_t size)
{
	size_t n = 0;
	ssize_t r = 1;

	while (n < size && r) {
		r = read(fd, text + n, size - n);
		if (r < 0 && errno != EINTR)
			return -errno;
		n += r > 0 ? (size_t)r : 0;
	}
	return (ssize_t)n;
}

static int text_take(int fd, struct tls_pem *ret_pem)
{
	struct stat st;
	char *text;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (st.st_size > FILE_MOST)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	n = text_read(fd, text, (size_t)st.st_size);
	if (n < 0) {
		free(text);
		return (int)n;
	}
	*ret_pem = (struct tls_pem){text, (size_t)n};
	return 0;
}

static int pem_read(const char *path, struct tls_pem *ret_pem)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;

	if (fd < 0)
		return -errno;
	r = text_take(fd, ret_pem);
	close(fd);
	return r;
}

static void pem_free(struct tls_pem *pem)
{
	char *text = (char *)(uintptr_t)pem->text;

	if (text)
		explicit_bzero(text, pem->n);
	free(text);
}

/* --- the context ----------------------------------------------------------------------------------------------------- */

static int __attribute__((format(printf, 4, 5))) fails(char *why, size_t size, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, size, format, args);
	va_end(args);
	return err;
}

static int pems_read(const char *const path[TLS_PARTS], struct tls_pem pem[TLS_PARTS], char *why, size_t size)
{
	for (int i = 0; i < TLS_PARTS; i++) {
		int r = path[i] ? pem_read(path[i], &pem[i]) : 0;

		if (r)
			return fails(why, size, r, "%s: cannot be read: %s", path[i], strerror(-r));
	}
	return 0;
}

static int context_open(const char *const path[TLS_PARTS], struct ssl_ctx_st **ret_context, char *why, size_t size)
{
	struct tls_pem pem[TLS_PARTS] = {{0}};
	struct tls_fault fault;
	int r = pems_read(path, pem, why, size);

	if (!r && tls_context_client(pem, ret_context, &fault))
		r = fails(why, size, -EINVAL, "%s%s%s", path[fault.part] ? path[fault.part] : "", path[fault.part] ? ": " : "", fault.why);
	for (int i = 0; i < TLS_PARTS; i++)
		pem_free(&pem[i]);
	return r;
}

static struct ssl_st *context_dial(int fd, const char *host)
{
	return tls_dial(context, fd, *server_name ? server_name : host);
}

static const struct tls_calls functions = {
	.dial = context_dial, .shake = tls_shake, .recv = tls_recv, .send = tls_send, .reason = tls_reason, .end = tls_end, .free = tls_free};

static const char *chosen(const char *given, const char *variable)
{
	const char *value = given ? given : secure_getenv(variable);

	return value && *value ? value : NULL;
}

int redlock_use_tls(const struct redlock_tls *tls, char *why, size_t size)
{
	const char *path[TLS_PARTS], *name, *flaw;
	struct ssl_ctx_st *fresh;
	struct redlock_tls t;
	int r;

	flaw = redlock_sized_copy(&t, sizeof(t), tls);
	if (flaw)
		return fails(why, size, -EINVAL, "%s", flaw);
	path[TLS_CERT] = chosen(t.cert_file, "REDLOCK_TLS_CERT");
	path[TLS_KEY] = chosen(t.key_file, "REDLOCK_TLS_KEY");
	path[TLS_CA] = chosen(t.ca_file, "REDLOCK_TLS_CA");
	name = chosen(t.server_name, "REDLOCK_TLS_NAME");
	if (!path[TLS_CERT] != !path[TLS_KEY])
		return fails(why, size, -EINVAL, "a certificate needs its key, and a key its certificate");
	if (name && strlen(name) >= sizeof(server_name))
		return fails(why, size, -EINVAL, "the name of the server is too long");
	r = context_open(path, &fresh, why, size);
	if (r)
		return r;
	tls_context_free(context);
	context = fresh;
	snprintf(server_name, sizeof(server_name), "%s", name ? name : "");
	redlock_set_secure(&functions);
	return 0;
}
