/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads one text into a configuration. Internal to conf.
 */
#ifndef CONF_READER_H
#define CONF_READER_H

#include "conf/report.h"
#include "conf/schema.h"

/* Reads source->text[from..): a whole configuration, or, if s is not NULL, the value of s. 0, or -1 if it added errors. */
int reader_run(struct conf *c, const struct conf_source *source, size_t from, const struct setting *s,
	       struct conf_report *report);

#endif
