/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of commands, and which of them the server refuses. The model must never read a clock: time comes with each command. */
#include "tests/sim/redis/model.h"
#include "tests/sim/redis/load8.h"
#include "tests/sim/redis/model_command.h"

#include <stdlib.h>

static const struct model_command commands[] = {
#define COMMAND(name, arity, flags) {#name, arity, flags, model_run_##name},
#define DIRECT(name, arity)         {#name, arity, COMMAND_DIRECT, NULL},
#include "tests/sim/redis/command.def"
#undef COMMAND
#undef DIRECT
};

void model_init(struct model *m)
{
	*m = (struct model){.role = "master"};
	data_init(&m->data);
}

void model_release(struct model *m)
{
	data_release(&m->data);
	free(m->error);
}

#define COMMANDS (sizeof(commands) / sizeof(*commands))

#define BLANKS UINT64_C(0x2020202020202020)
#define PLACES 256

/* A name of at most 16 bytes as two words, in lower case and padded with blanks. Names of letters are equal when their words and lengths are. */
struct folded {
	uint64_t word[2];
};

static struct folded name_fold(struct span name)
{
	uint64_t rest = name.n > 8 ? load8(name.p + 8, name.n - 8) : 0;

	return (struct folded){{load8(name.p, name.n) | BLANKS, rest | BLANKS}};
}

static size_t place_of(const struct folded *f)
{
	return (f->word[0] ^ f->word[1] * 3) * UINT64_C(0x9e3779b97f4a7c15) >> 56;
}

/* A hash table: a name is at its place or, when that is taken, at the next free one. */
static struct place {
	struct folded name;
	size_t n; /* its length */
	const struct model_command *command; /* NULL: free */
} places[PLACES];

static void places_fill(void)
{
	size_t i, at;

	for (i = 0; i < COMMANDS; i++) {
		struct folded name = name_fold(span_of(commands[i].name));

		for (at = place_of(&name); places[at].command;)
			at = (at + 1) % PLACES;
		places[at] = (struct place){name, strlen(commands[i].name), &commands[i]};
	}
}

const struct model_command *model_command(struct span name)
{
	static bool filled;
	struct folded f;
	size_t at;

	if (!filled)
		places_fill();
	filled = true;
	if (name.n == 0 || name.n > sizeof(f))
		return NULL;
	f = name_fold(name);
	for (at = place_of(&f); places[at].command; at = (at + 1) % PLACES)
		if (f.word[0] == places[at].name.word[0] && f.word[1] == places[at].name.word[1] && name.n == places[at].n)
			return places[at].command;
	return NULL;
}

bool model_arity_fits(const struct model_command *command, size_t n)
{
	return command->arity < 0 ? n >= (size_t)-command->arity : n == (size_t)command->arity;
}

static bool error_is(const char *error, const char *code)
{
	return strncmp(error, code, strlen(code)) == 0;
}

/*
 * Most errors refuse every command. Those of disk and role refuse writes. OOM refuses what needs memory, until the running script has written for the first
 * time: Redis prefers to let a script finish.
 */
const char *model_refusal(const struct model *m, const struct model_command *command)
{
	static const char *const of_writes[] = {"READONLY ", "MISCONF ", "NOREPLICAS "};
	size_t i;

	if (model_is_replica(m) && !m->error && (command->flags & COMMAND_WRITE))
		return "READONLY You can't write against a read only replica.";
	if (!m->error)
		return NULL;
	if (error_is(m->error, "OOM "))
		return (command->flags & COMMAND_GROWS) && !m->dirty ? m->error : NULL;
	for (i = 0; i < sizeof(of_writes) / sizeof(*of_writes); i++)
		if (error_is(m->error, of_writes[i]))
			return (command->flags & COMMAND_WRITE) ? m->error : NULL;
	return m->error;
}

void model_run(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	const struct model_command *command = model_command(word[0]);
	const char *refusal;

	if (!command)
		return wire_error(out, "ERR unknown command '%.*s'", (int)word[0].n, word[0].p);
	if (!model_arity_fits(command, n))
		return wire_error(out, "ERR wrong number of arguments for '%s' command", command->name);
	refusal = model_refusal(m, command);
	if (refusal)
		return wire_line(out, '-', span_of(refusal));
	command->run(m, word, n, out);
}

bool model_look(struct model *m, struct span key, enum datum_type type, struct buf *out, struct datum **ret_datum)
{
	struct datum *datum = data_find(&m->data, key, model_now_ms(m));

	if (datum && datum->type != type) {
		wire_error(out, "WRONGTYPE Operation against a key holding the wrong kind of value");
		return false;
	}
	*ret_datum = datum;
	return true;
}

bool model_integer(struct span word, struct buf *out, int64_t *ret_n)
{
	if (wire_integer(word, ret_n))
		return true;
	wire_error(out, "ERR value is not an integer or out of range");
	return false;
}

void model_syntax_error(struct buf *out)
{
	wire_error(out, "ERR syntax error");
}

void model_tidy(struct model *m, struct datum *datum)
{
	if (datum && datum->items.count == 0)
		data_remove(&m->data, datum);
}

void model_remove_items(struct model *m, enum datum_type type, const struct span *word, size_t n, struct buf *out)
{
	struct datum *datum;
	int64_t gone = 0;
	size_t i, k;

	if (!model_look(m, word[1], type, out, &datum))
		return;
	for (i = 2; datum && i < n; i++) {
		k = items_find(&datum->items, word[i]);
		if (k == datum->items.count)
			continue;
		items_remove(&datum->items, k, 1);
		gone++;
	}
	model_tidy(m, datum);
	wire_number(out, gone);
}
