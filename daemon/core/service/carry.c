/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A service goes on in another process: it parts with the configuration of the one, and gets that of the other. It must never go on about other stores: what it
 * holds is there.
 */
#include "daemon/core/service/service.h"

#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "daemon/core/service/whole.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* What markers, votes and homes rest on, as a text. */
static char *identity_of(const struct core_conf *c)
{
	struct buf b = {0};
	char *text;

	buf_printf(&b, "%s %s %" PRIu64 " %d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %u", c->store, c->set ? c->set : "", c->generation,
	           c->shared, c->max_lease_us, c->max_delay_us, c->skew_us, c->clock_tol_us, c->window);
	for (unsigned i = 0; i < c->nodes; i++)
		buf_printf(&b, " %s=%s", c->label[i], c->home[i] ? c->home[i] : "");
	text = mem_copy(buf_begin(&b), buf_length(&b));
	buf_release(&b);
	return text;
}

void service_pack(struct service *s)
{
	struct core_conf *c = &s->core.conf;
	struct segment *before = mem_use(c->segment);

	assert(!s->stepping && !s->identity);
	s->identity = identity_of(c);
	for (unsigned i = 0; i < NODES_MAX; i++)
		c->label[i] = c->home[i] = NULL;
	c->store = c->set = c->host = NULL;
	c->rules = NULL;
	c->user_names = NULL;
	c->outer = NULL;
	c->segment = NULL;
	/* What borrowed the bytes of a line that is served. */
	memset(&s->commander.request, 0, sizeof(s->commander.request));
	memset(&s->commander.mistake, 0, sizeof(s->commander.mistake));
	mem_use(before);
}

bool service_adopt(struct service *s, const struct core_conf *conf, const char **ret_why)
{
	const struct core_conf former = s->core.conf;
	char *identity = identity_of(conf);
	bool same = strcmp(identity, s->identity) == 0;

	mem_free(identity);
	if (!same) {
		*ret_why = "the configuration names other stores, or another max_lease or max_delay";
		return false;
	}
	mem_free(s->identity);
	s->identity = NULL;
	s->core.conf = *conf;
	core_conf_take_live(&s->core.conf, &former); /* service_reload takes these, and sees what has changed */
	memcpy(s->core.conf.seed, former.seed, sizeof(former.seed));
	s->core.conf.trust_first_start = former.trust_first_start;
	s->core.conf.rebooted = former.rebooted;
	s->core.conf.past_lease_us = former.past_lease_us;
	s->engine.watched += conf->audit;
	s->engine.watched -= former.audit;
	service_reload(s, conf);
	return true;
}
