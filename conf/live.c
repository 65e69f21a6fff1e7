/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reload: moves the values of LIVE keys and their origins to the configuration in effect; all other values stay.
 */
#include "conf/conf.h"

#include "conf/source.h"
#include "conf/value.h"

#include <string.h>

static size_t setting_size(const struct setting *s)
{
	switch (s->type) {
	case TYPE_BOOL:
		return sizeof(bool);
	case TYPE_CHOICE:
		return sizeof(int);
	case TYPE_COUNT:
	case TYPE_SIZE:
	case TYPE_DURATION:
		return sizeof(uint64_t);
	case TYPE_TEXT:
	case TYPE_FILENAME:
	case TYPE_FOLDER:
	case TYPE_SOCKET:
	case TYPE_HOSTS:
	case TYPE_RULES:
	case TYPE_GROUPS:
		return sizeof(char *);
	case TYPE_LISTENER:
	case TYPE_WEB:
	case TYPE_NODES:
		break; /* several fields: never LIVE */
	}
	return 0;
}

bool conf_password_is_live(const struct conf *now, const struct conf *fresh)
{
	const char *a = now->redis.user, *b = fresh->redis.user;

	return a && b ? !strcmp(a, b) : a == b;
}

/* What protects an address must not vanish: what takes its place in the file, like rules or an address of loopback, may need a restart itself. */
static bool protection_vanishes(const struct conf *now, const struct conf *fresh, const struct setting *s)
{
	return (s->key == KEY_AUTH_USERS_FILE && now->auth.users_file && !fresh->auth.users_file) ||
	       (s->key == KEY_TLS_CLIENT_CA_FILE && now->tls.client_ca_file && !fresh->tls.client_ca_file) ||
	       (s->key == KEY_HTTP_TOKEN_FILE && now->http.token_file && !fresh->http.token_file) ||
	       (s->key == KEY_API_TOKEN_FILE && now->api.token_file && !fresh->api.token_file);
}

/*
 * A store that may have forgotten locks is quarantined for a time that follows from the max_lease of the start, so no lease may be longer than
 * that max_lease, even if the file has a larger max_lease now. min_lease may not exceed the lease. A password needs its user. A daemon without rules
 * does not note the groups of its peers.
 */
bool value_is_live(const struct conf *now, const struct conf *fresh, const struct setting *s)
{
	bool bound = s->key == KEY_LEASE || s->key == KEY_MIN_LEASE;

	if (s->key == KEY_REDIS_PASSWORD_FILE && !conf_password_is_live(now, fresh))
		return false;
	if (s->key == KEY_RULES && !now->rules != !fresh->rules)
		return false;
	if (protection_vanishes(now, fresh, s))
		return false;
	return s->live && !(bound && fresh->lease > now->max_lease);
}

static void setting_swap(struct conf *c, struct conf *fresh, const struct setting *s)
{
	char *mine = (char *)c + s->offset, *theirs = (char *)fresh + s->offset, kept[sizeof(uint64_t)];
	struct conf_origin origin = c->origin[s->key];
	size_t n = setting_size(s);

	memcpy(kept, mine, n);
	memcpy(mine, theirs, n);
	memcpy(theirs, kept, n);
	c->origin[s->key] = fresh->origin[s->key];
	fresh->origin[s->key] = origin;
}

static bool source_is_used(const struct conf *c, const struct conf_source *source)
{
	for (size_t i = 0; i < CONF_KEYS; i++)
		if (c->origin[i].source == source)
			return true;
	return false;
}

/* Frees the sources from which no value comes any more, so that reloads use no more and more memory. */
static void sources_prune(struct conf *c)
{
	for (struct conf_source **at = &c->sources; *at;) {
		struct conf_source *source = *at;

		if (source_is_used(c, source)) {
			at = &source->next;
			continue;
		}
		*at = source->next;
		source->next = NULL;
		source_free(source);
	}
}

/* Origins in c refer to sources of both configurations from now on, so c takes ownership of all sources. */
static void sources_take(struct conf *c, struct conf *fresh)
{
	struct conf_source **end = &c->sources;

	while (*end)
		end = &(*end)->next;
	*end = fresh->sources;
	fresh->sources = NULL;
	for (size_t i = 0; i < CONF_KEYS; i++)
		fresh->origin[i].source = NULL;
}

void conf_take_live(struct conf *c, struct conf *fresh)
{
	bool live[CONF_KEYS];

	for (size_t i = 0; i < CONF_KEYS; i++)
		live[i] = value_is_live(c, fresh, &setting_table[i]);
	for (size_t i = 0; i < CONF_KEYS; i++)
		if (live[i])
			setting_swap(c, fresh, &setting_table[i]);
	sources_take(c, fresh);
	sources_prune(c);
}
