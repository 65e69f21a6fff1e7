/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes contexts from PEM texts. It reads no file, and never asks anybody for a passphrase. */
#include "tls/context.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>

#define KEY_MARK "PRIVATE KEY-----"
#define CIPHERS  "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL"

static const char no_memory[] = "out of memory";

/* why NULL: the text of OpenSSL's oldest error. */
static int fault(struct tls_fault *f, enum tls_part part, const char *why)
{
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	f->part = part;
	snprintf(f->why, sizeof(f->why), "%s", why ? why : reason ? reason : "refused by OpenSSL");
	ERR_clear_error();
	return -1;
}

static BIO *pem_open(const struct tls_pem *pem)
{
	return BIO_new_mem_buf(pem->text, pem->n < INT_MAX ? (int)pem->n : INT_MAX);
}

/* The end of a PEM text is reported as an error. */
static int pem_is_over(void)
{
	unsigned long error = ERR_peek_last_error();

	return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

static int no_passphrase(char *out, int size, int writing, void *context)
{
	(void)out, (void)size, (void)writing, (void)context;
	return -1;
}

/* --- certificate and key --------------------------------------------------------------------------------------------- */

/* The certificates after the first one. */
static int chain_use(SSL_CTX *c, BIO *bio, struct tls_fault *f)
{
	X509 *x;

	while ((x = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL))) {
		if (!SSL_CTX_add0_chain_cert(c, x)) {
			X509_free(x);
			return fault(f, TLS_CERT, NULL);
		}
	}
	if (!pem_is_over())
		return fault(f, TLS_CERT, "a certificate of the chain cannot be read: it is not PEM, or cut off");
	ERR_clear_error();
	return 0;
}

static int cert_use(SSL_CTX *c, BIO *bio, struct tls_fault *f)
{
	X509 *x = PEM_read_bio_X509_AUX(bio, NULL, no_passphrase, NULL);
	int ok;

	if (!x)
		return fault(f, TLS_CERT, "it holds no certificate in PEM, which begins with '-----BEGIN CERTIFICATE-----'");
	ok = SSL_CTX_use_certificate(c, x);
	X509_free(x);
	return ok ? chain_use(c, bio, f) : fault(f, TLS_CERT, NULL);
}

static int key_use(SSL_CTX *c, BIO *bio, const struct tls_pem *pem, struct tls_fault *f)
{
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
	int ok;

	if (!key && !memmem(pem->text, pem->n, KEY_MARK, strlen(KEY_MARK)))
		return fault(f, TLS_KEY, "it holds no private key in PEM, which begins with '-----BEGIN PRIVATE KEY-----' or the like");
	if (!key)
		return fault(f, TLS_KEY, "the private key cannot be read: it is damaged, or it has a passphrase, and must have none");
	ok = SSL_CTX_use_PrivateKey(c, key);
	EVP_PKEY_free(key);
	return ok && SSL_CTX_check_private_key(c) ? 0 : fault(f, TLS_KEY, "the key does not belong to the certificate");
}

static int identity_use(SSL_CTX *c, const struct tls_pem part[TLS_PARTS], struct tls_fault *f)
{
	BIO *bio = pem_open(&part[TLS_CERT]);
	int r = bio ? cert_use(c, bio, f) : fault(f, TLS_CERT, no_memory);

	BIO_free(bio);
	if (r)
		return r;
	bio = pem_open(&part[TLS_KEY]);
	r = bio ? key_use(c, bio, &part[TLS_KEY], f) : fault(f, TLS_KEY, no_memory);
	BIO_free(bio);
	return r;
}

/* --- authorities ----------------------------------------------------------------------------------------------------- */

/* There may be several, for the time in which one replaces another. */
static int authorities_add(SSL_CTX *c, BIO *bio, struct tls_fault *f)
{
	unsigned n = 0;
	X509 *x;

	for (; (x = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)); n++) {
		int ok = X509_STORE_add_cert(SSL_CTX_get_cert_store(c), x) && SSL_CTX_add_client_CA(c, x);

		X509_free(x);
		if (!ok)
			return fault(f, TLS_CA, NULL);
	}
	if (!pem_is_over())
		return fault(f, TLS_CA, "a certificate in it cannot be read: it is not PEM, or cut off");
	ERR_clear_error();
	return n ? 0 : fault(f, TLS_CA, "it holds no certificate in PEM, which begins with '-----BEGIN CERTIFICATE-----'");
}

