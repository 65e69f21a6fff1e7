/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What redlock asks of a keeper, and what the keeper reports.
 */
#ifndef CLIENT_TASK_H
#define CLIENT_TASK_H

#include "client/family.h"
#include "client/invocation.h"
#include "client/redlock.h"

struct keeper_report {
	enum { KEEPER_WAITING, KEEPER_GRANTED, KEEPER_STARTED, KEEPER_ENDED } kind;
	int code;                      /* ENDED: what redlock ends with */
	bool lingers;                  /* ENDED: it goes on for a while, to say what a daemon that is away or stopped has still to hear */
	pid_t command;                 /* STARTED */
	char session[64], secret[128]; /* WAITING, GRANTED: for RESUME, should the keeper die; "" without grace */
	char text[512];                /* ENDED: one line for a person, or "" */
};

struct keeper_task {
	const struct invocation *in;
	struct redlock *c;          /* just opened */
	struct redlock_grant grant; /* of a CHECK just answered */
	struct family_start start;
	int front; /* the keeper's end of the socket pair */
};

#endif
