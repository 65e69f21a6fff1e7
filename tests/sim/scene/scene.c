/* SPDX-License-Identifier: BSD-2-Clause */
/* Names, clients, jobs and faults of a scene. */
#include "tests/sim/scene/scene.h"

#include "daemon/base/instant.h"
#include "daemon/core/event/event.h"
#include "tests/sim/plan/stream.h"

void scene_take_name(struct scene *s)
{
	if (s->plan->names < NAMES_MAX)
		s->plan->names++;
	s->name = s->plan->names - 1;
}

int64_t scene_client(struct scene *s)
{
	struct plan *p = s->plan;
	int64_t client = p->clients;

	while (client % p->daemons != s->daemon)
		client++;
	if (client >= CLIENTS_COMMON)
		client = s->daemon + p->daemons * (s->taken++ % (CLIENTS_COMMON / p->daemons));
	if (p->clients <= client)
		p->clients = client + 1;
	return client;
}

int64_t scene_client_graced(struct scene *s)
{
	int64_t client = scene_client(s);

	for (int i = 0; i < 8 && !client_is_graced(s->plan, (unsigned)client); i++)
		client = scene_client(s);
	return client;
}

struct job *scene_job(struct scene *s, int64_t after_us, int64_t hold_us)
{
	struct job *j = &s->plan->job[s->plan->jobs++];

	*j = (struct job){.at_us = s->at_us + after_us,
			  .client = scene_client(s),
			  .name = s->name,
			  .wait_ms = PATIENT_MS,
			  .ttl_ms = s->plan->lease_us / MSEC,
			  .renew = 1,
			  .tagged = 1,
			  .hold_us = hold_us,
			  .ending = END_UNLOCK};
	return j;
}

struct fault *scene_fault(struct scene *s, enum fault_kind kind, int64_t a, int64_t after_us, int64_t for_us)
{
	struct fault *f = &s->plan->fault[s->plan->faults++];

	*f = (struct fault){.kind = kind, .a = a, .at_us = (s->at_us + after_us) & ~INT64_C(1), .for_us = for_us};
	return f;
}

void scene_make_room(struct plan *p, unsigned jobs, unsigned faults)
{
	if (p->jobs > JOBS_MAX - jobs)
		p->jobs = JOBS_MAX - jobs;
	if (p->faults > FAULTS_MAX - faults)
		p->faults = FAULTS_MAX - faults;
}

void scene_alone(struct scene *s, unsigned percent)
{
	if (stream_chance(s->stream, percent))
		s->plan->faults = 0;
}

void scene_place(struct scene *s)
{
	const struct plan *p = s->plan;
	int64_t latest = p->length_us - 2 * p->lease_us;

	/* Not the last daemon: it may be a stranger. */
	s->daemon = stream_range(s->stream, 0, p->daemons > 1 ? p->daemons - 2 : 0);
	s->at_us = stream_range(s->stream, p->warm_us, latest > p->warm_us ? latest : p->warm_us);
	scene_take_name(s);
}
