/* SPDX-License-Identifier: BSD-2-Clause */
/* One connection. OpenSSL keeps errors in a queue of the thread: each call clears it first, or it would find those of another connection. */
#include "tls/tls.h"

#include "tls/context.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* --- begin and end --------------------------------------------------------------------------------------------------- */

/* As OpenSSL's own, but it raises no SIGPIPE. */
static int quiet_write(BIO *bio, const char *bytes, int n)
{
	ssize_t sent = send(BIO_get_fd(bio, NULL), bytes, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);

	BIO_clear_retry_flags(bio);
	if (sent < 0 && BIO_sock_should_retry(-1))
		BIO_set_retry_write(bio);
	return (int)sent;
}

static BIO_METHOD *quiet_new(void)
{
	const BIO_METHOD *usual = BIO_s_socket();
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "socket");

	if (m && BIO_meth_set_write(m, quiet_write) && BIO_meth_set_read(m, BIO_meth_get_read(usual)) && BIO_meth_set_puts(m, BIO_meth_get_puts(usual)) &&
	    BIO_meth_set_ctrl(m, BIO_meth_get_ctrl(usual)) && BIO_meth_set_create(m, BIO_meth_get_create(usual)) &&
	    BIO_meth_set_destroy(m, BIO_meth_get_destroy(usual)))
		return m;
	BIO_meth_free(m);
	return NULL;
}

static BIO_METHOD *quiet;
static CRYPTO_ONCE quiet_once = CRYPTO_ONCE_STATIC_INIT;

static void quiet_make(void)
{
	quiet = quiet_new();
}

static bool connection_set_fd(SSL *t, int fd)
{
	BIO *bio = CRYPTO_THREAD_run_once(&quiet_once, quiet_make) && quiet ? BIO_new(quiet) : NULL;

	if (!bio)
		return false;
	BIO_set_fd(bio, fd, BIO_NOCLOSE);
	SSL_set_bio(t, bio, bio);
	return true;
}

static SSL *connection_new(SSL_CTX *context, int fd)
{
	SSL *t = SSL_new(context);

	if (t && (fd < 0 || connection_set_fd(t, fd)))
		return t;
	SSL_free(t);
	ERR_clear_error();
	return NULL;
}

struct ssl_st *tls_serve(struct ssl_ctx_st *context, int fd)
{
	SSL *t = connection_new(context, fd);

	if (t)
		SSL_set_accept_state(t);
	return t;
}

static bool is_address(const char *name)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/* RFC 6066: the name that a client sends is never an address. */
static bool expect_name(SSL *t, const char *name)
{
	if (is_address(name))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(t), name) == 1;
	SSL_set_hostflags(t, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	/* SSL_set_tlsext_host_name, without its cast. */
	return SSL_set1_host(t, name) == 1 &&
	       SSL_ctrl(t, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, (void *)(uintptr_t)name) == 1;
}

struct ssl_st *tls_dial(struct ssl_ctx_st *context, int fd, const char *name)
{
	SSL *t = connection_new(context, fd);

	if (!t)
		return NULL;
	SSL_set_connect_state(t);
	if (expect_name(t, name))
		return t;
	SSL_free(t);
	ERR_clear_error();
	return NULL;
}

void tls_free(struct ssl_st *t)
{
	SSL_free(t);
}

void tls_end(struct ssl_st *t)
{
	ERR_clear_error();
	(void)SSL_shutdown(t);
	ERR_clear_error();
}

/* --- handshake ------------------------------------------------------------------------------------------------------- */

