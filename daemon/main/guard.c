/* SPDX-License-Identifier: BSD-2-Clause */
/* What guards the daemon: the users and their secrets, the rules as the service sees them, and the audit log. */
#include "daemon/main/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/*
 * What is left of a secret that was right: two SipHashes of it, under keys that only this process has. It saves the slow hash when a thousand clients of one
 * user connect again after a restart. A guess must still pass the slow hash, unless it hits all 128 bits.
 */
struct proofs {
	uint64_t key[2][2];
	size_t tried;        /* which user is being verified */
	uint64_t trying[2];
	struct {
		bool known;
		uint64_t hash[2];
	} user[];            /* as many as users */
};

static bool has_secrets(const struct conf *c)
{
	return c->auth.users_file || c->redis.password_file || c->http.token_file || c->http.metrics_token_file || c->tls.key_file || c->redis.tls.key_file;
}

/* No secret reaches a core file. A pipe of core_pattern ignores the limit, so a daemon with secrets cannot be dumped at all. */
void guard_secrets(const struct conf *c)
{
	const struct rlimit none = {0, 0};

	if (setrlimit(RLIMIT_CORE, &none) || (has_secrets(c) && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)))
		log_event(LOG_WARN, "start", "core=limit error=\"%s\" note=\"a core file may hold secrets\"", strerror(errno));
}

/* The texts stay those of the configuration. */
static struct rules *rules_of(const struct conf_rules *from)
{
	struct rules *to;

	_Static_assert((int)RIGHT_LOCK == CONF_LOCK && (int)RIGHT_LOOK == CONF_LOOK && (int)RIGHT_ADMIN == CONF_ADMIN, "the same bits");
	if (!from)
		return NULL;
	to = mem_alloc(sizeof(*to) + from->count * sizeof(to->rule[0]));
	to->count = from->count;
	for (size_t i = 0; i < from->count; i++) {
		const struct conf_rule *r = &from->rule[i];

		to->rule[i] = (struct rule){r->line,  r->uid ? r->uid_n : -1, r->group ? r->group_n : -1, r->user, r->cert,
		                            r->names, r->allow};
	}
	return to;
}

static struct conf_users *users_read(struct conf *c)
{
	struct conf_report report = {0}; /* the file was checked before, and its mistakes were told */

	return conf_users(c, &report);
}

static int name_order(const void *a, const void *b)
{
	return span_compare(*(const struct span *)a, *(const struct span *)b);
}

/* The texts stay those of the users. */
static struct user_names *names_of(const struct conf_users *users)
{
	struct user_names *names;

	if (!users)
		return NULL;
	names = mem_alloc(sizeof(*names) + users->count * sizeof(names->name[0]));
	names->count = users->count;
	for (size_t i = 0; i < users->count; i++)
		names->name[i] = span_of(users->user[i].name);
	qsort(names->name, names->count, sizeof(names->name[0]), name_order);
	return names;
}

static struct proofs *proofs_new(const struct conf_users *users)
{
	struct proofs *p;

	if (!users)
		return NULL;
	p = mem_alloc(sizeof(*p) + users->count * sizeof(p->user[0]));
	rng_seed_from_system(p->key[0]);
	rng_seed_from_system(p->key[1]);
	p->tried = users->count;
	return p;
}

static void proofs_free(struct proofs *p)
{
	if (p)
		explicit_bzero(p->key, sizeof(p->key));
	free(p);
}

/* Whether this was the right secret of that user before. Else it is about to be verified. */
static bool proofs_try(struct proofs *p, size_t user, const char *secret, size_t n)
{
	p->tried = user;
	p->trying[0] = siphash(p->key[0], secret, n);
	p->trying[1] = siphash(p->key[1], secret, n);
	return p->user[user].known && p->user[user].hash[0] == p->trying[0] && p->user[user].hash[1] == p->trying[1];
}

/* The users may have been read again meanwhile: then the proofs are new, and nobody is being tried. */
static void proofs_keep(struct proofs *p, const struct conf_users *users)
{
	if (!p || p->tried >= users->count)
		return;
	p->user[p->tried].known = true;
	memcpy(p->user[p->tried].hash, p->trying, sizeof(p->trying));
}

