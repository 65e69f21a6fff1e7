/* SPDX-License-Identifier: BSD-2-Clause */
/* Digests of the configuration. It must leave no copy of a password anywhere. */
#include "daemon/redis/settings.h"
#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "daemon/redis/node_parts.h"
#include "daemon/redis/script.h"
#include "daemon/redis/upstream_parts.h"

char *settings_address(const struct upstream_address *a)
{
	struct buf text;
	char *copy;

	buf_init(&text);
	if (a->master)
		buf_printf(&text, "master %s", a->master);
	else if (a->path)
		buf_printf(&text, "path %s", a->path);
	else
		buf_printf(&text, "host %s %u", a->host ? a->host : "", a->port);
	for (unsigned i = 0; a->master && i < a->sentinels; i++)
		buf_printf(&text, " %s %u", a->sentinel[i].host, a->sentinel[i].port);
	copy = mem_copy(buf_begin(&text), buf_length(&text));
	buf_release(&text);
	return copy;
}

static struct evp_md_ctx_st *begin(const uint64_t salt[2])
{
	struct evp_md_ctx_st *d = tls_digest_begin(salt, 2 * sizeof(*salt));

	if (!d)
		mem_exhausted();
	return d;
}

static void add_text(struct evp_md_ctx_st *d, const char *text)
{
	tls_digest_add(d, text, text ? strlen(text) : 0);
}

static void add_number(struct evp_md_ctx_st *d, uint64_t n)
{
	tls_digest_add(d, &n, sizeof(n));
}

void settings_digest(const struct upstream *u, unsigned node, const uint64_t salt[2], unsigned char ret_digest[TLS_DIGEST_BYTES])
{
	struct evp_md_ctx_st *d = begin(salt);

	add_text(d, u->address[node]);
	add_number(d, u->link.tls && !u->node[node]->path);
	add_text(d, u->link.stream.user);
	add_text(d, u->link.stream.password);
	add_number(d, u->link.stream.database);
	add_number(d, u->conf.links);
	add_text(d, u->link.stream.keys.prefix);
	add_text(d, u->channel);
	tls_digest_end(d, ret_digest);
}

void settings_digest_scripts(const uint64_t salt[2], unsigned char ret_digest[TLS_DIGEST_BYTES])
{
	struct evp_md_ctx_st *d = begin(salt);

	for (unsigned i = 0; i < SCRIPT_N; i++)
		tls_digest_add(d, script_text[i].p, script_text[i].n);
	tls_digest_end(d, ret_digest);
}
