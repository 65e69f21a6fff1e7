/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as the body of a request of HTTP, and up to their first NUL as its query. What becomes of them is fields of a line and nothing else: no word, no
 * further line, no second request. A refusal is printable.
 */
#include "daemon/api/fields.h"
#include "tests/fuzz/fuzz.h"

static void check_why(const struct fields *f)
{
	PROMISE(f->why[0]);
	for (const char *c = f->why; *c; c++)
		PROMISE(*c >= ' ' && *c < 0x7f);
}

static void check_fields(const struct fields *f)
{
	static const char before[] = "LOCK n count=1";
	size_t n = buf_length(&f->text);
	char *line = malloc(sizeof(before) + n);
	struct parse_error mistake;
	struct request r;

	PROMISE(line != NULL && n <= FIELDS_MOST && f->owner + f->owner_n <= n);
	memcpy(line, before, sizeof(before) - 1);
	if (n > 0)
		memcpy(line + sizeof(before) - 1, buf_begin(&f->text), n);
	PROMISE(!memchr(line, '\n', sizeof(before) - 1 + n));
	if (request_parse(line, sizeof(before) - 1 + n, &r, &mistake) == PARSE_OK) {
		PROMISE(r.verb == VERB_LOCK && r.words == 1 && span_equal(r.word[0], SPAN("n")) && r.tag.n == 0);
		PROMISE(r.field[FIELD_COUNT].number == 1 && !fields_has(f, FIELD_COUNT));
		PROMISE(f->waits == (request_has(&r, FIELD_WAIT) && r.field[FIELD_WAIT].number != 0));
	}
	free(line);
}

static void read_as(bool body, const char *bytes, size_t n)
{
	struct fields f;

	fields_init(&f);
	if (body ? fields_of_body(&f, (struct span){bytes, n}) : fields_of_query(&f, bytes))
		check_fields(&f);
	else
		check_why(&f);
	fields_release(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *bytes = malloc(n + 1), *query;

	PROMISE(bytes != NULL);
	if (n > 0)
		memcpy(bytes, data, n);
	bytes[n] = '\0';
	query = strdup(bytes);
	PROMISE(query != NULL);
	bytes = realloc(bytes, n ? n : 1); /* of just this size, so that a look behind its end is found */
	PROMISE(bytes != NULL);
	read_as(true, bytes, n);
	read_as(false, query, 0);
	free(query);
	free(bytes);
	return 0;
}
