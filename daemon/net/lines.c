/* SPDX-License-Identifier: BSD-2-Clause */
/* Cuts lines. It must never keep more of an unfinished line than the bound of a line. */
#include "daemon/net/lines.h"

#include <string.h>

/* No LF is left. */
static enum line lines_unfinished(struct lines *l)
{
	if ((size_t)(l->end - l->at) >= l->max)
		l->skipping = true;
	if (l->skipping)
		l->at = l->end;
	return LINE_NONE;
}

enum line lines_next(struct lines *l, char **ret_line, size_t *ret_n)
{
	char *line = l->at, *lf = line < l->end ? memchr(line, '\n', (size_t)(l->end - line)) : NULL;
	bool skipped = l->skipping;
	size_t n;

	if (!lf)
		return lines_unfinished(l);
	l->at = lf + 1;
	l->skipping = false;
	if (skipped || (size_t)(l->at - line) > l->max)
		return LINE_TOO_LONG;
	n = (size_t)(lf - line);
	if (n && line[n - 1] == '\r')
		n--;
	*ret_line = line;
	*ret_n = n;
	return LINE_WHOLE;
}
