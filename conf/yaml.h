/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * YAML as a configuration needs it: one document of mappings, lists and scalars, each with its place. Other features of YAML
 * (anchors, aliases, tags, merges, values over several lines, deep nesting) are reported here, once, with their place. Internal to conf.
 */
#ifndef CONF_YAML_H
#define CONF_YAML_H

#include "conf/report.h"

#include <yaml.h>

#define YAML_DEPTH_MAX 16

struct yaml {
	yaml_parser_t parser;
	yaml_event_t event; /* the present event */
	struct conf_report *report;
	const struct conf_source *source;
	size_t skipped; /* characters of the first line before the text that is parsed */
	bool flawed;    /* the text was cut at a flaw that was reported, so errors at its end are ignored */
	bool over;      /* no further event: the end, or a syntax error */
};

/* Parses source->text[from..to). */
void yaml_open(struct yaml *y, struct conf_report *report, const struct conf_source *source, size_t from, size_t to);
void yaml_close(struct yaml *y);

/* Moves to the next event; returns its type, YAML_NO_EVENT if there is none. */
yaml_event_type_t yaml_next(struct yaml *y);
/* Where the present event begins. */
struct source_place yaml_place(const struct yaml *y);
/* Whether the present scalar is empty, ~ or null. */
bool yaml_is_null(const struct yaml *y);
/* Whether the present scalar has several lines, which yaml_next has reported. */
bool yaml_is_continued(const struct yaml *y);
/* "a list", "a mapping", "a value", "an alias": the present event, for messages. */
const char *yaml_kind(const struct yaml *y);
/* The present event begins a node: moves to the last event of that node. */
void yaml_skip(struct yaml *y);
/* Reports what is wrong with the present scalar; outcome: VALUE_BAD or VALUE_SECRET (address.h). */
void list_complain(struct yaml *y, int outcome, const char *why);

#endif
