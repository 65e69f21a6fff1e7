/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For programs of the build that render tables into a manual. They read the page from standard input and write it to standard output. They replace
 * the text between the marks BEGIN of NAME and END of NAME.
 */
#ifndef PROTO_MANUAL_H
#define PROTO_MANUAL_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* How many bytes of text[0..n) fit into a line of that width: up to a blank, if there is one. */
static inline size_t manual_line(const char *text, size_t n, size_t width)
{
	size_t take = n;

	if (n > width)
		for (take = width; take > 1 && text[take] != ' '; take--)
			;
	return take;
}

/* Prints text[0..n) for mdoc, so that no line looks like a request, and no character like an escape. */
static inline void manual_text(const char *text, size_t n, size_t width)
{
	for (size_t take; n > 0; text += take, n -= take) {
		take = manual_line(text, n, width);
		if (*text == '.' || *text == '\'')
			fputs("\\&", stdout);
		for (size_t i = 0; i < take; i++)
			fputs(text[i] == '\\' ? "\\e" : (char[]){text[i], '\0'}, stdout);
		putchar('\n');
		take += take < n;
	}
}

/*
 * part prints the text between the marks of that name. False: there is no such part, or it was printed already. Returns 0, or 1 if the page does not
 * have each part once.
 */
static inline int manual_render(bool (*part)(const char *name), unsigned parts)
{
	static const char begin[] = ".\\\" BEGIN of ";
	char line[4096], end[128] = "";
	unsigned seen = 0;

	while (fgets(line, sizeof(line), stdin)) {
		if (*end && strncmp(line, end, strlen(end)) != 0)
			continue;
		*end = '\0';
		fputs(line, stdout);
		if (strncmp(line, begin, strlen(begin)) != 0)
			continue;
		line[strcspn(line, ",\n")] = '\0';
		snprintf(end, sizeof(end), ".\\\" END of %.100s", line + strlen(begin));
		if (!part(line + strlen(begin))) {
			fprintf(stderr, "the page has a part too many: %s\n", line + strlen(begin));
			return 1;
		}
		seen++;
	}
	if (*end || seen < parts)
		fputs("the page lacks a part, or its end\n", stderr);
	return *end || seen < parts;
}

#endif
