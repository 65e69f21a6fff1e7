/* SPDX-License-Identifier: BSD-2-Clause */
/* RESP2 as a server writes it: replies out, and the words of a command in. */
#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include "daemon/base/buf.h"
#include "proto/span.h"
#include <stdint.h>

void wire_status(struct buf *out, const char *text);
void wire_error(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3))); /* with its code word, no '-' */
void wire_line(struct buf *out, char type, struct span text); /* '+' or '-'; line ends within become blanks */
void wire_number(struct buf *out, int64_t n);
void wire_bulk(struct buf *out, struct span text);
void wire_double(struct buf *out, double n); /* as a bulk, the way of Redis 7.0 */
void wire_nil(struct buf *out);
void wire_array(struct buf *out, size_t n); /* the head; n replies follow */
void wire_cut(struct buf *out, size_t length); /* takes back what is behind so many bytes */

struct words {
	struct span *item;
	size_t count, cap;
};

/* One whole command, an array of bulks; the words borrow its bytes. False: it is not one. */
bool wire_words(struct span bytes, struct words *ret_words) __attribute__((warn_unused_result));

/* Decimal digits of n at `at`, no NUL; how many (at most 20). And Redis' strict reading of an integer: no blanks, no sign but '-', no leading zero. */
size_t wire_digits(int64_t n, char *at);
bool wire_integer(struct span text, int64_t *ret_n);

/* A number as %.17g says it, and no NUL when it is a whole one; how long it is. */
#define DECIMAL_MAX 32
size_t wire_decimal(double n, char *at);

#endif
