/* SPDX-License-Identifier: BSD-2-Clause */
/* The clocks of one host, as functions of true time (microseconds since the world began). */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "daemon/base/instant.h"

#define HOST_RATE_MOST_PPM 4900 /* fast or slow, so that two hosts differ by less than rho = 1 % */

struct host {
	int64_t ppm;       /* how much its clocks run fast, in parts per million */
	int64_t base_us;   /* what BOOTTIME shows when the world begins */
	int64_t offset_us; /* REALTIME - BOOTTIME; steps change it */
	int64_t halted_us; /* how long the whole host has stood still, clocks included */
	struct {
		bool known;
		struct instant boot;
		int64_t halted_us, at;
	} deadline; /* the last result of host_deadline */
};

/* How much time has passed for it: it does not count its stops. */
static inline int64_t host_run_us(const struct host *h, int64_t now)
{
	return now - h->halted_us;
}

static inline struct instant host_boot(const struct host *h, int64_t now)
{
	int64_t run = host_run_us(h, now);

	return (struct instant){h->base_us + run + run / 1000000 * h->ppm + run % 1000000 * h->ppm / 1000000};
}

static inline int64_t host_wall(const struct host *h, int64_t now)
{
	return host_boot(h, now).us + h->offset_us;
}

/* The first true time at which BOOTTIME shows at least this, as far as is known now. */
int64_t host_true(const struct host *h, struct instant boot);
/* The same, for a deadline that is asked for again and again. */
int64_t host_deadline(struct host *h, struct instant boot);
/* BOOTTIME shows no more than this. REALTIME goes on. */
void host_reboot(struct host *h, int64_t now, int64_t ago_us);

#endif