static void explain(const SSL *t, int kind, int error, char *why, size_t size)
{
	long verified = SSL_get_verify_result(t);
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	if (verified != X509_V_OK)
		snprintf(why, size, "certificate refused: %s", X509_verify_cert_error_string(verified));
	else if (kind == SSL_ERROR_SSL && ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		snprintf(why, size, "the peer closed the connection");
	else if (SSL_is_server(t) && SSL_get_state(t) == TLS_ST_SR_CERT && ERR_GET_REASON(ERR_peek_error()) == SSL_R_EXCESSIVE_MESSAGE_SIZE)
		snprintf(why, size, "more than %d bytes of certificates", TLS_PEER_CERTS);
	else if (reason)
		snprintf(why, size, "%s", reason);
	else
		snprintf(why, size, "%s", error ? strerror(error) : "the peer closed the connection");
}

/* The first bytes of an answer are taken for the head of a record. */
static bool peer_is_plain(void)
{
	int reason = ERR_GET_REASON(ERR_peek_error());

	return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST || reason == SSL_R_PACKET_LENGTH_TOO_LONG;
}

enum tls_shake tls_shake(struct ssl_st *t, char *why, size_t size)
{
	int r, kind, error;
	bool plain;

	ERR_clear_error();
	errno = 0;
	r = SSL_do_handshake(t);
	error = errno;
	if (r == 1)
		return TLS_DONE;
	kind = SSL_get_error(t, r);
	if (kind == SSL_ERROR_WANT_READ)
		return TLS_READ;
	if (kind == SSL_ERROR_WANT_WRITE)
		return TLS_WRITE;
	explain(t, kind, error, why, size);
	plain = peer_is_plain();
	ERR_clear_error();
	return plain ? TLS_NOT_SPOKEN : TLS_FAILED;
}

/* --- bytes ----------------------------------------------------------------------------------------------------------- */

/* The errno that says what a failed call was. */
static int errno_of(const SSL *t, int r, int error, int unready)
{
	switch (SSL_get_error(t, r)) {
	case SSL_ERROR_WANT_READ:
		return EAGAIN;
	case SSL_ERROR_WANT_WRITE:
		return unready;
	case SSL_ERROR_SYSCALL:
		return error ? error : ECONNRESET;
	default:
		return ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING ? ECONNRESET : EPROTO;
	}
}

ssize_t tls_recv(struct ssl_st *t, void *bytes, size_t size)
{
	size_t n;
	int r;

	ERR_clear_error();
	errno = 0;
	r = SSL_read_ex(t, bytes, size, &n);
	if (r == 1)
		return (ssize_t)n;
	if (SSL_get_error(t, r) == SSL_ERROR_ZERO_RETURN)
		return 0;
	errno = errno_of(t, r, errno, EBUSY);
	return -1;
}

/* A call of OpenSSL writes one record. */
ssize_t tls_send(struct ssl_st *t, const void *bytes, size_t size)
{
	const char *at = bytes;
	size_t done = 0, n;
	int r = 1;

	ERR_clear_error();
	errno = 0;
	while (done < size && (r = SSL_write_ex(t, at + done, size - done, &n)) == 1)
		done += n;
	if (done)
		return (ssize_t)done; /* an error shows again */
	errno = errno_of(t, r, errno, EAGAIN);
	return -1;
}

const char *tls_reason(void)
{
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	return reason ? reason : strerror(EPROTO);
}

/* libevent keeps what SSL_get_error says, too, which names no library. */
static const char *reason_of(unsigned long error)
{
	return ERR_GET_LIB(error) && ERR_GET_REASON(error) != SSL_R_UNEXPECTED_EOF_WHILE_READING ? ERR_reason_error_string(error) : NULL;
}

const char *tls_end_reason(struct ssl_st *t, unsigned long error)
{
	const char *reason = reason_of(error);
	char rest[256];

	if (reason)
		return reason;
	while (tls_recv(t, rest, sizeof(rest)) > 0)
		;
	return reason_of(ERR_peek_error());
}

/* --- who it is ------------------------------------------------------------------------------------------------------- */

bool tls_subject(const struct ssl_st *t, char *out, size_t size)
{
	const X509 *x = SSL_get0_peer_certificate(t);
	BIO *bio = x ? BIO_new(BIO_s_mem()) : NULL;
	char *text;
	long n = 0;

	if (bio && X509_NAME_print_ex(bio, X509_get_subject_name(x), 0, XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB) >= 0)
		n = BIO_get_mem_data(bio, &text);
	if (n > 0 && (size_t)n < size) {
		memcpy(out, text, (size_t)n);
		out[n] = '\0';
	}
	BIO_free(bio);
	ERR_clear_error();
	return n > 0 && (size_t)n < size;
}
