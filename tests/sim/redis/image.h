/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a Lua state that is set back instead of being collected: blocks are cut off one after the other and none is given back, until image_reset puts
 * every byte where it was at image_keep. The state never knows. Both are for the time between two scripts, when no C function holds a Lua value.
 */
#ifndef SIM_IMAGE_H
#define SIM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

struct image {
	char *base;      /* blocks never move: pointers in the copy stay true */
	size_t used, cap;
	char *copy;      /* of the first `kept` bytes */
	size_t kept;
};

void image_init(struct image *m);

/* A lua_Alloc; the context is the image. */
void *image_alloc(void *context, void *block, size_t before, size_t after);

void image_keep(struct image *m);
void image_reset(struct image *m);

/* Is there so much garbage that a reset is worth its copy? */
bool image_is_full(const struct image *m);

#endif
