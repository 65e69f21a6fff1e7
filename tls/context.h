/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What TLS connections of one kind share: certificate, key, authorities and rules. TLS 1.2 or later, ciphers with forward secrecy and authentication
 * only; no compression, no renegotiation, no resumption. A context is freed with its last connection, so a new one may replace it at any time.
 */
#ifndef TLS_CONTEXT_H
#define TLS_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#define TLS_PEER_CERTS 8192 /* bytes of the certificates that a client may show: all of them are decoded before the first is known to be wrong */

struct ssl_st;
struct ssl_ctx_st;

/* The content of a PEM file; text NULL: none. */
struct tls_pem {
	const char *text;
	size_t n;
};

enum tls_part { TLS_CERT, TLS_KEY, TLS_CA, TLS_PARTS };

struct tls_fault {
	enum tls_part part; /* to blame */
	char why[160];
};

/*
 * part[TLS_CERT] holds the certificate and its chain. The authorities in part[TLS_CA] sign the certificate that each client must show; without them none
 * is asked for. Revocation lists may stand there as well. 0, or -1 with a fault.
 */
int tls_context_server(const struct tls_pem part[TLS_PARTS], struct ssl_ctx_st **ret_context, struct tls_fault *ret_fault)
	__attribute__((warn_unused_result));
/* Without part[TLS_CA]: the authorities of the system. The certificate is what this side shows, if there is one. */
int tls_context_client(const struct tls_pem part[TLS_PARTS], struct ssl_ctx_st **ret_context, struct tls_fault *ret_fault)
	__attribute__((warn_unused_result));
void tls_context_free(struct ssl_ctx_st *context); /* NULL is allowed */

/* When the certificate that this side shows ends, or the first of its chain: seconds of CLOCK_REALTIME; INT64_MAX: there is none. */
int64_t tls_context_ends(struct ssl_ctx_st *context);
/* The same of the certificate that the peer has shown, and of those above it. */
int64_t tls_peer_ends(const struct ssl_st *t);

#endif
