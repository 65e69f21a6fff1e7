/* SPDX-License-Identifier: BSD-2-Clause */
/* The totals of the snapshot: the figures of STATS, those with labels summed up. Histograms are left to /metrics. */
#ifndef WEB_TOTALS_H
#define WEB_TOTALS_H

#include "daemon/base/buf.h"
#include "proto/proto.h"

#define TOTALS_NAME 96

struct totals {
	char name[TOTALS_NAME]; /* the figure whose rows are being summed up; "" before the first */
	int64_t millionths;
	bool whole; /* no row of it has a fraction */
};

void totals_add(struct totals *t, struct buf *out, const struct reply_line *row);
void totals_end(struct totals *t, struct buf *out); /* after the last row */

#endif
