/* SPDX-License-Identifier: BSD-2-Clause */
/* A loop with a resolver, and a stand-in for getaddrinfo that answers 127.0.0.1 unless it is told otherwise. There is one of it. */
#ifndef UNIT_NAMES_H
#define UNIT_NAMES_H

#include "daemon/redis/resolver.h"

#include <pthread.h>

struct event_base;

struct names {
	struct event_base *base;
	struct resolver *resolver;
	unsigned asked; /* how often; atomic */
	pthread_t asked_by;
};
extern struct names names;

void names_open(void);
void names_close(void);
void names_host(int i, const char *host); /* the i-th of up to three addresses of every name */
void names_fail(int error);               /* EAI_…; 0: no more */
void names_hang(void);                    /* until names_go_on */
void names_go_on(size_t questions);

/* The loop runs until *n is at least that, or for so long. */
void names_await(const unsigned *n, unsigned at_least);
void names_run(int64_t us);

#endif
