/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages about a configuration: collected as they are found, printed in the order of the text. Internal to conf.
 */
#ifndef CONF_REPORT_H
#define CONF_REPORT_H

#include "conf/conf.h"
#include "conf/source.h"

#include <stdarg.h>

/* place.line 0: the message concerns the source as a whole. */
void report_error(struct conf_report *r, const struct conf_source *s, struct source_place place, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void report_warning(struct conf_report *r, const struct conf_source *s, struct source_place place, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* An error whose source line is not printed, because it may contain a password. */
void report_secret(struct conf_report *r, const struct conf_source *s, struct source_place place, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
