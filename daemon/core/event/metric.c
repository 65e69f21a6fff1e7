/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of figures. */
#include "daemon/core/event/metric.h"

const struct metric_row metric_table[METRIC_N] = {
#define METRIC(id, name, kind, source, labels, help) [METRIC_##id] = {name, METRIC_##kind, METRIC_##source, labels, help},
#include "daemon/core/event/metric.def"
#undef METRIC
};

const char *const result_word[RESULT_N] = {[RESULT_OK] = "ok", [RESULT_BUSY] = "busy", [RESULT_TIMEOUT] = "timeout", [RESULT_ERROR] = "error"};

int64_t metrics_answered(const struct metrics *m)
{
	return m->value[METRIC_FAILURES] + m->value[METRIC_GRANTS] + m->value[METRIC_REENTRIES] + m->value[METRIC_REFUSALS] + m->value[METRIC_TIMEOUTS];
}
