/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The line protocol, version 1 (redlock-protocol(7)). Requests are parsed in place; replies are written into memory of the caller. Nothing here
 * allocates, reads a clock or does I/O. Thread-safe: no state.
 */
#ifndef PROTO_PROTO_H
#define PROTO_PROTO_H

#include "proto/span.h"
#include <stdint.h>

#define PROTO_VERSION    1
#define PAYLOAD_MAX      32768 /* bytes of the payload of a job */
#define LINE_MAX_DEFAULT (4 * PAYLOAD_MAX + REPLY_MAX) /* bytes of a line with its end: each byte of a payload may be quoted as \xHH */
#define NAME_MAX_BYTES   512
#define OWNER_MAX_BYTES  600 /* the owner of the lock of a job contains both names: see jobs.h */
#define TAG_MAX          32
#define TRACE_BYTES      55 /* bytes of a traceparent: version, trace id, span id and flags */
#define WORDS_MAX        64
#define REPLY_MAX        8192 /* a line of the daemon without a payload is never longer; long text is cut when it is written */
#define COUNT_MAX        (INT64_C(1) << 53)
#define DURATION_MAX     (INT64_C(3650) * 24 * 3600 * 1000000) /* ten years in microseconds */
#define DURATION_LONGEST (DURATION_MAX + 1) /* represents every longer duration, in fields whose limit the daemon checks */
#define WAIT_FOREVER     INT64_MAX

enum verb {
#define COMMAND(id, ...) VERB_##id,
#include "proto/command.def"
#undef COMMAND
	VERB_N
};

enum field {
#define FIELD(id, ...) FIELD_##id,
#include "proto/field.def"
	FIELD_N
};

enum error {
#define ERROR(id, ...) ERROR_##id,
#include "proto/error.def"
#undef ERROR
	ERROR_N
};

/*
 * TEXT: any bytes, in text. DURATION: number = microseconds, 0 or more. WAIT: a duration or WAIT_FOREVER.
 * BOOL: yes|no, number = 1|0. COUNT: 0 .. COUNT_MAX. PRIORITY: 0 .. 9. TRACE: see trace_is_sound. MODE: number = enum mode.
 */
enum value_type {
#define VALUE(id, ...) VALUE_##id,
#include "proto/value.def"
#undef VALUE
	VALUE_N
};
enum mode { MODE_EXCLUSIVE, MODE_SHARED };

/* Whether the text is a traceparent of W3C Trace Context with TRACE_BYTES bytes: version, trace id, span id and flags, in lower-case hex. */
bool trace_is_sound(struct span text);

/* What the parser checks about the words of a request. PLAIN: nothing. NAME: 1 to NAME_MAX_BYTES bytes. TAG: '@' and a tag. */
enum word_kind { WORD_PLAIN, WORD_NAME, WORD_TAG };

struct command {
	const char *word;
	unsigned least, most;
	enum word_kind kind;
	const char *words;
	uint32_t fields, required; /* bits of enum field */
	const char *help;
};

struct field_row {
	const char *word;
	enum value_type type;
	int64_t most; /* see field.def */
	const char *help;
};

struct value_row {
	const char *form, *meaning; /* "dur", "a duration like …" */
};

struct error_row {
	const char *word, *meaning;
};

extern const struct command command_table[VERB_N];
extern const struct field_row field_table[FIELD_N];
extern const struct value_row value_table[VALUE_N];
extern const struct error_row error_table[ERROR_N];
/* Writes "LOCK name [wait=dur] …" for people, from the row; cut at size, no NUL. Returns the length. */
size_t command_usage(enum verb verb, char *out, size_t size);
/*
 * Writes line i of the answer of HELP about a request, or about all of them if verb is VERB_N; cut at size, no NUL. Returns the length; 0 after the
 * last line.
 */
size_t help_line(enum verb verb, unsigned i, char *out, size_t size);
/* Returns the verb, or VERB_N; the field, or FIELD_N. Ignores ASCII case. */
enum verb command_find(struct span word);
enum field field_find(struct span word);
/* The nearest verb or field, see nearest_word. fields: bits of enum field. */
const char *command_nearest(struct span word);
const char *field_nearest(struct span word, uint32_t fields);
/* The nearest word by Damerau-Levenshtein, at most 2 edits and a third of the length away; NULL if none is near. */
const char *nearest_word(struct span word, const char *const *words, size_t count);

/* A parsed request. All spans point into the line that was parsed. */
struct value {
	struct span text;
	int64_t number;
};

struct request {
	struct span tag; /* without '@'; n = 0: none */
	enum verb verb;
	unsigned words;
	struct span word[WORDS_MAX]; /* unquoted; the word of CANCEL keeps its '@' */
	uint32_t given;              /* bits of enum field */
	struct value field[FIELD_N]; /* only the given ones are set */
};

