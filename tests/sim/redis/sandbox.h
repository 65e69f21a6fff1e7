/* SPDX-License-Identifier: BSD-2-Clause */
/* The Lua that a script of Redis finds: base, table, string and math, without files, modules, chance and the environment of functions. */
#ifndef SIM_SANDBOX_H
#define SIM_SANDBOX_H

#include <lua.h>

void sandbox_open(lua_State *lua);

/*
 * The environment of scripts, as a reference in the registry: the globals, and what is set there raw. A script that sets a global that is not there, or
 * reads one, raises an error. Once all globals are defined.
 */
int sandbox_environment(lua_State *lua);

#endif
