/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of the journal file (journal.h): a header, then one frame for each record.
 *
 *   0 magic   8 version   12 0   16 boot id, padded with NUL   80 CLOCK_BOOTTIME in us when the file was made
 *   88 SipHash-2-4 of bytes 0 to 87   96 {u32 length, u32 check of the length, u64 SipHash-2-4 of the bytes, bytes} …
 */
#ifndef FRAME_H
#define FRAME_H

#include "daemon/base/buf.h"
#include "daemon/base/instant.h"
#include "proto/span.h"

#include <stdint.h>

#define FRAME_HEADER   ((size_t)96)
#define FRAME_BOOT_MAX 64
#define FRAME_SPOILT   "unusable" /* the beginning of a file that was given up */

enum frame { FRAME_WHOLE, FRAME_TORN, FRAME_DAMAGED }; /* torn: the bytes end within the frame, or none are left */

void frame_append(struct buf *b, struct span record);
/* Takes the next frame off bytes if it is whole. */
enum frame frame_next(struct span *bytes, struct span *ret_record);

void frame_header_put(char out[FRAME_HEADER], const char *boot_id, struct instant now);
/* Why the file cannot be used; NULL: it can. */
const char *frame_header_fault(struct span file);
/* Whether a file without such a fault was made in this boot. boot_id "": unknown, so it was not. */
bool frame_header_is_of(struct span file, const char *boot_id, struct instant now);

#endif