struct parse_error {
	enum error code;
	char text[512]; /* printable ASCII: says what is wrong, and what would be right */
};

enum parse_outcome {
	PARSE_OK = 0,
	PARSE_EMPTY,   /* blank or comment: no answer */
	PARSE_ERROR,   /* answer with ret_parse_error, and with ret_request->tag if it could be read */
	PARSE_HTTP,    /* a request line of HTTP, see foreign.h: answer once and close */
};

/*
 * Parses line[0..n), which has no LF; a CR at the end is dropped. Unquoting overwrites the line. Reports the first mistake, but
 * SYNTAX before all others.
 */
enum parse_outcome request_parse(char *line, size_t n, struct request *ret_request, struct parse_error *ret_parse_error);

/* Whether the line starts with a valid tag. Only untagged requests must be answered in order. */
bool line_is_tagged(const char *line, size_t n);

static inline bool request_has(const struct request *r, enum field f)
{
	return (r->given >> f) & 1;
}

/* Parses "500us", "250ms", "1.5s", "2m", "1h", "0". Uses nine digits of a fraction. Returns microseconds up to DURATION_MAX, or one of these errors. */
enum { DURATION_MALFORMED = -1, DURATION_NO_UNIT = -2, DURATION_TOO_LARGE = -3 };
int64_t duration_parse(struct span text);
/* Writes the shortest exact form with one unit: 1500 ms -> "1500ms", 10 s -> "10s". Returns the length; out has 32 bytes. */
size_t duration_format(int64_t us, char *out);

/*
 * Writing a line. The caller provides REPLY_MAX bytes per line, or more, and then calls reply_widen. A field that does not fit is left out
 * completely. Order: reply_begin, fields, reply_end, which returns the number of bytes, LF included.
 */
struct reply {
	char *start, *at, *end;
};

/* The first word: "OK", "BUSY", "TIMEOUT", "*", "! LOST" … */
void reply_put_word(struct reply *r, char *out, struct span tag, struct span word);
void reply_error(struct reply *r, char *out, struct span tag, enum error code, const char *text); /* writes the whole line; then call reply_end */
void reply_put_int(struct reply *r, struct span field, int64_t value);
void reply_put_text(struct reply *r, struct span field, struct span value); /* quoted if necessary */

/* The same for strings. Inline, so that the compiler computes the length of literals. */
static inline void reply_begin(struct reply *r, char *out, struct span tag, const char *word)
{
	reply_put_word(r, out, tag, span_of(word));
}

static inline void reply_widen(struct reply *r, size_t more)
{
	r->end += more;
}

static inline void reply_int(struct reply *r, const char *field, int64_t value)
{
	reply_put_int(r, span_of(field), value);
}

/* Rounds down to whole milliseconds; negative becomes 0. */
static inline void reply_ms(struct reply *r, const char *field, int64_t us)
{
	reply_put_int(r, span_of(field), us > 0 ? us / 1000 : 0);
}

static inline void reply_text(struct reply *r, const char *field, struct span value)
{
	reply_put_text(r, span_of(field), value);
}

void reply_put_line(struct reply *r, struct span text); /* text for people, unchanged: it has no quote and no control byte */
size_t reply_end(struct reply *r);

/*
 * Quotes as replies do: bare if possible, else "…" with \xHH,
 * , \r, \t, \", \\; visible UTF-8 stays. Returns the length; 0 if size is too small.
 */
size_t quote(struct span value, char *out, size_t size);

/* Reading a line, as a client does. Spans point into the line; quoted values are unquoted in place. */
enum line_kind { LINE_OK, LINE_BUSY, LINE_TIMEOUT, LINE_ERR, LINE_ROW, LINE_PUSH };
#define REPLY_FIELDS_MAX 64

struct reply_line {
	struct span tag;
	enum line_kind kind;
	struct span code; /* ERR: the code word; PUSH: LOST, RISK … */
	struct span text; /* ERR: the text for people */
	unsigned fields;
	struct {
		struct span name, value;
	} field[REPLY_FIELDS_MAX]; /* further fields are ignored */
};

/* 0; -1 if the line is not of this protocol; 1 if it begins with none of its words, or is a push without a code: a later version may have such lines. */
int reply_parse(char *line, size_t n, struct reply_line *ret_line);
/* "OK", "*" */
struct span line_kind_word(enum line_kind kind);
/* Returns the value, or a span with p = NULL. */
struct span reply_find(const struct reply_line *line, const char *field);
/* Returns the field as an integer, or `otherwise`. */
int64_t reply_number(const struct reply_line *line, const char *field, int64_t otherwise);

#endif
