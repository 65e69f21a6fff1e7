/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter of libredlock: JSON lines in, JSON lines out (tests/clients/README.md). One thread and one poll(2) for the calls and for all connections. A
 * connection has one request in flight, so calls take turns at it. What a caller of the library does himself stands here: he keeps until_us of a grant, which
 * RISK shortens, and asks CHECK for what he waited for; he opens another connection when one has ended.
 */
#include "tests/clients/adapter_c/adapter.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS   4
#define LINE_MOST 300000

static struct client clients[CLIENTS];
static unsigned owners;

/* --- clients --- */

static int client_open(struct client *cl)
{
	struct redlock_session session = {.size = sizeof(session), .label = *cl->label ? cl->label : NULL, .grace_ms = cl->grace_ms,
			.heartbeat_ms = cl->heartbeat_ms};
	int r = redlock_open(*cl->address ? cl->address : NULL, ANSWER_MS, &cl->c);

	return r ? r : redlock_hello(cl->c, &session);
}

/* The connection has ended, and with it all that it held. */
static void client_end(struct client *cl, int r)
{
	struct call *k;

	lose_all(cl, "disconnected");
	while ((k = TAILQ_FIRST(&cl->calls)))
		call_end(k, r);
	redlock_close(cl->c);
	cl->c = NULL;
}

static void client_close(struct client *cl)
{
	struct call *k;

	if (!cl->used)
		return;
	redlock_close(cl->c);
	cl->c = NULL;
	lose_all(cl, "closed");
	while ((k = TAILQ_FIRST(&cl->calls)))
		call_end(k, -ECONNABORTED);
	cl->used = false;
}

static void client_work(struct client *cl)
{
	const struct redlock_line *push;
	struct call *k;
	int r;

	while (!cl->c && (k = TAILQ_FIRST(&cl->calls)) && k->hold && k->hold->lost) {
		snprintf(k->error, sizeof(k->error), "LOST");
		call_end(k, REDLOCK_REFUSED);
	}
	r = cl->c ? redlock_process(cl->c) : TAILQ_FIRST(&cl->calls) ? client_open(cl) : 0;

	while (cl->c && (push = redlock_next_push(cl->c)))
		hear_push(cl, push);
	while (!r && (k = TAILQ_FIRST(&cl->calls)) && !redlock_in_flight(cl->c))
		r = call_go(k);
	if (r)
		client_end(cl, r);
}
/* --- what is asked --- */

static struct client *client_of(const struct json *row, bool anew)
{
	const char *handle = json_text(row, "client");
	struct client *cl, *unused = NULL;

	for (cl = clients; cl < clients + CLIENTS; cl++) {
		if (cl->used && !strcmp(cl->handle, handle ? handle : "c"))
			return cl;
		unused = cl->used ? unused : cl;
	}
	if (!anew || !unused)
		return NULL;
	*unused = (struct client){.used = true};
	snprintf(unused->handle, sizeof(unused->handle), "%s", handle ? handle : "c");
	TAILQ_INIT(&unused->calls);
	return unused;
}

static int connect_now(const struct json *row, struct client *cl)
{
	const char *address = json_text(row, "address"), *label = json_text(row, "label");
	int r;

	snprintf(cl->address, sizeof(cl->address), "%s", address ? address : "");
	snprintf(cl->label, sizeof(cl->label), "%s", label ? label : "");
	cl->grace_ms = (int64_t)(1000 * json_number(row, "grace", 0));
	cl->heartbeat_ms = (int64_t)(1000 * json_number(row, "heartbeat", 0));
	r = client_open(cl);
	cl->used = !r;
	return r;
}

static void abort_call(int id)
{
	struct call *k, *following;

	for (struct client *cl = clients; cl < clients + CLIENTS; cl++)
		for (k = cl->used ? TAILQ_FIRST(&cl->calls) : NULL; k; k = following) {
			following = TAILQ_NEXT(k, next);
			if ((int)json_number(&k->row, "id", 0) == id)
				call_leave(k);
		}
}

static void reset(void)
{
	for (struct client *cl = clients; cl < clients + CLIENTS; cl++)
		client_close(cl);
	while (!LIST_EMPTY(&holds))
		hold_drop(LIST_FIRST(&holds));
}

/* In the child, whose output is read by its parent: what it has, by the library; then it locks a name over a connection of its own. */
static _Noreturn void child_run(const struct call *k, struct hold *h)
{
	struct redlock_grant grant = {0};
	struct client *cl = k->client;
	const char *name = json_text(&k->row, "ask");
	int r = redlock_process(cl->c);

	if (r)
		lose_all(cl, r == -ESTALE ? "fork" : "disconnected");
	redlock_close(cl->c);
	printf("{\"id\": %d, \"ok\": ", (int)json_number(&k->row, "id", 0));
	if (name && !(r = client_open(cl)) && !(r = redlock_lock(cl->c, name, NULL, &grant)))
		r = redlock_unlock(cl->c, name, 0);
	if (name && !r)
		printf("{\"held\": %s, \"asked\": %lld}", left(h) > 0 ? "true" : "false", (long long)grant.fence);
	else if (name)
		printf("{\"error\": %d}", r);
	else
		say_state(h);
	say_end("}");
	_exit(0);
}

/* The last line of the child is the answer; those before it are the events that it was told. */
static void fork_now(const struct call *k)
{
	char said[4096], *last;
	size_t n = 0;
	ssize_t more;
	int ends[2];
	pid_t child;

	if (pipe(ends) || (child = fork()) < 0)
		abort();
	if (!child) {
		dup2(ends[1], STDOUT_FILENO);
		child_run(k, hold_find(text(k, "lock")));
	}
	close(ends[1]);
	while ((more = read(ends[0], said + n, sizeof(said) - 1 - n)) > 0)
		n += (size_t)more;
	close(ends[0]);
	waitpid(child, NULL, 0);
	said[n - (n > 0)] = '\0';
	last = strrchr(said, '\n');
	say_end(last ? last + 1 : said);
}

