/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one Lua state of the process, on which the scripts of all servers run, one after the other. It knows no server and keeps nothing from one script to the
 * next; a script that changed a table of the libraries would break that, and Redis refuses to do so. A script is compiled once.
 */
#ifndef SIM_INTERPRETER_H
#define SIM_INTERPRETER_H

#include "proto/span.h"
#include <lua.h>

/* Opens it when it is not open yet, with the globals that the caller defines. */
lua_State *interpreter_open(void (*define)(lua_State *lua));

/* Its number. Negative: it does not compile, and on top stands why. */
int interpreter_compile(struct span text) __attribute__((warn_unused_result));
int interpreter_find(struct span sha); /* negative: there is none */
const char *interpreter_sha(int script);

/* Pushes the environment, where KEYS and ARGV are set raw. */
void interpreter_environment(void);
/* Runs it and pushes its value, or, if it fails (not 0), the table of its error: err, source, line. */
int interpreter_call(int script) __attribute__((warn_unused_result));
/* The reply is said: what the script has left is over. */
void interpreter_clear(void);

#endif
