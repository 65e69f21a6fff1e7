/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints a value as a file would have it. Reading the output gives the same value.
 */
#include "conf/groups.h"
#include "conf/rules.h"
#include "conf/sentinel.h"
#include "conf/value.h"
#include "conf/source.h"
#include "conf/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const void *field_in(const struct conf *c, const struct setting *s)
{
	return (const char *)c + s->offset;
}

static const char *text_in(const struct conf *c, const struct setting *s)
{
	return *(char *const *)field_in(c, s);
}

static const char *label_in(const struct conf *c, const struct setting *s)
{
	return ((const struct conf_address *)field_in(c, s))->label;
}

static uint16_t port_in(const struct conf *c, const struct setting *s)
{
	return s->key == KEY_LISTEN_TLS ? c->listen.tls_port : c->listen.tcp_port;
}

bool value_is_set(const struct conf *c, const struct setting *s)
{
	switch (s->type) {
	case TYPE_TEXT:
	case TYPE_FILENAME:
	case TYPE_FOLDER:
	case TYPE_SOCKET:
	case TYPE_HOSTS:
	case TYPE_GROUPS:
		return text_in(c, s) != NULL;
	case TYPE_NODES:
		return c->redis.nodes > 0;
	case TYPE_RULES:
		return c->rules != NULL;
	default:
		return true;
	}
}

static bool text_equal(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool nodes_equal(const struct conf *a, const struct conf *b)
{
	if (a->redis.nodes != b->redis.nodes)
		return false;
	for (size_t i = 0; i < a->redis.nodes; i++)
		if (!address_equal(&a->redis.node[i], &b->redis.node[i]) ||
		    strcmp(address_name(&a->redis.node[i]), address_name(&b->redis.node[i])))
			return false;
	return true;
}

bool value_equal(const struct conf *a, const struct conf *b, const struct setting *s)
{
	switch (s->type) {
	case TYPE_BOOL:
		return !memcmp(field_in(a, s), field_in(b, s), sizeof(bool));
	case TYPE_CHOICE:
		return !memcmp(field_in(a, s), field_in(b, s), sizeof(int));
	case TYPE_COUNT:
	case TYPE_SIZE:
	case TYPE_DURATION:
		return !memcmp(field_in(a, s), field_in(b, s), sizeof(uint64_t));
	case TYPE_LISTENER:
		return text_equal(text_in(a, s), text_in(b, s)) && port_in(a, s) == port_in(b, s);
	case TYPE_WEB:
		return text_equal(label_in(a, s), label_in(b, s));
	case TYPE_NODES:
		return nodes_equal(a, b);
	case TYPE_RULES:
		return rules_equal(a->rules, b->rules);
	default:
		return text_equal(text_in(a, s), text_in(b, s));
	}
}

static void choice_print(const struct conf *c, const struct setting *s, FILE *out)
{
	char word[64];
	int choice;

	memcpy(&choice, field_in(c, s), sizeof(choice));
	if (alternative_get(s->words, (unsigned)choice, word, sizeof(word)))
		fputs(word, out);
}

static void listener_print(const struct conf *c, const struct setting *s, FILE *out)
{
	const char *host = text_in(c, s);
	char text[300];

	if (!host) {
		fputs("no", out);
		return;
	}
	snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port_in(c, s));
	value_print_text(text, out);
}

static void node_print(const struct conf_address *a, FILE *out)
{
	char *text;

	if (a->sentinel) {
		sentinel_print(a, out);
	} else if (!a->name) {
		value_print_text(a->label, out);
	} else if (asprintf(&text, "%s=%s", a->name, a->label) >= 0) {
		value_print_text(text, out);
		free(text);
	}
}

static void nodes_print(const struct conf *c, FILE *out)
{
	fputc('[', out);
	for (size_t i = 0; i < c->redis.nodes; i++) {
		fputs(i ? ", " : "", out);
		node_print(&c->redis.node[i], out);
	}
	fputc(']', out);
}

static void hosts_print(const char *text, FILE *out)
{
	char *name, *rest, *copy = conf_strdup(text);

	fputc('[', out);
	for (name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
		fputs(name == copy ? "" : ", ", out);
		value_print_text(name, out);
	}
	fputc(']', out);
	free(copy);
}

static void text_print(const char *text, const struct setting *s, FILE *out)
{
	if (s->type == TYPE_SOCKET && !*text)
		fputs("no", out);
	else
		value_print_text(text, out);
}

/* Prints durations and sizes as they were written: 90s stays 90s. */
static void number_print(const struct conf *c, const struct setting *s, FILE *out)
{
	const char *written = c->origin[s->key].written;

	fputs(written ? written : s->given, out);
}

void value_print(const struct conf *c, const struct setting *s, FILE *out)
{
	if (!value_is_set(c, s)) {
		fprintf(out, "(%s)", s->unset);
		return;
	}
	switch (s->type) {
	case TYPE_BOOL:
		fputs(*(const bool *)field_in(c, s) ? "yes" : "no", out);
		break;
	case TYPE_CHOICE:
		choice_print(c, s, out);
		break;
	case TYPE_COUNT:
	case TYPE_SIZE:
	case TYPE_DURATION:
		number_print(c, s, out);
		break;
	case TYPE_LISTENER:
		listener_print(c, s, out);
		break;
	case TYPE_WEB:
		if (label_in(c, s))
			value_print_text(label_in(c, s), out);
		else
			fputs("no", out);
		break;
	case TYPE_HOSTS:
		hosts_print(text_in(c, s), out);
		break;
	case TYPE_NODES:
		nodes_print(c, out);
		break;
	case TYPE_RULES:
		rules_print(c->rules, out);
		break;
	case TYPE_GROUPS:
		groups_print(c->metrics.groups, out);
		break;
	default:
		text_print(text_in(c, s), s, out);
	}
}
