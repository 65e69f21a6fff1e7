/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints each event and effect in full. Kinds are numbers here: a word that is renamed makes no difference. */
#include "tests/same/same.h"

#include "daemon/core/service/service.h"

#include <inttypes.h>
#include <stdio.h>

int __real_service_step(struct service *s, const struct event *event, struct effects *ret_effects);
int __wrap_service_step(struct service *s, const struct event *event, struct effects *ret_effects);
bool __real_service_snapshot(struct service *s, struct effects *ret_effects);
bool __wrap_service_snapshot(struct service *s, struct effects *ret_effects);

void same_begin(const char *kind, const char *item)
{
	printf("== %s %s\n", kind, item);
}

/* A byte that is not printable is printed as its code. */
static void put(struct span bytes)
{
	putchar(' ');
	for (size_t i = 0; i < bytes.n; i++) {
		unsigned char c = (unsigned char)bytes.p[i];

		if (c >= 0x20 && c < 0x7f && c != '\\')
			putchar(c);
		else
			printf("\\%02x", c);
	}
}

static void put_call(const struct call *c)
{
	printf("call %" PRIu64 " n%u %d px=%" PRId64 " fence=%" PRId64 " range=%" PRId64 " not_after=%" PRId64 " %d%d%d ticket_ms=%" PRId64 " grace=%" PRId64,
	       c->id, c->node, (int)c->kind, c->px_ms, c->fence, c->kind == CALL_EXTEND ? c->beyond : c->range, c->not_after_ms, c->create, c->exact,
	       c->at_most, c->ticket_ms, c->reserve_ms);
	put(c->name);
	put(c->value);
	put(c->new_value);
	put(c->marker);
	put(c->new_marker);
	put(c->ticket);
}

static void put_effect(const struct effect *e)
{
	switch (e->kind) {
	case EFFECT_SEND:
		printf("send %" PRIu64, e->send.session);
		put(e->send.bytes);
		break;
	case EFFECT_HANGUP:
		printf("hangup %" PRIu64, e->hangup.session);
		put(e->hangup.reason);
		break;
	case EFFECT_AWAIT:
		printf("await %" PRIu64, e->await.session);
		break;
	case EFFECT_READ:
		printf("read %" PRIu64 " %d", e->read.session, e->read.on);
		break;
	case EFFECT_CALL:
		put_call(&e->call);
		break;
	case EFFECT_AUDIT:
		printf("audit");
		put(e->audit.text);
		break;
	case EFFECT_VERIFY:
		printf("verify %" PRIu64, e->verify.number);
		break;
	case EFFECT_LOG:
		printf("log %d %s", (int)e->log.level, e->log.event);
		put(e->log.text);
		break;
	case EFFECT_JOURNAL:
		printf("journal");
		put(e->journal.record);
		break;
	}
	putchar('\n');
}

static void put_effects(const struct effects *e, size_t from)
{
	for (size_t i = from; i < e->count; i++)
		put_effect(&e->item[i]);
}

int __wrap_service_step(struct service *s, const struct event *event, struct effects *ret_effects)
{
	size_t from = ret_effects->count;
	int result;

	printf("event %d at %" PRId64, (int)event->kind, event->now.us);
	if (event->kind == EVENT_LINE)
		put((struct span){event->session.line, event->session.n});
	if (event->kind == EVENT_ANSWER)
		printf(" %" PRIu64 " %d %c", event->answer.call, (int)event->answer.class, event->answer.code ? event->answer.code : '-');
	putchar('\n');
	result = __real_service_step(s, event, ret_effects);
	if (result)
		printf("result %d\n", result);
	put_effects(ret_effects, from);
	return result;
}

bool __wrap_service_snapshot(struct service *s, struct effects *ret_effects)
{
	size_t from = ret_effects->count;
	bool more;

	puts("snapshot");
	more = __real_service_snapshot(s, ret_effects);
	put_effects(ret_effects, from);
	return more;
}