/* Where there is a revocation list, each authority that has signed the certificate of a peer needs one: without it, nobody could know. */
static int revocations_add(SSL_CTX *c, BIO *bio, struct tls_fault *f)
{
	unsigned n = 0;
	X509_CRL *x;

	for (; (x = PEM_read_bio_X509_CRL(bio, NULL, no_passphrase, NULL)); n++) {
		int ok = X509_STORE_add_crl(SSL_CTX_get_cert_store(c), x);

		X509_CRL_free(x);
		if (!ok)
			return fault(f, TLS_CA, NULL);
	}
	if (!pem_is_over())
		return fault(f, TLS_CA, "a revocation list in it cannot be read: it is damaged");
	ERR_clear_error();
	if (n > 0)
		X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(c), X509_V_FLAG_CRL_CHECK);
	return 0;
}

static int authorities_use(SSL_CTX *c, const struct tls_pem *pem, struct tls_fault *f)
{
	BIO *bio = pem_open(pem);
	int r = bio ? authorities_add(c, bio, f) : fault(f, TLS_CA, no_memory);

	if (!r && BIO_reset(bio) != 1)
		r = fault(f, TLS_CA, NULL);
	if (!r)
		r = revocations_add(c, bio, f);
	BIO_free(bio);
	return r;
}

/* --- contexts -------------------------------------------------------------------------------------------------------- */

/*
 * Resumption would save a signature of a connection that lasts for hours, and would let a client in whose authority is no longer trusted. Without
 * SSL_MODE_AUTO_RETRY a read handles one record, so a flood of messages that carry no data does not keep its reader.
 */
static SSL_CTX *context_new(const SSL_METHOD *method)
{
	SSL_CTX *c = SSL_CTX_new(method);

	if (!c)
		return NULL;
	SSL_CTX_set_options(c, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_num_tickets(c, 0);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_clear_mode(c, SSL_MODE_AUTO_RETRY);
	if (SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION) && SSL_CTX_set_cipher_list(c, CIPHERS))
		return c;
	SSL_CTX_free(c);
	return NULL;
}

int tls_context_server(const struct tls_pem part[TLS_PARTS], struct ssl_ctx_st **ret_context, struct tls_fault *ret_fault)
{
	SSL_CTX *c;
	int r;

	ERR_clear_error();
	c = context_new(TLS_server_method());
	if (!c)
		return fault(ret_fault, TLS_CERT, NULL);
	r = identity_use(c, part, ret_fault);
	if (!r && part[TLS_CA].text)
		r = authorities_use(c, &part[TLS_CA], ret_fault);
	if (r) {
		SSL_CTX_free(c);
		return r;
	}
	if (part[TLS_CA].text)
		SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_max_cert_list(c, TLS_PEER_CERTS);
	*ret_context = c;
	return 0;
}

int tls_context_client(const struct tls_pem part[TLS_PARTS], struct ssl_ctx_st **ret_context, struct tls_fault *ret_fault)
{
	SSL_CTX *c;
	int r = 0;

	ERR_clear_error();
	c = context_new(TLS_client_method());
	if (!c)
		return fault(ret_fault, TLS_CA, NULL);
	if (part[TLS_CA].text)
		r = authorities_use(c, &part[TLS_CA], ret_fault);
	else if (!SSL_CTX_set_default_verify_paths(c))
		r = fault(ret_fault, TLS_CA, "the authorities of the system cannot be used");
	if (!r && part[TLS_CERT].text)
		r = identity_use(c, part, ret_fault);
	if (r) {
		SSL_CTX_free(c);
		return r;
	}
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
	*ret_context = c;
	return 0;
}

void tls_context_free(struct ssl_ctx_st *context)
{
	SSL_CTX_free(context);
}

static int64_t cert_ends(const X509 *x)
{
	struct tm tm = {0};

	return ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm) ? (int64_t)timegm(&tm) : INT64_MAX;
}

static int64_t chain_ends(const STACK_OF(X509) *chain)
{
	int64_t first = INT64_MAX;

	for (int i = 0; chain && i < sk_X509_num(chain); i++) {
		int64_t ends = cert_ends(sk_X509_value(chain, i));

		first = ends < first ? ends : first;
	}
	return first;
}

int64_t tls_context_ends(struct ssl_ctx_st *context)
{
	const X509 *own = SSL_CTX_get0_certificate(context);
	int64_t ends = own ? cert_ends(own) : INT64_MAX, above;
	STACK_OF(X509) *chain = NULL;

	SSL_CTX_get0_chain_certs(context, &chain);
	above = chain_ends(chain);
	return ends < above ? ends : above;
}

int64_t tls_peer_ends(const struct ssl_st *t)
{
	return chain_ends(SSL_get0_verified_chain(t));
}
