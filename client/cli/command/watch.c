/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch: prints each event of the locks of the daemon as it arrives, until the daemon ends the connection or nobody reads any more. It never delays
 * events: whoever reads from a pipe sees each event at once.
 */
#include "client/cli/io/invocation.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "proto/proto.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Prints a field, unless the first columns have it. */
static void field_print(const struct redlock_line *event, size_t i)
{
	struct redlock_bytes name = redlock_line_name(event, i), value = redlock_line_value(event, i);
	struct span field = {name.p, name.n};
	char text[200], age[AGE_BYTES];
	const char *mark;

	if (span_equal(field, SPAN("kind")) || span_equal(field, SPAN("name")) || span_equal(field, SPAN("who")) || span_equal(field, SPAN("session")))
		return;
	shown_text((struct span){value.p, value.n}, text, sizeof(text));
	mark = strchr(text, ' ') ? "\"" : "";
	if (field_is_duration(field))
		printf("  %.*s %s", (int)name.n - 3, name.p, age_text(strtoll(text, NULL, 10), age));
	else
		printf("  %.*s=%s%s%s", (int)name.n, name.p, mark, text, mark);
}

/* Prints the time of day, kind, name and who, and then the other fields. */
static void event_print(const struct redlock_line *event)
{
	char kind[40], name[200], who[200];
	struct timespec now;
	struct tm day;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &day);
	field_show(event, "kind", kind, sizeof(kind));
	field_show(event, "name", name, sizeof(name));
	field_show(event, "who", who, sizeof(who));
	printf("%02d:%02d:%02d.%03d  %-8s  %s  %s", day.tm_hour, day.tm_min, day.tm_sec, (int)(now.tv_nsec / 1000000), kind, name, who);
	for (size_t i = 0; i < redlock_line_fields(event); i++)
		field_print(event, i);
	putchar('\n');
}

static void events_print(struct redlock *c, bool json)
{
	const struct redlock_line *push;

	while ((push = redlock_next_push(c))) {
		if (!redlock_line_is(push, "EVENT"))
			continue;
		if (json)
			json_print_line(push, false);
		else
			event_print(push);
	}
}

static int watch_events(struct redlock *c, bool json)
{
	int r = 0;

	while (!r) {
		struct pollfd fds[2] = {{.fd = redlock_fd(c), .events = redlock_events(c)}, {.fd = STDOUT_FILENO}};

		events_print(c, json);
		if (!output_flush())
			return EX_UNAVAILABLE;
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL))
			return EXIT_SUCCESS; /* nobody reads any more */
		r = redlock_process(c);
	}
	events_print(c, json);
	complain("%s%s", redlock_errmsg(c), silence_hint(r));
	return EX_UNAVAILABLE;
}

int watch_ask(struct redlock *c, const struct invocation *in)
{
	int r = exit_of(c, redlock_watch(c, in->operand));

	return r ? r : watch_events(c, in->json);
}
