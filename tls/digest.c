/* SPDX-License-Identifier: BSD-2-Clause */
/* Each text goes in behind its length. OpenSSL wipes what it keeps of them. */
#include "tls/digest.h"

#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>

/* The calls fail only if OpenSSL has no SHA-256, which the handshakes need as well. */
static void succeed(int done)
{
	if (!done)
		abort();
}

struct evp_md_ctx_st *tls_digest_begin(const void *salt, size_t n)
{
	struct evp_md_ctx_st *d = EVP_MD_CTX_new();

	if (!d)
		return NULL;
	succeed(EVP_DigestInit_ex(d, EVP_sha256(), NULL));
	tls_digest_add(d, salt, n);
	return d;
}

void tls_digest_add(struct evp_md_ctx_st *d, const void *p, size_t n)
{
	const uint64_t length = p ? n : UINT64_MAX;

	succeed(EVP_DigestUpdate(d, &length, sizeof(length)));
	if (p)
		succeed(EVP_DigestUpdate(d, p, n));
}

void tls_digest_end(struct evp_md_ctx_st *d, unsigned char ret_digest[TLS_DIGEST_BYTES])
{
	succeed(EVP_DigestFinal_ex(d, ret_digest, NULL));
	EVP_MD_CTX_free(d);
}
