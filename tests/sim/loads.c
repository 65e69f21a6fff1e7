/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads the embedded scripts with which it is linked, and runs none of them. compile.sh builds it with each planted mistake in a script. */
#include "daemon/redis/script.h"

#include <lauxlib.h>
#include <stdio.h>

int main(void)
{
	lua_State *lua = luaL_newstate();
	int failed = 0;

	for (unsigned i = 0; lua && i < SCRIPT_N; i++) {
		if (luaL_loadbuffer(lua, script_text[i].p, script_text[i].n, "=script") == 0)
			continue;
		fprintf(stderr, "%s\n", lua_tostring(lua, -1));
		failed = 1;
	}
	return lua ? failed : 1;
}
