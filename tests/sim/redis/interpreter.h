/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one Lua state of the process: the scripts of all servers run on it, one after the other. It knows no server and keeps nothing from one script to the
 * next. A script that changed a library table would break that, and Redis refuses to do so. A script is compiled once.
 */
#ifndef SIM_INTERPRETER_H
#define SIM_INTERPRETER_H

#include "proto/span.h"
#include <lua.h>

/* Opens the state, if it is not open, with the globals that `define` sets. */
lua_State *interpreter_open(void (*define)(lua_State *lua));

/* Returns the number of the script; negative: it does not compile, and the reason is on the stack. */
int interpreter_compile(struct span text) __attribute__((warn_unused_result));
int interpreter_find(struct span sha); /* negative: unknown */
const char *interpreter_sha(int script);

/* Pushes the environment, in which the caller sets KEYS and ARGV raw. */
void interpreter_environment(void);
/* Runs the script and pushes its value. Not 0: it failed, and the table of its error (err, source, line) is pushed. */
int interpreter_call(int script) __attribute__((warn_unused_result));
/* To be called when the reply is written: drops what the script left. */
void interpreter_clear(void);

#endif
