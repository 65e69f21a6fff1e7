/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * redis.call and the other functions of `redis`, on the model of the server whose script runs, and the reply of a script. No function here may have a result
 * that depends on anything but its arguments and the model.
 */
#include "tests/sim/redis/binding.h"
#include "daemon/base/mem.h"
#include "tests/sim/redis/interpreter.h"
#include "tests/sim/redis/texts.h"
#include "tests/sim/redis/value.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>

struct binding {
	struct model *model;
	lua_State *lua;
	bool *cached; /* by number of the script */
	int cap;
	struct buf reply;            /* reply of the command under way */
	struct span *word;           /* words of the command under way */
	char (*number)[DECIMAL_MAX]; /* texts of the words that were numbers */
	size_t words;
};

/* The binding whose script runs. */
static struct binding *running;

/* --- redis.* --------------------------------------------------------------------------------------------------------- */

/* Pushes an error and returns true. */
static bool refuse(lua_State *lua, struct span text)
{
	value_push_error(lua, text);
	return true;
}

static bool words_take(struct binding *b, int n)
{
	lua_State *lua = b->lua;
	int i, type;

	if ((size_t)n > b->words) {
		b->words = (size_t)n;
		b->word = mem_grow(b->word, b->words, sizeof(*b->word));
		b->number = mem_grow(b->number, b->words, sizeof(*b->number));
	}
	for (i = 0; i < n; i++) {
		type = lua_type(lua, i + 1);
		if (type == LUA_TSTRING)
			b->word[i] = value_text(lua, i + 1);
		else if (type == LUA_TNUMBER)
			b->word[i] = (struct span){b->number[i], wire_decimal(lua_tonumber(lua, i + 1), b->number[i])};
		else
			return false;
	}
	return true;
}

/* Runs the command and pushes its reply. True: it is an error, as a table. */
static bool command_push(struct binding *b, int n)
{
	const struct model_command *command = model_command(b->word[0]);
	const char *refusal;

	if (!command)
		return refuse(b->lua, SPAN("Unknown Redis command called from script"));
	if (!model_arity_fits(command, (size_t)n))
		return refuse(b->lua, SPAN("Wrong number of args calling Redis command from script"));
	if (command->flags & COMMAND_DIRECT)
		return refuse(b->lua, SPAN("This Redis command is not allowed from script"));
	refusal = model_refusal(b->model, command);
	if (refusal) {
		value_push_field(b->lua, "err", span_of(refusal));
		return true;
	}
	b->model->dirty |= (command->flags & COMMAND_WRITE) != 0;
	buf_clear(&b->reply);
	command->run(b->model, b->word, (size_t)n, &b->reply);
	buf_append(&b->reply, "", 1);
	value_push(b->lua, buf_begin(&b->reply));
	return *buf_begin(&b->reply) == '-';
}

static int redis_command_run(lua_State *lua, bool raises)
{
	struct binding *b = running;
	int n = lua_gettop(lua);
	bool failed;

	if (n == 0)
		failed = refuse(lua, SPAN("Please specify at least one argument for this redis lib call"));
	else if (!words_take(b, n))
		failed = refuse(lua, SPAN("Lua redis lib command arguments must be strings or integers"));
	else
		failed = command_push(b, n);
	return raises && failed ? lua_error(lua) : 1;
}

static int redis_call(lua_State *lua)
{
	return redis_command_run(lua, true);
}

static int redis_pcall(lua_State *lua)
{
	return redis_command_run(lua, false);
}

static bool one_text(lua_State *lua)
{
	return lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING;
}

static int redis_error_reply(lua_State *lua)
{
	if (!one_text(lua)) {
		value_push_error(lua, SPAN("wrong number or type of arguments"));
		return 1;
	}
	if (*lua_tostring(lua, 1) != '-') {
		lua_pushliteral(lua, "-");
		lua_insert(lua, 1);
		lua_concat(lua, 2);
	}
	value_push_error(lua, value_text(lua, 1));
	return 1;
}

static int redis_status_reply(lua_State *lua)
{
	if (one_text(lua))
		value_push_field(lua, "ok", value_text(lua, 1));
	else
		value_push_error(lua, SPAN("wrong number or type of arguments"));
	return 1;
}

