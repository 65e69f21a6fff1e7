/* SPDX-License-Identifier: BSD-2-Clause */
/* Each text has one place in a table, by a hash of its ends and its length. A place keeps the last text that came there, in the registry of the state. */
#include "tests/sim/redis/texts.h"
#include "tests/sim/redis/load8.h"

#include <lauxlib.h>
#include <stdint.h>

#define PLACES    512
#define TEXT_LONG 128 /* longer ones seldom come again */

/* Where the state has its copy of a text. If the generation is an earlier one, the copy is gone. */
struct text_place {
	const char *p;
	uint32_t n, generation;
};

static struct text_place place[PLACES];
static uint32_t generation;
static int first, word_at[TEXT_WORDS]; /* in the registry: what belongs to the first of these places, and to each word */

void texts_open(lua_State *lua)
{
	static const char *const words[TEXT_WORDS] = {"KEYS", "ARGV", "err", "ok"};

	for (int i = 0; i < TEXT_WORDS; i++) {
		lua_pushstring(lua, words[i]);
		word_at[i] = luaL_ref(lua, LUA_REGISTRYINDEX);
	}
	for (int i = 0; i < PLACES; i++) {
		int at;

		lua_pushboolean(lua, 0);
		at = luaL_ref(lua, LUA_REGISTRYINDEX);
		first = i == 0 ? at : first;
	}
	generation++;
}

void texts_push_word(lua_State *lua, enum text_word word)
{
	lua_rawgeti(lua, LUA_REGISTRYINDEX, word_at[word]);
}

void texts_forget(void)
{
	generation++;
}

static size_t place_of(struct span text)
{
	size_t n = text.n < 8 ? text.n : 8;
	uint64_t head = load8(text.p, n), tail = load8(text.p + text.n - n, n);

	return ((head ^ text.n) * UINT64_C(0x9e3779b97f4a7c15) ^ tail) * UINT64_C(0xbf58476d1ce4e5b9) >> 55;
}

static void text_add(lua_State *lua, struct span text, size_t at)
{
	size_t n;

	lua_pushlstring(lua, text.p, text.n);
	lua_pushvalue(lua, -1);
	lua_rawseti(lua, LUA_REGISTRYINDEX, first + (int)at);
	place[at] = (struct text_place){.p = lua_tolstring(lua, -1, &n), .n = (uint32_t)text.n, .generation = generation};
}

void texts_push(lua_State *lua, struct span text)
{
	size_t at;

	if (text.n > TEXT_LONG) {
		lua_pushlstring(lua, text.p, text.n);
		return;
	}
	at = place_of(text);
	if (place[at].generation == generation && place[at].n == text.n && same8(place[at].p, text.p, text.n))
		lua_rawgeti(lua, LUA_REGISTRYINDEX, first + (int)at);
	else
		text_add(lua, text, at);
}
