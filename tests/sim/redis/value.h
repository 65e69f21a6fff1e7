/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies as Lua values, and Lua values as replies. In: nil becomes false, a status {ok = …}, an error {err = …}. Out: numbers are cut to integers, true
 * becomes 1, false and nil become nil, a table ends at its first nil.
 */
#ifndef SIM_VALUE_H
#define SIM_VALUE_H

#include "tests/sim/redis/wire.h"
#include <lua.h>

/* Pushes the value of a well-formed, NUL-terminated reply. Returns the position behind it. */
const char *value_push(lua_State *lua, const char *reply);

/* Writes and pops the value on top. */
void value_write(lua_State *lua, struct buf *out);

/* Pushes {field = text}; or an error: "-CODE message" as it is, a text without a code word gets ERR. */
void value_push_field(lua_State *lua, const char *field, struct span text);
void value_push_error(lua_State *lua, struct span text);

struct span value_text(lua_State *lua, int index); /* of a string, or of a number, which becomes a string */

#endif
