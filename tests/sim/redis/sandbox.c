/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What differs from plain Lua 5.1. Nothing here may depend on anything but its arguments. The library `jit` stays closed as well: without it LuaJIT only
 * interprets.
 */
#include "tests/sim/redis/sandbox.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stddef.h>

/* Lua's pcall, except that of a Redis error it returns only the text. */
static int text_pcall(lua_State *lua)
{
	int failed;

	luaL_checkany(lua, 1);
	failed = lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0);
	if (failed && lua_istable(lua, -1)) {
		lua_getfield(lua, -1, "err");
		if (lua_isstring(lua, -1))
			lua_replace(lua, -2);
		else
			lua_pop(lua, 1);
	}
	luaL_checkstack(lua, 1, "too many results");
	lua_pushboolean(lua, !failed);
	lua_insert(lua, 1);
	return lua_gettop(lua);
}

static int global_missing(lua_State *lua)
{
	return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", lua_tostring(lua, 2));
}

static int global_set(lua_State *lua)
{
	return luaL_error(lua, "Attempt to modify a readonly table");
}

void sandbox_open(lua_State *lua)
{
	static const struct {
		const char *name;
		lua_CFunction open;
	} libraries[] = {{"", luaopen_base},
			 {LUA_TABLIBNAME, luaopen_table},
			 {LUA_STRLIBNAME, luaopen_string},
			 {LUA_MATHLIBNAME, luaopen_math}};
	static const char *const gone[] = {"dofile", "loadfile", "print", "newproxy", "module", "require", "getfenv", "setfenv"};
	size_t i;

	for (i = 0; i < sizeof(libraries) / sizeof(*libraries); i++) {
		lua_pushcfunction(lua, libraries[i].open);
		lua_pushstring(lua, libraries[i].name);
		lua_call(lua, 1, 0);
	}
	for (i = 0; i < sizeof(gone) / sizeof(*gone); i++) {
		lua_pushnil(lua);
		lua_setglobal(lua, gone[i]);
	}
	lua_register(lua, "pcall", text_pcall);
	lua_getglobal(lua, LUA_MATHLIBNAME);
	lua_pushnil(lua);
	lua_setfield(lua, -2, "random");
	lua_pushnil(lua);
	lua_setfield(lua, -2, "randomseed");
	lua_pop(lua, 1);
}

/* Copies each global, so that a lookup needs one table only. */
static void globals_copy(lua_State *lua, int environment)
{
	for (lua_pushnil(lua); lua_next(lua, LUA_GLOBALSINDEX); lua_pop(lua, 1)) {
		lua_pushvalue(lua, -2);
		lua_pushvalue(lua, -2);
		lua_rawset(lua, environment);
	}
}

/* Access to what is not in the environment is an error. */
int sandbox_environment(lua_State *lua)
{
	lua_createtable(lua, 0, 32);
	globals_copy(lua, lua_gettop(lua));
	lua_createtable(lua, 0, 2);
	lua_pushcfunction(lua, global_missing);
	lua_setfield(lua, -2, "__index");
	lua_pushcfunction(lua, global_set);
	lua_setfield(lua, -2, "__newindex");
	lua_pushvalue(lua, -1);
	lua_setmetatable(lua, LUA_GLOBALSINDEX);
	lua_setmetatable(lua, -2);
	return luaL_ref(lua, LUA_REGISTRYINDEX);
}
