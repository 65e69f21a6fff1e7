/* SPDX-License-Identifier: BSD-2-Clause */
/* From what a clock shows back to true time. */
#include "tests/sim/world/host.h"

int64_t host_true(const struct host *h, struct instant boot)
{
	int64_t shown, rate = 1000000 + h->ppm, rest, now, at;

	if (boot.us == INT64_MAX)
		return INT64_MAX;
	/* A guess that is a little late, which then moves step by step. */
	shown = boot.us - h->base_us;
	rest = shown % rate;
	now = shown / rate * 1000000 + (rest > 0 ? rest * 1000000 / rate + 2 : rest) + h->halted_us;
	for (at = host_boot(h, now).us; at >= boot.us; at = host_boot(h, now).us)
		now -= 1 + (at - boot.us) / 2;
	for (; at < boot.us; at = host_boot(h, now).us)
		now += 1 + (boot.us - at) / 2;
	return now;
}

int64_t host_deadline(struct host *h, struct instant boot)
{
	if (!h->deadline.known || h->deadline.boot.us != boot.us || h->deadline.halted_us != h->halted_us) {
		h->deadline.known = true;
		h->deadline.boot = boot;
		h->deadline.halted_us = h->halted_us;
		h->deadline.at = host_true(h, boot);
	}
	return h->deadline.at;
}

void host_reboot(struct host *h, int64_t now, int64_t ago_us)
{
	int64_t less = host_boot(h, now).us - ago_us;

	h->base_us -= less;
	h->offset_us += less;
	h->deadline.known = false;
}
