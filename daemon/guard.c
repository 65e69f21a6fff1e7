/* SPDX-License-Identifier: BSD-2-Clause */
/* What guards the daemon: the users and their secrets, the rules as the service sees them, and the audit log. */
#include "daemon/internal.h"

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* No secret reaches a core file. A pipe of core_pattern ignores the limit, so a daemon with secrets cannot be dumped at all. */
void guard_secrets(const struct conf *c)
{
	const struct rlimit none = {0, 0};

	if (setrlimit(RLIMIT_CORE, &none) || ((c->auth.users_file || c->redis.password_file) && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)))
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

static void on_verified(void *context, uint64_t number, bool ok)
{
	struct event event = {.kind = EVENT_VERIFIED, .verified = {.number = number, .ok = ok}};

	pump_step(context, &event);
}

int guard_start(struct daemon *d)
{
	int r = audit_file_open(&d->audit, d->conf->audit.file);

	if (r < 0) {
		log_event(LOG_ERROR, "audit", "file=%s error=\"%s\"", d->conf->audit.file, strerror(-r));
		return r;
	}
	d->core_conf.audit = d->conf->audit.file != NULL;
	d->rules = rules_of(d->conf->rules);
	d->core_conf.rules = d->rules;
	if (d->conf->auth.users_file) {
		d->users = users_read(d->conf);
		if (!d->users)
			return -EINVAL;
	}
	d->verifier = verifier_new(d->base, on_verified, d);
	return d->verifier ? 0 : -ENOMEM;
}

void guard_stop(struct daemon *d)
{
	verifier_free(d->verifier);
	conf_users_free(d->users);
	free(d->rules);
	audit_file_close(&d->audit);
}

void guard_reload(struct daemon *d, struct core_conf *ret_core)
{
	struct conf_users *users = d->conf->auth.users_file ? users_read(d->conf) : NULL;

	if (users || !d->conf->auth.users_file) {
		conf_users_free(d->users);
		d->users = users;
	} else {
		log_event(LOG_ERROR, "auth", "file=%s error=\"it was changed meanwhile and cannot be used\" note=\"the users stay as they were\"",
		          d->conf->auth.users_file);
	}
	d->old_rules = d->rules; /* until the service has the new ones */
	d->rules = rules_of(d->conf->rules);
	ret_core->rules = d->rules;
	ret_core->users = d->users != NULL;
	audit_file_reopen(&d->audit, clock_boottime());
}

void guard_reloaded(struct daemon *d)
{
	free(d->old_rules);
	d->old_rules = NULL;
}

void guard_verify(struct daemon *d, const struct effect *effect)
{
	struct span user = effect->verify.user;
	const char *hash = NULL;

	for (size_t i = 0; d->users && i < d->users->count; i++)
		if (span_equal(user, span_of(d->users->user[i].name)))
			hash = d->users->user[i].hash;
	verifier_begin(d->verifier, effect->verify.number, hash, d->users && d->users->count > 0 ? d->users->user[0].hash : NULL, effect->verify.secret,
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
