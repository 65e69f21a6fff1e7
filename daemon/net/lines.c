/* SPDX-License-Identifier: BSD-2-Clause */
/* Cuts lines. It must never keep more of an unfinished line than the bound of a line. */
#include "daemon/net/lines.h"

#include <string.h>

/* Drops the rest of a line that was reported. False: it has not ended. */
static bool lines_skip(struct lines *l)
{
	char *lf = l->at < l->end ? memchr(l->at, '\n', (size_t)(l->end - l->at)) : NULL;

	l->at = lf ? lf + 1 : l->end;
	l->skipping = !lf;
	return lf != NULL;
}

static bool begins_with_control(const char *line, const char *end)
{
	return line < end && (unsigned char)*line < ' ' && *line != '\t' && *line != '\r';
}

/* No LF is left. */
static enum line lines_unfinished(struct lines *l, size_t *ret_n)
{
	size_t n = (size_t)(l->end - l->at);
	enum line kind = n >= l->max ? LINE_TOO_LONG : begins_with_control(l->at, l->end) ? LINE_WHOLE : LINE_NONE;

	*ret_n = kind == LINE_TOO_LONG ? LINES_BEGINNING : n;
	l->skipping = kind != LINE_NONE;
	if (l->skipping)
		l->at = l->end;
	return kind;
}

enum line lines_next(struct lines *l, char **ret_line, size_t *ret_n)
{
	char *line, *lf;
	size_t n;

	if (l->skipping && !lines_skip(l))
		return LINE_NONE;
	line = *ret_line = l->at;
	lf = line < l->end ? memchr(line, '\n', (size_t)(l->end - line)) : NULL;
	if (!lf)
		return lines_unfinished(l, ret_n);
	l->at = lf + 1;
	n = (size_t)(lf - line);
	if (n >= l->max) {
		*ret_n = LINES_BEGINNING;
		return LINE_TOO_LONG;
	}
	*ret_n = n && line[n - 1] == '\r' ? n - 1 : n;
	return LINE_WHOLE;
}
