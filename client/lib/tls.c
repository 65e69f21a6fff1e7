/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS for all connections of this process. They share one context, from the files that redlock_use_tls or the environment names. */
#include "client/lib/conn.h"
#include "client/lib/channel.h"
#include "tls/context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MOST   (1024 * 1024) /* bytes */
#define SERVER_MOST 254

static struct ssl_ctx_st *context;
static char server_name[SERVER_MOST]; /* "": the host of the address */

/* --- files ----------------------------------------------------------------------------------------------------------- */

/* Uses no buffer, because the file may be a key. */
static int text_read(const char *path, char *text, size_t n)
{
	FILE *file = fopen(path, "re");
	int r = 0;

	if (!file)
		return -errno;
	setvbuf(file, NULL, _IONBF, 0);
	if (fread(text, 1, n, file) != n)
		r = -EIO;
	fclose(file);
	return r;
}

static int pem_read(const char *path, struct tls_pem *ret_pem)
{
	struct stat st;
	char *text;
	int r;

	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (st.st_size > FILE_MOST)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	r = text_read(path, text, (size_t)st.st_size);
	if (r)
		free(text);
	else
		*ret_pem = (struct tls_pem){text, (size_t)st.st_size};
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

static int pems_read(const char *const path[TLS_PARTS], struct tls_pem pem[TLS_PARTS], char *why, size_t size)
{
	for (int i = 0; i < TLS_PARTS; i++) {
		int r = path[i] ? pem_read(path[i], &pem[i]) : 0;

		if (r)
			return redlock_error_set(why, size, r, "%s: cannot be read: %s", path[i], strerror(-r));
	}
	return 0;
}

static int context_open(const char *const path[TLS_PARTS], struct ssl_ctx_st **ret_context, char *why, size_t size)
{
	struct tls_pem pem[TLS_PARTS] = {{0}};
	struct tls_fault fault;
	int r = pems_read(path, pem, why, size);

	if (!r && tls_context_client(pem, ret_context, &fault))
		r = redlock_error_set(why, size, -EINVAL, "%s%s%s", path[fault.part] ? path[fault.part] : "", path[fault.part] ? ": " : "", fault.why);
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
		return redlock_error_set(why, size, -EINVAL, "%s", flaw);
	path[TLS_CERT] = chosen(t.cert_file, "REDLOCK_TLS_CERT");
	path[TLS_KEY] = chosen(t.key_file, "REDLOCK_TLS_KEY");
	path[TLS_CA] = chosen(t.ca_file, "REDLOCK_TLS_CA");
	name = chosen(t.server_name, "REDLOCK_TLS_NAME");
	if (!path[TLS_CERT] != !path[TLS_KEY])
		return redlock_error_set(why, size, -EINVAL, "a certificate needs its key, and a key its certificate");
	if (name && strlen(name) >= sizeof(server_name))
		return redlock_error_set(why, size, -EINVAL, "the name of the server is too long");
	r = context_open(path, &fresh, why, size);
	if (r)
		return r;
	tls_context_free(context);
	context = fresh;
	snprintf(server_name, sizeof(server_name), "%s", name ? name : "");
	redlock_secure = &functions;
	return 0;
}
