/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua state, its scripts, and their environment: KEYS, ARGV, and what the libraries define; a script cannot define a global. Garbage is never collected:
 * the memory of the state is reset instead.
 */
#include "tests/sim/redis/interpreter.h"
#include "daemon/base/mem.h"
#include "tests/sim/redis/image.h"
#include "tests/sim/redis/load8.h"
#include "tests/sim/redis/sandbox.h"
#include "tests/sim/redis/sha1.h"
#include "tests/sim/redis/texts.h"

#include <lauxlib.h>
#include <stdlib.h>

struct compiled {
	char sha[SHA1_HEX + 1];
	struct span text; /* owned */
	int function;     /* in the registry */
};

static struct {
	lua_State *lua; /* NULL: not opened */
	struct image image;
	struct compiled *script;
	int scripts, cap;
	int environment, handler; /* in the registry */
} interpreter;

/* Turns any error into a table that says where it was raised. */
static int error_handle(lua_State *lua)
{
	lua_Debug where;
	bool known = lua_getstack(lua, 1, &where) && lua_getinfo(lua, "Sl", &where);

	if (known && strcmp(where.what, "C") == 0)
		known = lua_getstack(lua, 2, &where) && lua_getinfo(lua, "Sl", &where);
	if (!lua_istable(lua, 1)) {
		lua_getglobal(lua, "tostring");
		lua_pushvalue(lua, 1);
		lua_call(lua, 1, 1);
		lua_pushliteral(lua, "ERR ");
		lua_insert(lua, -2);
		lua_concat(lua, 2);
		lua_createtable(lua, 0, 3);
		lua_insert(lua, -2);
		lua_setfield(lua, -2, "err");
	} else {
		lua_pushvalue(lua, 1);
	}
	if (known) {
		lua_pushstring(lua, where.source);
		lua_setfield(lua, -2, "source");
		lua_pushinteger(lua, where.currentline);
		lua_setfield(lua, -2, "line");
	}
	return 1;
}

lua_State *interpreter_open(void (*define)(lua_State *lua))
{
	if (interpreter.lua)
		return interpreter.lua;
	image_init(&interpreter.image);
	interpreter.lua = lua_newstate(image_alloc, &interpreter.image);
	if (!interpreter.lua)
		abort(); /* out of memory */
	lua_gc(interpreter.lua, LUA_GCSTOP, 0);
	sandbox_open(interpreter.lua);
	define(interpreter.lua);
	interpreter.environment = sandbox_environment(interpreter.lua);
	lua_pushcfunction(interpreter.lua, error_handle);
	interpreter.handler = luaL_ref(interpreter.lua, LUA_REGISTRYINDEX);
	texts_open(interpreter.lua);
	image_keep(&interpreter.image);
	return interpreter.lua;
}

/* Forgets all that is not kept. */
static void memory_reset(void)
{
	image_reset(&interpreter.image);
	texts_forget();
}

/* --- scripts --------------------------------------------------------------------------------------------------------- */

static int compiled_add(struct span text)
{
	struct compiled *c;

	if (interpreter.scripts == interpreter.cap) {
		interpreter.cap = interpreter.cap ? 2 * interpreter.cap : 4;
		interpreter.script = mem_grow(interpreter.script, (size_t)interpreter.cap, sizeof(*interpreter.script));
	}
	c = &interpreter.script[interpreter.scripts];
	*c = (struct compiled){.text = {mem_copy(text.p, text.n), text.n}};
	sha1_hex(text, c->sha);
	lua_rawgeti(interpreter.lua, LUA_REGISTRYINDEX, interpreter.environment);
	lua_setfenv(interpreter.lua, -2);
	c->function = luaL_ref(interpreter.lua, LUA_REGISTRYINDEX);
	image_keep(&interpreter.image);
	return interpreter.scripts++;
}

int interpreter_compile(struct span text)
{
	int i;

	for (i = 0; i < interpreter.scripts; i++)
		if (span_equal(interpreter.script[i].text, text))
			return i;
	memory_reset();
	return luaL_loadbuffer(interpreter.lua, text.p, text.n, "@user_script") ? -1 : compiled_add(text);
}

int interpreter_find(struct span sha)
{
	int i;

	for (i = 0; sha.n == SHA1_HEX && i < interpreter.scripts; i++)
		if (same8(sha.p, interpreter.script[i].sha, SHA1_HEX))
			return i;
	return -1;
}

const char *interpreter_sha(int script)
{
	return interpreter.script[script].sha;
}

/* --- running --------------------------------------------------------------------------------------------------------- */

void interpreter_environment(void)
{
	lua_rawgeti(interpreter.lua, LUA_REGISTRYINDEX, interpreter.environment);
}

int interpreter_call(int script)
{
	lua_rawgeti(interpreter.lua, LUA_REGISTRYINDEX, interpreter.handler);
	lua_rawgeti(interpreter.lua, LUA_REGISTRYINDEX, interpreter.script[script].function);
	return lua_pcall(interpreter.lua, 0, 1, -2);
}

void interpreter_clear(void)
{
	lua_settop(interpreter.lua, 0);
	if (image_is_full(&interpreter.image))
		memory_reset();
}
