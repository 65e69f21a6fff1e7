/* SPDX-License-Identifier: BSD-2-Clause */
/* What a store tells others of a value that is not theirs, as long.lua and break.lua do. */
#ifndef STORE_SHOWN_H
#define STORE_SHOWN_H

#include "proto/span.h"

#define SHOWN_MAX 160

/* '^([^:]+:[^:]+):%x+$', at most 128 bytes; with 32 hex digits the first 12 as well, behind a colon; "" for a value that no redlockd wrote. */
struct span shown_public(struct span value);
/* The same; "#<length>:<first bytes>" for a value that no redlockd wrote, in the room. */
struct span shown_what(struct span value, char room[SHOWN_MAX]);

#endif
