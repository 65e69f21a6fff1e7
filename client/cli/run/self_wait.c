/* SPDX-License-Identifier: BSD-2-Clause */
/* See self_wait.h. */
#include "client/cli/run/self_wait.h"
#include "client/cli/run/process.h"
#include "client/cli/run/queue_place.h"
#include "client/cli/run/release_socket.h"
#include "client/cli/run/variables.h"
#include "client/lib/display.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An outer redlock has put names and fencing tokens into the environment. A token that still holds the lock is of a command that runs. */
static bool outer_holds(struct redlock *c, const char *name)
{
	for (unsigned i = 0; i < NAMES_MOST; i++) {
		struct variables v = variables_of(i);
		const char *outer = getenv(v.name), *fence = getenv(v.fence);
		struct queue_place place = {.session = "", .fence = fence ? strtoll(fence, NULL, 10) : -1};

		if (outer && fence && !strcmp(outer, name))
			return !queue_place_ask(c, name, &place) && place.fence_holds;
	}
	return false;
}

/* The process above this one that the lock is held for; 0: none. */
static pid_t script_find(const char *name, bool shared)
{
	pid_t pid = getppid();

	while (pid > 0 && !release_socket_bars(pid, name, shared))
		pid = process_parent(pid);
	return pid > 0 ? pid : 0;
}

bool self_wait_find(struct redlock *c, const struct invocation *in, char out[SELF_WAIT_BYTES])
{
	char name[200], word[64];

	if (in->slots) /* another permit may become free */
		return false;
	for (unsigned i = 0; i < in->names_n; i++) {
		pid_t script = script_find(in->names[i], in->shared);

		shown_text(span_of(in->names[i]), name, sizeof(name));
		if (script)
			process_name(script, word, sizeof(word));
		if (script)
			snprintf(out, SELF_WAIT_BYTES, "waiting for itself: %s is held for process %d (%s), which has started this", name, (int)script, word);
		else if (outer_holds(c, in->names[i]))
			snprintf(out, SELF_WAIT_BYTES, "waiting for itself: %s is held by the redlock that runs this command", name);
		else
			continue;
		return true;
	}
	return false;
}
