/* SPDX-License-Identifier: BSD-2-Clause */
/* RESP2 as a server writes and reads it: replies, and the words of a command. */
#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include "daemon/base/buf.h"
#include "proto/span.h"
#include <stdint.h>

void wire_status(struct buf *out, const char *text);
void wire_error(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3))); /* with its code word, without '-' */
void wire_line(struct buf *out, char type, struct span text); /* type '+' or '-'; line ends in the text become blanks */
void wire_number(struct buf *out, int64_t n);
void wire_bulk(struct buf *out, struct span text);
void wire_double(struct buf *out, double n); /* as a bulk, as Redis 7.0 does */
void wire_nil(struct buf *out);
void wire_array(struct buf *out, size_t n); /* the head: n replies follow */
void wire_cut(struct buf *out, size_t length); /* drops what is behind so many bytes */

struct words {
	struct span *item;
	size_t count, cap;
};

/* Reads one whole command, an array of bulks; the words point into the bytes. False: it is none. */
bool wire_words(struct span bytes, struct words *ret_words) __attribute__((warn_unused_result));

/*
 * Writes the decimal digits of n, without NUL; returns how many (at most 20).
 * Integer: Redis' strict reading, without blanks, a sign other than '-', or a leading zero.
 */
size_t wire_digits(int64_t n, char *at);
bool wire_integer(struct span text, int64_t *ret_n);

/* Writes a number like %.17g, without NUL if it is whole. Returns its length. */
#define DECIMAL_MAX 32
size_t wire_decimal(double n, char *at);

#endif
