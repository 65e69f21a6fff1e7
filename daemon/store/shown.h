/* SPDX-License-Identifier: BSD-2-Clause */
/* What a store shows to others of a value that is not theirs, as long.lua and break.lua do. */
#ifndef STORE_SHOWN_H
#define STORE_SHOWN_H

#include "proto/span.h"

#define SHOWN_MAX 160

/* '^([^:]+:[^:]+):%x+$', at most 128 bytes. Of 32 hex digits it also shows the first 12, after a colon. "" for a value that no redlockd wrote. */
struct span shown_public(struct span value);
/* The same; "#<length>:<first bytes>", in `room`, for a value that no redlockd wrote. */
struct span shown_what(struct span value, char room[SHOWN_MAX]);

#endif
