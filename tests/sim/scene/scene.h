/* SPDX-License-Identifier: BSD-2-Clause */
/* What scenes are made of. */
#ifndef SIM_SCENE_H
#define SIM_SCENE_H

#include "tests/sim/plan/plan.h"
#include "tests/sim/plan/stream.h"

#define PATIENT_MS 6000

struct scene {
	struct plan *plan;
	struct stream *stream;
	int64_t daemon, name, at_us;
	int64_t taken; /* of the clients that were there before */
};

void scene_make_room(struct plan *p, unsigned jobs, unsigned faults);
/* A name that nobody else uses, as long as there are such. */
void scene_take_name(struct scene *s);
/* Another client of its daemon; one that has other work, where there is no room. */
int64_t scene_client(struct scene *s);
/* One that has a session to come back to, if there is one. */
int64_t scene_client_graced(struct scene *s);
/* Of a new client. */
struct job *scene_job(struct scene *s, int64_t after_us, int64_t hold_us);
/* At an even time: it meets whom it names. */
struct fault *scene_fault(struct scene *s, enum fault_kind kind, int64_t a, int64_t after_us, int64_t for_us);

#endif
