/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of figures. */
#include "daemon/core/metric.h"

const struct metric_row metric_table[METRIC_N] = {
#define METRIC(id, name, kind, help) [METRIC_##id] = {name, METRIC_##kind, help},
#include "daemon/core/metric.def"
#undef METRIC
};