bool guard_verified(struct daemon *d, bool ok)
{
	if (!d->verifying)
		return false;
	d->verifying = false;
	if (ok)
		proofs_keep(d->proofs, d->users);
	return true;
}

/* Sessions that were carried here are worth more than a file that cannot be opened: its lines are left out until it can, as after a reload. */
int guard_start(struct daemon *d, verifier_done *verified)
{
	int r = audit_file_open(&d->audit, d->conf->audit.file);

	if (r < 0) {
		log_event(LOG_ERROR, "audit", "file=%s error=\"%s\"", d->conf->audit.file, strerror(-r));
		if (!d->carried)
			return UNUSABLE;
	}
	d->core_conf.audit = d->conf->audit.file != NULL;
	d->rules = rules_of(d->conf->rules);
	d->core_conf.rules = d->rules;
	if (d->conf->auth.users_file) {
		d->users = users_read(d->conf);
		if (!d->users)
			return UNUSABLE;
	}
	d->core_conf.user_names = d->user_names = names_of(d->users);
	d->proofs = proofs_new(d->users);
	d->verifier = verifier_new(d->base, verified, d);
	return 0;
}

void guard_stop(struct daemon *d)
{
	verifier_free(d->verifier);
	proofs_free(d->proofs);
	free(d->user_names);
	conf_users_free(d->users);
	free(d->rules);
	audit_file_close(&d->audit);
}

void guard_reload(struct daemon *d, struct core_conf *ret_core)
{
	struct conf_users *users = d->conf->auth.users_file ? users_read(d->conf) : NULL;

	guard_secrets(d->conf); /* there may be the first */
	if (users || !d->conf->auth.users_file) {
		proofs_free(d->proofs);
		d->old_users = d->users; /* until the service has the new ones, as are the rules */
		d->old_names = d->user_names;
		d->users = users;
		d->user_names = names_of(users);
		d->proofs = proofs_new(users);
	} else {
		log_event(LOG_ERROR, "auth", "file=%s error=\"it was changed meanwhile and cannot be used\" note=\"the users stay as they were\"",
		          d->conf->auth.users_file);
		d->reloaded.failed = true;
	}
	d->old_rules = d->rules;
	d->rules = rules_of(d->conf->rules);
	ret_core->rules = d->rules;
	ret_core->users = d->users != NULL;
	ret_core->user_names = d->user_names;
	audit_file_reopen(&d->audit, clock_boottime());
}

void guard_reloaded(struct daemon *d)
{
	free(d->old_rules);
	free(d->old_names);
	conf_users_free(d->old_users);
	d->old_rules = NULL;
	d->old_names = NULL;
	d->old_users = NULL;
}

/* Hashes may differ in cost. A name that nobody has takes as long as that of some user, the same one each time. NULL: there are no users. */
static const char *decoy_of(const struct daemon *d, struct span name)
{
	return d->users && d->users->count > 0 ? d->users->user[siphash(d->proofs->key[0], name.p, name.n) % d->users->count].hash : NULL;
}

void guard_verify(struct daemon *d, const struct effect *effect)
{
	size_t count = d->users ? d->users->count : 0, i = 0;

	d->verifying = true;
	while (i < count && !span_equal(effect->verify.user, span_of(d->users->user[i].name)))
		i++;
	if (i < count && proofs_try(d->proofs, i, effect->verify.secret, effect->verify.secret_n)) {
		verifier_accept(d->verifier, effect->verify.number, effect->verify.secret, effect->verify.secret_n);
		return;
	}
	if (i == count && d->proofs)
		d->proofs->tried = count;
	verifier_begin(d->verifier, effect->verify.number, i < count ? d->users->user[i].hash : NULL, decoy_of(d, effect->verify.user), effect->verify.secret,
	               effect->verify.secret_n);
}

void guard_audit(struct daemon *d, struct span line)
{
	audit_file_add(&d->audit, line, clock_wall_us());
}

void guard_write(struct daemon *d)
{
	if (audit_file_has_news(&d->audit))
		audit_file_write(&d->audit, clock_boottime(), clock_wall_us());
}
