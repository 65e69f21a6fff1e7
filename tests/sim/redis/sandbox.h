/* SPDX-License-Identifier: BSD-2-Clause */
/* The Lua that a script finds in Redis: base, table, string and math, without files, modules, random numbers and function environments. */
#ifndef SIM_SANDBOX_H
#define SIM_SANDBOX_H

#include <lua.h>

void sandbox_open(lua_State *lua);

/*
 * The environment of scripts, as a reference in the registry: a copy of the globals, in which the caller may set more, raw. A script that reads or sets an
 * unknown global raises an error. To be called once, when all globals are defined.
 */
int sandbox_environment(lua_State *lua);

#endif
