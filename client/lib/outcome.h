/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an answer means: an outcome and a code word for the program, one line for a person.
 */
#ifndef CLIENT_OUTCOME_H
#define CLIENT_OUTCOME_H

#include "client/lib/redlock.h"
#include "proto/proto.h"

#define CODE_BYTES    32
#define MESSAGE_BYTES 1024

/* The outcome. ret_code is set by ERR alone, ret_message by all but OK; both are printable. */
int outcome_of(const struct reply_line *answer, char ret_code[CODE_BYTES], char ret_message[MESSAGE_BYTES]);

#endif