static int redis_sha1hex(lua_State *lua)
{
	char sha[SHA1_HEX + 1];

	if (lua_gettop(lua) != 1) {
		value_push_error(lua, SPAN("wrong number of arguments"));
		return lua_error(lua);
	}
	sha1_hex(lua_tostring(lua, 1) ? value_text(lua, 1) : SPAN(""), sha);
	lua_pushstring(lua, sha);
	return 1;
}

/* --- running --------------------------------------------------------------------------------------------------------- */

/* Appends the error on top of the stack, which the handler made. */
static void failure_write(struct binding *b, int script, struct buf *out)
{
	lua_State *lua = b->lua;
	struct buf line;

	buf_init(&line);
	lua_getfield(lua, -1, "err");
	lua_getfield(lua, -2, "source");
	lua_getfield(lua, -3, "line");
	buf_printf(&line, "%s", lua_isstring(lua, -3) ? lua_tostring(lua, -3) : "ERR unknown error");
	if (lua_isstring(lua, -1) && lua_isstring(lua, -2))
		buf_printf(&line, " script: %s, on %s:%s.", interpreter_sha(script), lua_tostring(lua, -2), lua_tostring(lua, -1));
	wire_line(out, '-', (struct span){buf_begin(&line), buf_length(&line)});
	buf_release(&line);
	lua_pop(lua, 4);
}

static void list_set(struct binding *b, enum text_word name, const struct span *item, size_t n)
{
	size_t i;

	texts_push_word(b->lua, name);
	lua_createtable(b->lua, (int)n, 0);
	for (i = 0; i < n; i++) {
		texts_push(b->lua, item[i]);
		lua_rawseti(b->lua, -2, (int)i + 1);
	}
	lua_rawset(b->lua, -3);
}

void binding_run(struct binding *b, int script, const struct span *key, size_t keys, const struct span *arg, size_t args,
		 struct buf *out)
{
	lua_State *lua = b->lua;

	running = b;
	interpreter_environment();
	list_set(b, TEXT_KEYS, key, keys);
	list_set(b, TEXT_ARGV, arg, args);
	lua_pop(lua, 1);
	if (interpreter_call(script))
		failure_write(b, script, out);
	else
		value_write(lua, out);
	interpreter_clear();
	running = NULL;
}

/* --- scripts --------------------------------------------------------------------------------------------------------- */

int binding_compile(struct binding *b, struct span text, struct buf *out)
{
	int script = interpreter_compile(text);

	if (script >= 0)
		return script;
	wire_error(out, "ERR Error compiling script (new function): %s", lua_tostring(b->lua, -1));
	lua_pop(b->lua, 1);
	return -1;
}

int binding_find(const struct binding *b, struct span sha)
{
	(void)b;
	return interpreter_find(sha);
}

const char *binding_sha(const struct binding *b, int script)
{
	(void)b;
	return interpreter_sha(script);
}

bool binding_cached(const struct binding *b, int script)
{
	return script < b->cap && b->cached[script];
}

void binding_cache(struct binding *b, int script)
{
	for (; script >= b->cap; b->cached[b->cap++] = false)
		b->cached = mem_grow(b->cached, (size_t)b->cap + 1, sizeof(*b->cached));
	b->cached[script] = true;
}

void binding_flush(struct binding *b)
{
	b->cap = 0;
}

/* --- for each server -------------------------------------------------------------------------------------------------- */

static void redis_define(lua_State *lua)
{
	static const luaL_Reg functions[] = {
		{"call", redis_call},
		{"pcall", redis_pcall},
		{"error_reply", redis_error_reply},
		{"status_reply", redis_status_reply},
		{"sha1hex", redis_sha1hex},
	};
	size_t i;

	lua_newtable(lua);
	for (i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		lua_pushcfunction(lua, functions[i].func);
		lua_setfield(lua, -2, functions[i].name);
	}
	lua_setglobal(lua, "redis");
}

struct binding *binding_new(struct model *model)
{
	struct binding *b = mem_alloc(sizeof(*b));

	b->model = model;
	b->lua = interpreter_open(redis_define);
	buf_init(&b->reply);
	return b;
}

void binding_free(struct binding *b)
{
	if (!b)
		return;
	free(b->cached);
	free(b->word);
	free(b->number);
	buf_release(&b->reply);
	free(b);
}
