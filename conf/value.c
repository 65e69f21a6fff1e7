/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads values, one small reader per type. A refused value never changes its field.
 */
#include "conf/value.h"

#include "conf/number.h"
#include "conf/rules.h"
#include "conf/source.h"
#include "conf/words.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(enum conf_store) == sizeof(int) && sizeof(enum conf_guard) == sizeof(int) && sizeof(enum conf_unix_mode) == sizeof(int) &&
		       sizeof(enum conf_home_lost) == sizeof(int),
	       "a CHOICE is as wide as int");

static void *field_of(struct conf *c, const struct setting *s)
{
	return (char *)c + s->offset;
}

static int bool_parse(const char *text, bool *ret_on)
{
	int word = alternative_find("no|yes|false|true|off|on", text);

	if (word < 0)
		return VALUE_BAD;
	*ret_on = word & 1;
	return 0;
}

/* Whether the text is "no", for a field that accepts "no" besides its values. */
static bool says_no(const char *text)
{
	bool on = false;

	return !bool_parse(text, &on) && !on;
}

static int choice_parse(const struct setting *s, const char *text, int *ret_choice, char why[WHY_MAX])
{
	int choice = alternative_find(s->words, text);
	char one[SHOW_MAX], show[SHOW_MAX], range[WHY_MAX], hint[HINT_MAX] = "";
	unsigned d;

	if (choice < 0) {
		for (unsigned i = 0; !*hint && alternative_get(s->words, i, one, sizeof(one)); i++)
			if (word_near(text, one, &d))
				snprintf(hint, sizeof(hint), " (did you mean '%.64s'?)", one);
		setting_range(s, range, sizeof(range));
		return value_refuse(why, "%s is %.100s, not '%s'%s", s->path, range, text_show(text, show), hint);
	}
	memcpy(ret_choice, &choice, sizeof(choice));
	return 0;
}

static int number_refuse(const struct setting *s, enum number_outcome outcome, const char *text, char why[WHY_MAX])
{
	char show[SHOW_MAX];

	text_show(text, show);
	switch (outcome) {
	case NUMBER_OK:
		return value_refuse(why, "%s: %s is out of range, %s to %s", s->path, show, s->low, s->high);
	case NUMBER_UNIT_MISSING:
		return value_refuse(why, "a duration needs a unit (did you mean %s%s?)", show,
				    s->given + strcspn(s->given, "umsh"));
	case NUMBER_NEGATIVE:
		return value_refuse(why, "%s: %s is negative; the range is %s to %s", s->path, show, s->low, s->high);
	case NUMBER_LARGE:
		return value_refuse(why, "%s: %s is far too large; the range is %s to %s", s->path, show, s->low, s->high);
	case NUMBER_MALFORMED:
		break;
	}
	if (s->type == TYPE_DURATION)
		return value_refuse(why, "'%s' is no duration; it is a number and us, ms, s, m or h, as in %s", show, s->given);
	if (s->type == TYPE_SIZE)
		return value_refuse(why, "'%s' is no size; it is a whole number of bytes, or of k, m or g, as in %s", show,
				    s->given);
	return value_refuse(why, "'%s' is no whole number", show);
}

static enum number_outcome number_read(enum setting_type type, const char *text, uint64_t *ret_number)
{
	int64_t us;
	enum number_outcome outcome;

	if (type == TYPE_COUNT)
		return number_count(text, ret_number);
	if (type == TYPE_SIZE)
		return number_size(text, ret_number);
	outcome = number_duration(text, &us);
	if (!outcome)
		*ret_number = (uint64_t)us;
	return outcome;
}

/* Counts, sizes and durations: all have 64 bits, and none is negative. */
static int number_parse(const struct setting *s, const char *text, void *ret_field, char why[WHY_MAX])
{
	uint64_t number = 0, low = 0, high = 0;
	enum number_outcome outcome = number_read(s->type, text, &number);

	if (outcome || number_read(s->type, s->low, &low) || number_read(s->type, s->high, &high) || number < low ||
	    number > high)
		return number_refuse(s, outcome, text, why);
	memcpy(ret_field, &number, sizeof(number));
	return 0;
}

static void text_replace(char **field, const char *text)
{
	free(*field);
	*field = conf_strdup(text);
}

static int text_parse(const struct setting *s, const char *text, char **ret_field, char why[WHY_MAX])
{
	size_t n = strlen(text);
	uint64_t low, high;

	if (number_count(s->low, &low) || number_count(s->high, &high) || n < low || n > high)
		return value_refuse(why, "%s has %zu bytes; it may have %s to %s", s->path, n, s->low, s->high);
	if (s->type == TYPE_FOLDER && *text != '/')
		return value_refuse(why, "%s is an absolute path: it begins with '/'", s->path);
	text_replace(ret_field, text);
	return 0;
}

static int socket_parse(const struct setting *s, const char *text, char **ret_field, char why[WHY_MAX])
{
	char show[SHOW_MAX];

	if (says_no(text)) {
		text_replace(ret_field, "");
		return 0;
	}
	if (!strncmp(text, "unix:", 5))
		text += 5;
	if (!strchr(text, '/'))
		return value_refuse(why, "'%s' is no path; the path of a socket begins with '/', and no switches it off",
				    text_show(text, show));
	return text_parse(s, text, ret_field, why);
}