/* Whether it was done at once. */
static bool do_now(struct call *k)
{
	struct hold *h;

	if (asks(k, "fork")) {
		fork_now(k);
		return true;
	}
	if (asks(k, "abort"))
		abort_call((int)json_number(&k->row, "call", 0));
	else if (asks(k, "close") && k->client)
		client_close(k->client);
	else if (asks(k, "reset"))
		reset();
	else if (!asks(k, "state"))
		return false;
	h = asks(k, "state") ? hold_find(text(k, "lock")) : NULL;
	printf("{\"id\": %d, \"ok\": ", (int)json_number(&k->row, "id", 0));
	if (h)
		say_state(h);
	else
		printf("null");
	say_end("}");
	return true;
}

/* The hold that a call makes, or is about. */
static struct hold *hold_of(const struct call *k)
{
	const struct json_field *names = json_find(&k->row, "names");
	bool ends = asks(k, "unlock") || asks(k, "done") || asks(k, "retry");
	struct hold *h;

	if (asks(k, "rate") || asks(k, "defer") || asks(k, "once") || asks(k, "status"))
		return NULL;
	if (ends || asks(k, "ensure") || asks(k, "extend")) {
		h = hold_find(text(k, "lock"));
		if (h && ends)
			LIST_REMOVE(h, next);
		return h;
	}
	h = calloc(1, sizeof(*h));
	if (!h)
		abort();
	h->client = k->client;
	h->takes = asks(k, "take");
	snprintf(h->handle, sizeof(h->handle), "%s", text(k, "lock"));
	snprintf(h->owner, sizeof(h->owner), "l%u", ++owners);
	h->n = asks(k, "locks") ? names->n : 1;
	for (size_t i = 0; i < h->n; i++) {
		h->part[i].until_us = INT64_MAX;
		snprintf(h->part[i].name, sizeof(h->part[i].name), "%s", names ? names->text[i] : text(k, h->takes ? "queue" : "name"));
	}
	return h;
}

static void hear_line(const char *line)
{
	struct call *k = calloc(1, sizeof(*k));
	struct client *cl;
	int r;

	if (!k || !(k->line = strdup(line)) || !json_read(k->line, &k->row))
		abort();
	k->what = text(k, "do");
	k->client = client_of(&k->row, asks(k, "connect"));
	if (do_now(k) || !k->client) {
		free(k->line);
		free(k);
		return;
	}
	if (!asks(k, "connect"))
		k->hold = hold_of(k);
	TAILQ_INSERT_TAIL(&k->client->calls, k, next);
	if (!asks(k, "connect"))
		return;
	cl = k->client;
	r = connect_now(&k->row, cl);
	call_end(k, r);
	if (r) {
		redlock_close(cl->c);
		cl->c = NULL;
	}
}

/* Reads what has come, and keeps half a line. False: there will be no more. */
static bool hear(void)
{
	static char buffer[LINE_MOST];
	static size_t n;
	ssize_t more = read(STDIN_FILENO, buffer + n, sizeof(buffer) - n - 1);
	char *from = buffer, *end;

	if (more <= 0)
		return false;
	n += (size_t)more;
	for (buffer[n] = '\0'; (end = strchr(from, '\n')); from = end + 1) {
		*end = '\0';
		hear_line(from);
	}
	n -= (size_t)(from - buffer);
	memmove(buffer, from, n);
	return true;
}

/* Until something is due. */
static int pause_ms(void)
{
	int64_t due = INT64_MAX, now = redlock_now_us();
	const struct hold *h;

	LIST_FOREACH(h, &holds, next)
		for (size_t i = 0; i < h->n && !h->lost; i++)
			due = MIN(due, h->part[i].until_us);
	for (struct client *cl = clients; cl < clients + CLIENTS; cl++) {
		if (cl->c)
			due = MIN(due, redlock_due_us(cl->c));
	}
	return due == INT64_MAX ? -1 : (int)MIN(MAX(due - now, 0) / 1000 + 1, 60000);
}

int main(void)
{
	struct pollfd fds[1 + CLIENTS] = {{.fd = STDIN_FILENO, .events = POLLIN}};
	char why[200];

	if (redlock_use_tls(NULL, why, sizeof(why)))
		fprintf(stderr, "%s\n", why);
	puts("{\"id\": \"hello\", \"can\": [\"preload\", \"fork\", \"fork-ask\"], \"omits\": [\"owner\", \"fence\", \"count\", \"id\"], "
	     "\"lacks\": [\"many\", \"keeper\", \"fence\", \"bytes\", \"microseconds\", \"quit\", \"repeat\", \"strays\", \"abort-rate\", \"grace-ends\"]}");
	fflush(stdout);
	do {
		for (struct client *cl = clients; cl < clients + CLIENTS; cl++)
			if (cl->used)
				client_work(cl);
		lose_expired();
		for (size_t i = 0; i < CLIENTS; i++)
			fds[1 + i] = (struct pollfd){clients[i].c ? redlock_fd(clients[i].c) : -1, clients[i].c ? redlock_events(clients[i].c) : 0, 0};
		(void)!poll(fds, 1 + CLIENTS, pause_ms());
	} while (!(fds[0].revents & (POLLIN | POLLHUP)) || hear());
	reset();
	return 0;
}
