/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the lines that daemons and clients exchange, without the product's own reader: a mistake there must not hide itself. */
#ifndef SIM_LINE_H
#define SIM_LINE_H

#include "proto/span.h"
#include <stdbool.h>
#include <stdint.h>

struct span line_word(struct span line, unsigned n);         /* the n-th word; empty: there is none */
struct span line_field(struct span line, const char *field); /* "" with p NULL: there is none */
int64_t line_int(struct span line, const char *field);       /* INT64_MIN: there is no such field */
bool line_tag(struct span line, unsigned *ret_number);       /* @t<number>; false: it has no tag */
int64_t line_name(struct span line);                         /* the number of its name=; -1: none of ours */
int64_t line_owner(struct span line);                        /* owner=; 0: there is none */
int64_t name_number(struct span name);                       /* "k3": 3; -1: none of ours */

#endif
