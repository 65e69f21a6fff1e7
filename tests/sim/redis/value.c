/* SPDX-License-Identifier: BSD-2-Clause */
/* Redis' rules for how Lua sees a reply and how a client sees a Lua value; RESP2 on both sides. */
#include "tests/sim/redis/value.h"
#include "tests/sim/redis/texts.h"

#include <lauxlib.h>

/* --- replies become Lua values --------------------------------------------------------------------------------------- */

static const char *array_push(lua_State *lua, const char *p, int64_t n)
{
	int64_t i;

	luaL_checkstack(lua, 4, "a reply too deep");
	lua_createtable(lua, (int)n, 0);
	for (i = 1; i <= n; i++) {
		p = value_push(lua, p);
		lua_rawseti(lua, -2, (int)i);
	}
	return p;
}

void value_push_field(lua_State *lua, const char *field, struct span text)
{
	lua_createtable(lua, 0, 1);
	lua_pushlstring(lua, text.p, text.n);
	lua_setfield(lua, -2, field);
}

/* Reads the number of a well-formed head. Returns the end of its line. */
static const char *number_read(const char *p, int64_t *ret_n)
{
	bool negative = *p == '-';
	uint64_t n = 0;

	for (p += negative; *p != '\r'; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	*ret_n = (int64_t)(negative ? -n : n);
	return p;
}

static const char *line_push(lua_State *lua, const char *p)
{
	const char *end = strchr(p, '\r');

	value_push_field(lua, *p == '+' ? "ok" : "err", (struct span){p + 1, (size_t)(end - p) - 1});
	return end + 2;
}

const char *value_push(lua_State *lua, const char *p)
{
	const char *end;
	int64_t n;

	if (*p == '+' || *p == '-')
		return line_push(lua, p);
	end = number_read(p + 1, &n);
	if (*p == ':')
		lua_pushnumber(lua, (lua_Number)n);
	else if (n < 0)
		lua_pushboolean(lua, 0);
	else if (*p == '*')
		return array_push(lua, end + 2, n);
	else
		texts_push(lua, (struct span){end + 2, (size_t)n});
	return *p == '$' && n >= 0 ? end + 2 + n + 2 : end + 2;
}

/* --- Lua values become replies --------------------------------------------------------------------------------------- */

/* C's conversion, with the result of common machines where the standard leaves it undefined. */
static int64_t number_cut(lua_Number n)
{
	return n >= -0x1p63 && n < 0x1p63 ? (int64_t)n : INT64_MIN;
}

struct span value_text(lua_State *lua, int index)
{
	size_t n;
	const char *p = lua_tolstring(lua, index, &n);

	return (struct span){p, n};
}

/* Does the table on top have a text in that field? Then it is pushed. */
static bool has_field(lua_State *lua, enum text_word field)
{
	texts_push_word(lua, field);
	lua_rawget(lua, -2);
	if (lua_type(lua, -1) == LUA_TSTRING)
		return true;
	lua_pop(lua, 1);
	return false;
}

/* Writes an array of n. Returns how many values come before the first nil. */
static int rows_try(lua_State *lua, int n, struct buf *out)
{
	int i;

	wire_array(out, (size_t)n);
	for (i = 0; i < n; i++) {
		lua_rawgeti(lua, -1, i + 1);
		if (lua_isnil(lua, -1)) {
			lua_pop(lua, 1);
			break;
		}
		value_write(lua, out);
	}
	return i;
}

/* Writes the table on top up to its first nil. Its length may be beyond that, when it has holes: then it is written again. */
static void rows_write(lua_State *lua, struct buf *out)
{
	size_t begun = buf_length(out);
	int n = (int)lua_objlen(lua, -1), there;

	for (; (there = rows_try(lua, n, out)) < n; n = there)
		wire_cut(out, begun);
}

static void table_write(lua_State *lua, struct buf *out)
{
	if (has_field(lua, TEXT_ERR) || has_field(lua, TEXT_OK)) {
		lua_pushstring(lua, "err");
		lua_rawget(lua, -3);
		wire_line(out, lua_isnil(lua, -1) ? '+' : '-', value_text(lua, -2));
		lua_pop(lua, 2);
		return;
	}
	rows_write(lua, out);
}

void value_write(lua_State *lua, struct buf *out)
{
	switch (lua_type(lua, -1)) {
	case LUA_TSTRING:
		wire_bulk(out, value_text(lua, -1));
		break;
	case LUA_TBOOLEAN:
		if (lua_toboolean(lua, -1))
			wire_number(out, 1);
		else
			wire_nil(out);
		break;
	case LUA_TNUMBER:
		wire_number(out, number_cut(lua_tonumber(lua, -1)));
		break;
	case LUA_TTABLE:
		if (lua_checkstack(lua, 4))
			table_write(lua, out);
		else
			wire_error(out, "ERR reached lua stack limit");
		break;
	default:
		wire_nil(out);
	}
	lua_pop(lua, 1);
}

/* --- errors ---------------------------------------------------------------------------------------------------------- */

void value_push_error(lua_State *lua, struct span text)
{
	bool coded = text.n && text.p[0] == '-';
	struct span message = coded ? (struct span){text.p + 1, text.n - 1} : text;

	while (message.n && (message.p[message.n - 1] == '\r' || message.p[message.n - 1] == '\n'))
		message.n--;
	if (coded && memchr(message.p, ' ', message.n)) {
		value_push_field(lua, "err", message);
		return;
	}
	lua_createtable(lua, 0, 1);
	lua_pushliteral(lua, "ERR ");
	lua_pushlstring(lua, message.p, message.n);
	lua_concat(lua, 2);
	lua_setfield(lua, -2, "err");
}
