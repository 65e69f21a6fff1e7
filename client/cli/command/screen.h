/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole terminal, for a view that is drawn anew: by the escape sequences that all terminals of today know, so that no library is needed. */
#ifndef CLIENT_SCREEN_H
#define CLIENT_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum screen_key {
	KEY_NONE,
	KEY_UP,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_QUIT, /* q, or a signal that ends */
};

/* Takes the terminal, until screen_close or the end of the process by SIGINT, SIGTERM or SIGHUP. False: input and output are no terminal. */
bool screen_open(void);
void screen_close(void);
void screen_size(unsigned *ret_width, unsigned *ret_height);
/* Draws a frame: lines with "\r\n\033[K" between them. */
void screen_draw(const char *text, size_t n);
/* Waits at most so long for a key. KEY_NONE: none came, or the size has changed. */
enum screen_key screen_key(int64_t most_ms);

#endif
