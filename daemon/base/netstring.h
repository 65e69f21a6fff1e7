/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of words of any bytes, each after its length and ':': "5:abcde3:x y". Source: netstrings (Bernstein 1997), without the comma. */
#ifndef BASE_NETSTRING_H
#define BASE_NETSTRING_H

#include "daemon/base/buf.h"
#include "proto/span.h"

#include <stdbool.h>
#include <stdint.h>

void netstring_put(struct buf *list, struct span word);
void netstring_put_int(struct buf *list, int64_t n);
/* Takes the next word from the list. False: there is none, or the list is malformed. */
bool netstring_next(struct span *list, struct span *ret_word);
/* The same for a number. */
bool netstring_next_int(struct span *list, int64_t *ret_n);

#endif
