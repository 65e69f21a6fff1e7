/* SPDX-License-Identifier: BSD-2-Clause */
/* How a call returns. */
#include "tests/clients/adapter_c/adapter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *error_of(const struct call *k, int r, const char *code)
{
	static const char *const names[][2] = {{"LOST", "LockLost"}, {"NOTHELD", "LockLost"}, {"QUORUM", "NoQuorum"}, {"UNAVAILABLE", "NoQuorum"},
		{"DEADLOCK", "Deadlock"}, {"DENIED", "Denied"}, {"AUTH", "Denied"}, {"DRAINING", "Draining"}, {"failed", "Failed"}};

	if (r < 0)
		return r == -EACCES ? "Denied" : r == -EINVAL || r == -EMSGSIZE ? "RedlockError" : "Disconnected";
	if (r == REDLOCK_BUSY && (asks(k, "rate") || !wait_ms(k)))
		return "Busy";
	if (r != REDLOCK_REFUSED)
		return "LockTimeout";
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(code, names[i][0]))
			return names[i][1];
	return "RedlockError";
}

void say_failed(const struct call *k, int r)
{
	const struct redlock *c = k->client->c;
	const struct redlock_line *answer = c && r > 0 ? redlock_answer(c) : NULL;
	const char *code = *k->error ? k->error : c && r > 0 ? redlock_code(c) : "", *message = *k->text ? k->text : redlock_errmsg(c);
	int64_t retry_ms = answer ? redlock_line_number(answer, "retry_ms", -1) : -1;
	struct redlock_bytes none = {NULL, 0};

	printf("{\"id\": %d", (int)json_number(&k->row, "id", 0));
	say_field("error", k->left ? "Aborted" : error_of(k, r, code));
	say_field("text", message);
	say_field("code", code);
	say_field("name", *k->name ? k->name : k->hold ? k->hold->part[0].name : text(k, "name"));
	say_field("reason", k->hold ? k->hold->reason : "");
	say_bytes("holder", answer ? redlock_line_find(answer, "holder") : none);
	say_bytes("trace", answer ? redlock_line_find(answer, "trace") : none);
	printf(", \"retry_after\": ");
	printf(retry_ms < 0 ? "null" : "%f", (double)retry_ms / 1000);
	say_end("}");
}

static void say_ok(const struct call *k)
{
	printf("{\"id\": %d, \"ok\": ", (int)json_number(&k->row, "id", 0));
	if (asks(k, "rate")) {
		printf("{\"left\": %lld, \"reset\": %f}", (long long)k->rate.left, (double)k->rate.reset_ms / 1000);
	} else if (asks(k, "defer")) {
		printf("{\"id\": ");
		json_say(k->job, strlen(k->job));
		printf("}");
	} else if (asks(k, "once") || asks(k, "status")) {
		printf("{\"ran\": %s, \"status\": %d, \"took\": %f, \"next\": %f", k->run.ran ? "true" : "false", k->run.status,
		       (double)k->run.took_ms / 1000, (double)k->run.next_ms / 1000);
		say_field("host", k->run.host);
		say_field("began", k->run.began);
		printf("}");
	} else if (!k->hold || asks(k, "unlock") || asks(k, "done") || asks(k, "retry"))
		printf("null");
	else if (takes(k))
		say_granted(k->hold);
	else
		printf("{\"remaining\": %f}", left(k->hold));
	say_end("}");
}

void call_leave(struct call *k)
{
	if (k->left)
		return;
	k->left = true;
	say_failed(k, -ECANCELED);
	if (k->stage == ASKED && takes(k) && redlock_cancel(k->client->c))
		return;
}

void call_end(struct call *k, int r)
{
	struct hold *h = k->hold;
	bool kept = !r && h && takes(k) && !k->left;

	TAILQ_REMOVE(&k->client->calls, k, next);
	if (kept)
		LIST_INSERT_HEAD(&holds, h, next);
	if (!k->left && !r && asks(k, "ensure") && left(h) < json_number(&k->row, "seconds", 0)) {
		snprintf(h->reason, sizeof(h->reason), "short");
		snprintf(k->error, sizeof(k->error), "LOST");
		say_failed(k, REDLOCK_REFUSED);
		h->reason[0] = '\0';
	} else if (!k->left && r) {
		say_failed(k, r);
	} else if (!k->left) {
		say_ok(k);
	}
	if (h && !kept && !asks(k, "ensure") && !asks(k, "extend"))
		hold_free(h);
	free(k->line);
	free(k);
}
