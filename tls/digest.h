/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A salted digest of several texts, SHA-256: two lists of texts are the same if their digests under one salt are, and without the salt nobody can look a
 * digest up. The length of each text counts, so that no two lists read alike. A weak password can be guessed from a digest and its salt.
 */
#ifndef TLS_DIGEST_H
#define TLS_DIGEST_H

#include <stddef.h>

#define TLS_DIGEST_BYTES 32

struct evp_md_ctx_st;

struct evp_md_ctx_st *tls_digest_begin(const void *salt, size_t n); /* NULL: out of memory */
/* p NULL: there is no such text, which is not the same as an empty one. */
void tls_digest_add(struct evp_md_ctx_st *d, const void *p, size_t n);
void tls_digest_end(struct evp_md_ctx_st *d, unsigned char ret_digest[TLS_DIGEST_BYTES]); /* frees d */

#endif