static int listen_parse(struct conf *c, const struct setting *s, const char *text, char why[WHY_MAX])
{
	char *host = NULL;
	uint16_t port = 0;

	if (!says_no(text) && listener_parse(text, says_no(s->given) ? "127.0.0.1:7422" : s->given, &host, &port, why))
		return VALUE_BAD;
	free(*(char **)field_of(c, s));
	*(char **)field_of(c, s) = host;
	*(s->key == KEY_LISTEN_TLS ? &c->listen.tls_port : &c->listen.tcp_port) = port;
	return 0;
}

static int web_parse(const char *text, struct conf_address *ret_field, char why[WHY_MAX])
{
	struct conf_address a = {0};

	if (!says_no(text) && web_address_parse(text, &a, why))
		return VALUE_BAD;
	address_release(ret_field);
	*ret_field = a;
	return 0;
}

/* Blanks separate names here, whatever separated them in the file. */
static int hosts_parse(const struct setting *s, const char *text, char **ret_field, char why[WHY_MAX])
{
	char *copy = conf_strdup(text), *rest, show[SHOW_MAX];
	uint64_t n = 0, high;
	int r = 0;

	for (const char *name = strtok_r(copy, " ", &rest); name && !r; name = strtok_r(NULL, " ", &rest), n++)
		if (!host_is_name(name))
			r = value_refuse(why, "'%s' is no host name; it has no port and no blank, as in %s", text_show(name, show), s->example);
	free(copy);
	if (!r && (!n || number_count(s->high, &high) || n > high))
		r = value_refuse(why, "%s has %s to %s host names", s->path, s->low, s->high);
	if (!r)
		text_replace(ret_field, text);
	return r;
}

static int typed_parse(struct conf *c, const struct setting *s, const char *text, char why[WHY_MAX])
{
	char show[SHOW_MAX];

	switch (s->type) {
	case TYPE_BOOL:
		if (!bool_parse(text, field_of(c, s)))
			return 0;
		return value_refuse(why, "%s is yes or no, not '%s'", s->path, text_show(text, show));
	case TYPE_CHOICE:
		return choice_parse(s, text, field_of(c, s), why);
	case TYPE_COUNT:
	case TYPE_SIZE:
	case TYPE_DURATION:
		return number_parse(s, text, field_of(c, s), why);
	case TYPE_TEXT:
	case TYPE_FILENAME:
	case TYPE_FOLDER:
		return text_parse(s, text, field_of(c, s), why);
	case TYPE_SOCKET:
		return socket_parse(s, text, field_of(c, s), why);
	case TYPE_LISTENER:
		return listen_parse(c, s, text, why);
	case TYPE_WEB:
		return web_parse(text, field_of(c, s), why);
	case TYPE_HOSTS:
		return hosts_parse(s, text, field_of(c, s), why);
	case TYPE_NODES:
	case TYPE_RULES:
	case TYPE_GROUPS:
		break; /* never a scalar */
	}
	return VALUE_BAD;
}

int value_parse(struct conf *c, const struct setting *s, const char *text, size_t n, bool *ret_written, char why[WHY_MAX])
{
	int r;

	/* An escape such as "\0" or "\n" may produce characters that the file itself may not contain. */
	if (!text_printable(text, n))
		return value_refuse(why, "%s holds a control character", s->path);
	r = typed_parse(c, s, text, why);
	if (!r)
		*ret_written = s->type == TYPE_COUNT || s->type == TYPE_SIZE || s->type == TYPE_DURATION;
	return r;
}

bool value_is_bare(const struct setting *s, const char *text, size_t n)
{
	bool colon = n > 0 && (text[n - 1] == ':' || memmem(text, n, ": ", 2));

	return setting_is_text(s) && colon && !strchr(" \t\"'[]{}&*!|>%@`#,?-", *text);
}

void value_set_nodes(struct conf *c, struct conf_address *node, size_t count)
{
	for (size_t i = 0; i < c->redis.nodes; i++)
		address_release(&c->redis.node[i]);
	if (count)
		memcpy(c->redis.node, node, count * sizeof(*node));
	c->redis.nodes = count;
}

void value_release(struct conf *c, const struct setting *s)
{
	char **text = field_of(c, s);

	switch (s->type) {
	case TYPE_TEXT:
	case TYPE_FILENAME:
	case TYPE_FOLDER:
	case TYPE_SOCKET:
	case TYPE_LISTENER:
	case TYPE_HOSTS:
	case TYPE_GROUPS:
		free(*text);
		*text = NULL;
		break;
	case TYPE_WEB:
		address_release(field_of(c, s));
		break;
	case TYPE_NODES:
		value_set_nodes(c, NULL, 0);
		break;
	case TYPE_RULES:
		rules_free(c->rules);
		c->rules = NULL;
		break;
	default:
		break;
	}
}
