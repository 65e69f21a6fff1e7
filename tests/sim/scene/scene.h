/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scene is a script: events in the right order within milliseconds, which chance alone seldom brings about. Some worlds are given one, on a name and with
 * clients of its own; whatever else goes on there goes on around it. Each kind of scene draws from a stream of its own, so that a world may have one of each.
 * Here is what scenes are made of.
 */
#ifndef SIM_SCENE_H
#define SIM_SCENE_H

#include "tests/sim/plan/plan.h"
#include "tests/sim/plan/stream.h"

#define PATIENT_MS 6000

struct scene {
	struct plan *plan;
	struct stream *stream;
	int64_t daemon, name, at_us;
	int64_t taken; /* how many clients of the world it took because there was no room for another */
};

void scene_make_room(struct plan *p, unsigned jobs, unsigned faults);
/* Moves on to a name that nobody else uses, as long as there is room for one. */
void scene_take_name(struct scene *s);
/* Another client of the scene's daemon; where there is no room, one that has other jobs. */
int64_t scene_client(struct scene *s);
/* A client that asks for grace, if there is one. */
int64_t scene_client_graced(struct scene *s);
/* A job of a new client. */
struct job *scene_job(struct scene *s, int64_t after_us, int64_t hold_us);
/* A fault at an even time: it meets exactly the object that it names. */
struct fault *scene_fault(struct scene *s, enum fault_kind kind, int64_t a, int64_t after_us, int64_t for_us);

/* In so many per cent of such worlds nothing else happens: the other faults are dropped. */
void scene_alone(struct scene *s, unsigned percent);
/* Draws the daemon and the moment of the scene, and takes a name. */
void scene_place(struct scene *s);

#endif
