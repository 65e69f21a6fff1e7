/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * YAML as a configuration needs it: one document of mappings, lists and scalars, each with its place. What YAML has beyond that
 * (anchors, aliases, tags, merges, values over several lines, deep nesting) is reported here, once, where it stands. Internal to conf.
 */
#ifndef CONF_YAML_H
#define CONF_YAML_H

#include "conf/report.h"

#include <yaml.h>

#define YAML_DEPTH_MAX 16

struct yaml {
	yaml_parser_t parser;
	yaml_event_t event; /* the one at hand */
	struct conf_report *report;
	const struct conf_source *source;
	size_t skipped; /* characters of the first line before the text that is parsed */
	bool flawed;    /* the text ends before its flaw, which was reported: how it ends says nothing */
	bool over;      /* no further event: the end, or a mistake after which none can be trusted */
};

/* Parses source->text[from..to). */
void yaml_open(struct yaml *y, struct conf_report *report, const struct conf_source *source, size_t from, size_t to);
void yaml_close(struct yaml *y);

/* Moves to the next event; its type, or YAML_NO_EVENT when it is over. */
yaml_event_type_t yaml_next(struct yaml *y);
/* Where the event at hand begins. */
struct source_place yaml_place(const struct yaml *y);
/* The scalar at hand is empty, ~ or null. */
bool yaml_is_null(const struct yaml *y);
/* The scalar at hand goes on in a further line, which was reported. */
bool yaml_is_continued(const struct yaml *y);
/* "a list", "a mapping", "a value", "an alias": the event at hand, for messages. */
const char *yaml_kind(const struct yaml *y);
/* The event at hand begins a node: goes to its last event. */
void yaml_skip(struct yaml *y);

#endif
