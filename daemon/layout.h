/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What structures this program has in a segment (base/segment.h): a digest of their definitions, made by layout.sh. Two builds with the same one go on from
 * each other.
 */
#ifndef LAYOUT_H
#define LAYOUT_H

extern const char layout_digest[];

#endif
