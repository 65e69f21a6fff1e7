/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Linked only into the simulator of `make sim-coverage`: each process writes down which lines it ran, those of the scripts as well. The linker puts the
 * functions that begin with __wrap in the place of the originals. A script is identified by its length.
 */
#include <fcntl.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNKS_MAX 8
#define LINES_MAX  2048

static struct {
	char name[LUA_IDSIZE];
	unsigned char ran[LINES_MAX];
} chunk[CHUNKS_MAX];

int __llvm_profile_write_file(void);
lua_State *__real_lua_newstate(lua_Alloc alloc, void *context);
lua_State *__wrap_lua_newstate(lua_Alloc alloc, void *context);
int __real_luaL_loadbuffer(lua_State *lua, const char *p, size_t n, const char *name);
int __wrap_luaL_loadbuffer(lua_State *lua, const char *p, size_t n, const char *name);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));

static void line_ran(lua_State *lua, lua_Debug *at)
{
	unsigned i = 0;

	if (!lua_getinfo(lua, "Sl", at) || at->currentline < 0 || at->currentline >= LINES_MAX)
		return;
	while (i < CHUNKS_MAX && chunk[i].name[0] && strcmp(chunk[i].name, at->short_src) != 0)
		i++;
	if (i == CHUNKS_MAX)
		return;
	if (!chunk[i].name[0])
		memcpy(chunk[i].name, at->short_src, sizeof(chunk[i].name));
	chunk[i].ran[at->currentline] = 1;
}

lua_State *__wrap_lua_newstate(lua_Alloc alloc, void *context)
{
	lua_State *lua = __real_lua_newstate(alloc, context);

	if (!lua)
		return NULL;
	lua_sethook(lua, line_ran, LUA_MASKLINE, 0);
	return lua;
}

int __wrap_luaL_loadbuffer(lua_State *lua, const char *p, size_t n, const char *name)
{
	char own[LUA_IDSIZE];

	(void)name;
	snprintf(own, sizeof(own), "@%zu", n);
	return __real_luaL_loadbuffer(lua, p, n, own);
}

/* Appends "line chunk number", one a line, to what other processes wrote. */
static void script_leave(const char *path)
{
	static char text[CHUNKS_MAX * LINES_MAX * 16];
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	size_t n = 0;

	for (unsigned i = 0; i < CHUNKS_MAX; i++)
		for (unsigned line = 0; line < LINES_MAX; line++)
			if (chunk[i].ran[line] && n + LUA_IDSIZE + 16 < sizeof(text))
				n += (size_t)snprintf(text + n, sizeof(text) - n, "line %s %u\n", chunk[i].name, line);
	if (fd >= 0 && write(fd, text, n) != (ssize_t)n)
		fprintf(stderr, "%s: not all could be written\n", path);
	if (fd >= 0)
		close(fd);
}

void __wrap__exit(int status)
{
	const char *path = getenv("SIM_SCRIPT_COVER");

	if (path)
		script_leave(path);
	if (__llvm_profile_write_file() != 0)
		fprintf(stderr, "the counts of a process could not be written\n");
	__real__exit(status);
}
