/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts that were pushed last onto the stack of the Lua state. The same keys, values and numbers come again and again, and to find one here is cheaper
 * than to have Lua look it up: that hashes each byte. Scripts do not notice.
 */
#ifndef SIM_TEXTS_H
#define SIM_TEXTS_H

#include "proto/span.h"
#include <lua.h>

void texts_open(lua_State *lua); /* there is one state */
void texts_forget(void);         /* its memory was reset: they are gone */

/* Words that are needed for every script. */
enum text_word { TEXT_KEYS, TEXT_ARGV, TEXT_ERR, TEXT_OK, TEXT_WORDS };
void texts_push_word(lua_State *lua, enum text_word word);

/* Pushes the text, as lua_pushlstring does. */
void texts_push(lua_State *lua, struct span text);

#endif
