/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a Lua state. It is reset instead of garbage-collected: blocks are cut off one after the other and never freed, until image_reset restores every
 * byte as it was at image_keep. The state does not notice. Both are called between two scripts, when no C function holds a Lua value.
 */
#ifndef SIM_IMAGE_H
#define SIM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

struct image {
	char *base;      /* blocks never move, so pointers in the copy stay valid */
	size_t used, cap;
	char *copy;      /* copy of the first `kept` bytes */
	size_t kept;
};

void image_init(struct image *m);

/* A lua_Alloc; the context is the image. */
void *image_alloc(void *context, void *block, size_t before, size_t after);

void image_keep(struct image *m);
void image_reset(struct image *m);

/* Is there enough garbage to make a reset worth its copy? */
bool image_is_full(const struct image *m);

#endif
