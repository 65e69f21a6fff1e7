/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients for the benchmarks, many from one process. It says "ready", takes commands on standard input, a word a line, answers with lines of figures, and ends
 * with its input: connect; go; rest ("resting" when the last client has freed its lock); begin: forget what was measured; end: the figures since.
 *
 *   build/drive lines ADDRESS OPTION…            sessions of the line protocol, each waits in the queue
 *   build/drive redis ADDRESS[,ADDRESS…] OPTION… Redis directly, or Redlock
 *   build/drive stream ADDRESS OPTION…           sessions with depth= requests in flight
 *
 * Options: clients= (1), names= (0: one for each client), depth= (16), hold=LEAST-MOST and pause=LEAST-MOST microseconds (0-0), turns=yes (a client that has
 * had the lock asks when another has got it), end=leave (the connection ends while the lock is held), prefix= (bench/). ADDRESS: the path of a Unix socket, or
 * an IPv4 address with a port.
 */
#include "tests/bench/drive/clients.h"

#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static const char *value_of(const char *word, const char *key)
{
	size_t n = strlen(key);

	return strncmp(word, key, n) == 0 && word[n] == '=' ? word + n + 1 : NULL;
}

static void set_range(const char *text, int64_t *ret_least, int64_t *ret_most)
{
	char *end;

	*ret_least = strtoll(text, &end, 10);
	*ret_most = *end == '-' ? strtoll(end + 1, NULL, 10) : *ret_least;
}

static void set_option(struct options *o, const char *word)
{
	const char *value;

	if ((value = value_of(word, "clients")))
		o->clients = (unsigned)atoi(value);
	else if ((value = value_of(word, "names")))
		o->names = (unsigned)atoi(value);
	else if ((value = value_of(word, "depth")))
		o->depth = (unsigned)atoi(value);
	else if ((value = value_of(word, "hold")))
		set_range(value, &o->hold_least_us, &o->hold_most_us);
	else if ((value = value_of(word, "pause")))
		set_range(value, &o->pause_least_us, &o->pause_most_us);
	else if ((value = value_of(word, "prefix")))
		o->prefix = value;
	else if (strcmp(word, "turns=yes") == 0)
		o->turns = true;
	else if (strcmp(word, "end=leave") == 0)
		o->ending = END_LEAVE;
	else
		errx(2, "unknown option: %s", word);
}

int main(int argc, char **argv)
{
	struct options o = {.clients = 1, .depth = 16, .prefix = "bench/"};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	for (int i = 3; i < argc; i++)
		set_option(&o, argv[i]);
	if (o.ending == END_LEAVE && !o.hold_most_us)
		o.hold_most_us = 1; /* no connection ends while a line of it is being read */
	if (argc < 3 || o.clients == 0 || o.depth == 0)
		errx(2, "usage: drive lines|redis|stream ADDRESS [OPTION]...");
	if (strcmp(argv[1], "lines") == 0)
		clients_run(argv[2], &o, &lines_driver);
	else if (strcmp(argv[1], "redis") == 0)
		clients_run(argv[2], &o, &redis_driver);
	else if (strcmp(argv[1], "stream") == 0)
		stream_run(argv[2], &o);
	else
		errx(2, "unknown driver: %s", argv[1]);
	return 0;
}
