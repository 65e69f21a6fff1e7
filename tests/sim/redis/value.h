/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies as Lua values and Lua values as replies. In: nil is false, a status is {ok = …}, an error is {err = …}. Out: numbers are cut to integers, true is 1, false and
 * nil are nil, a table ends at its first nil.
 */
#ifndef SIM_VALUE_H
#define SIM_VALUE_H

#include "tests/sim/redis/wire.h"
#include <lua.h>

/* Pushes what a sound reply says, which is NUL-terminated. Returns what follows it. */
const char *value_push(lua_State *lua, const char *reply);

/* Says and pops what is on top. */
void value_say(lua_State *lua, struct buf *out);

/* {field = text}; and an error: "-CODE message" as it is, a text without a code word gets ERR. */
void value_push_field(lua_State *lua, const char *field, struct span text);
void value_push_error(lua_State *lua, struct span text);

/* Has the table on top a text there? Then it is pushed. */
bool value_has_field(lua_State *lua, struct span field);
struct span value_text(lua_State *lua, int index); /* of a string, or a number, which becomes one */

#endif
