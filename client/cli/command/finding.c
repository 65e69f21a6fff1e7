/* SPDX-License-Identifier: BSD-2-Clause */
/* See finding.h. */
#include "client/cli/command/finding.h"
#include "client/cli/io/json.h"
#include "proto/span.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const word[] = {[FINDING_OK] = "ok", [FINDING_WARN] = "warn", [FINDING_FAIL] = "fail"};

static void pair_print(const char *before, const char *text)
{
	fputs(before, stdout);
	json_print_text(span_of(text));
}

void finding_tell(struct findings *f, const char *check, enum finding_status status, const char *fix, const char *format, ...)
{
	char text[800];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	f->fails += status == FINDING_FAIL;
	if (!f->json) {
		printf("%-4s  %s%s%s\n", word[status], text, fix[0] ? "; fix: " : "", fix);
		return;
	}
	pair_print("{\"check\":", check);
	pair_print(",\"status\":", word[status]);
	pair_print(",\"text\":", text);
	pair_print(",\"fix\":", fix);
	puts("}");
}
