/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a call costs through the upstream, against the same scripts sent one EVALSHA per call with hiredis' formatter and reader on a
 * bufferevent. 64 slots each acquire and release a name of their own over and over, on a redis-server of the bench's own.
 * Prints CPU per call of this process and of Redis, and calls per second. Not part of `check`.
 */
#include "daemon/base/clock.h"
#include "daemon/redis/script.h"
#include "daemon/redis/upstream.h"

#include <err.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS  64
#define MARKER "bench"
#define VALUE  "d1:7:00112233445566778899aabbccddeeff"

static char dir[] = "/tmp/bench.XXXXXX", path[64];
static pid_t server;
static redisContext *admin;
static struct event_base *base;
static struct upstream *upstream;
static struct bufferevent *single;
static redisReader *reader;
static char sha[41];
static uint64_t limit, done, sent;
static unsigned failed, up;

static void server_start(void)
{
	int i;

	if (!mkdtemp(dir))
		err(1, "%s", dir);
	(void)snprintf(path, sizeof(path), "%s/sock", dir);
	server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
		execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path, "--dir", dir, "--save", "",
		       (char *)NULL);
		_exit(127);
	}
	for (i = 0; i < 500; i++) {
		admin = redisConnectUnix(path);
		if (admin && !admin->err)
			return;
		redisFree(admin);
		usleep(10000);
	}
	errx(1, "redis-server did not come up");
}

static void server_stop(void)
{
	redisFree(admin);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	unlink(path);
	rmdir(dir);
}

static double server_cpu(void)
{
	redisReply *reply = redisCommand(admin, "INFO cpu");
	double sum = atof(strstr(reply->str, "used_cpu_user:") + 14) + atof(strstr(reply->str, "used_cpu_sys:") + 13);

	freeReplyObject(reply);
	return sum;
}

static double own_cpu(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void on_up(void *context, unsigned node)
{
	(void)context, (void)node;
	up = 1;
}

static void on_down(void *context, unsigned node, const char *reason)
{
	(void)context;
	errx(1, "node %u: %s", node, reason);
}

/* A call's id is its slot, and in bit 8 whether it releases. */
static void upstream_next(uint64_t slot, bool release)
{
	char name[32];
	struct call call = {.id = slot | (release ? 256 : 0),
			    .kind = release ? CALL_RELEASE : CALL_ACQUIRE,
			    .value = SPAN(VALUE),
			    .marker = SPAN(MARKER),
			    .px_ms = 30000};

	call.name = (struct span){name, (size_t)snprintf(name, sizeof(name), "orders/%llu", (unsigned long long)slot)};
	sent++;
	upstream_call(upstream, &call);
}

static void on_answer(void *context, const struct answer *a)
{
	(void)context;
	failed += a->code != (a->call & 256 ? 'R' : 'G');
	if (++done < limit)
		upstream_next(a->call & 255, !(a->call & 256));
}

static void upstream_open(unsigned links)
{
	struct upstream_address address = {.label = "bench", .path = path};
	struct upstream_conf conf = {.address = &address,
				     .nodes = 1,
				     .links = links,
				     .key_prefix = "lock:",
				     .connect_timeout_us = SEC,
				     .stall_us = 10 * SEC,
				     .ping_us = SEC,
				     .skew_us = 60 * SEC};
	struct upstream_sink sink = {NULL, on_up, on_down, on_answer};

	up = 0;
	upstream = upstream_new(base, &conf, &sink);
	while (!up)
		event_base_loop(base, EVLOOP_ONCE);
}

static void upstream_run(unsigned slots)
{
	uint64_t slot;

	for (slot = 0; slot < slots; slot++)
		upstream_next(slot, false);
	while (done < limit + slots - 1) {
		upstream_flush(upstream);
		event_base_loop(base, EVLOOP_ONCE);
	}
}

static void single_next(uint64_t slot, bool release)
{
	char key[32];
	const char *argv[] = {"EVALSHA",
			      sha,
			      "3",
			      "redlockd:lock:!meta",
			      "redlockd:lock:!fence",
			      key,
			      MARKER,
			      "60000000",
			      release ? "r" : "a",
			      VALUE,
			      "",
			      release ? "" : "30000",
			      release ? "" : "0",
			      release ? "" : "0",
			      release ? "" : "0",
			      release ? "" : "0"};
	size_t length[16], i;
	char *text;
	long long n;

	(void)snprintf(key, sizeof(key), "lock:orders/%llu", (unsigned long long)slot);
	for (i = 0; i < 16; i++)
		length[i] = strlen(argv[i]);
	n = redisFormatCommandArgv(&text, 16, argv, length);
	bufferevent_write(single, text, (size_t)n);
	free(text);
	sent++;
}

/* Replies come in the order of the calls, so the slot is the count modulo their number. */
static void single_on_read(struct bufferevent *bev, void *context)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	unsigned slots = *(unsigned *)context;
	redisReply *reply;
	size_t n;

	while ((n = evbuffer_get_contiguous_space(in))) {
		redisReaderFeed(reader, (char *)evbuffer_pullup(in, (ssize_t)n), n);
		evbuffer_drain(in, n);
		while (redisReaderGetReply(reader, (void **)&reply) == REDIS_OK && reply) {
			uint64_t slot = done % slots;
			bool release = done / slots % 2;

			failed += reply->type != REDIS_REPLY_ARRAY ||
				  reply->element[1]->element[0]->str[0] != (release ? 'R' : 'G');
			freeReplyObject(reply);
			if (++done < limit)
				single_next(slot, !release);
		}
	}
}

static void single_open(unsigned *slots)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	redisReply *reply = redisCommand(admin, "SCRIPT LOAD %b", script_text[SCRIPT_BATCH].p, script_text[SCRIPT_BATCH].n);

	(void)snprintf(sha, sizeof(sha), "%s", reply->str);
	freeReplyObject(reply);
	(void)snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	reader = redisReaderCreate();
	single = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(single, single_on_read, NULL, NULL, slots);
	bufferevent_enable(single, EV_READ | EV_WRITE);
	if (bufferevent_socket_connect(single, (struct sockaddr *)&sun, sizeof(sun)))
		err(1, "%s", path);
}

static void single_run(unsigned slots)
{
	uint64_t slot;

	for (slot = 0; slot < slots; slot++)
		single_next(slot, false);
	while (done < limit + slots - 1)
		event_base_loop(base, EVLOOP_ONCE);
}

static void measure(const char *what, void (*run)(unsigned slots), unsigned slots, uint64_t calls)
{
	double own, redis, wall;
	struct instant start;

	redisFree(redisConnectUnix(path));
	freeReplyObject(redisCommand(admin, "FLUSHALL"));
	freeReplyObject(redisCommand(admin, "SET redlockd:lock:!meta " MARKER));
	limit = calls;
	done = sent = failed = 0;
	start = clock_boottime();
	own = own_cpu();
	redis = server_cpu();
	run(slots);
	own = own_cpu() - own;
	redis = server_cpu() - redis;
	wall = (double)instant_diff(clock_boottime(), start) / 1e6;
	printf("%-28s in flight %3u  own %6.3f us/call  redis %6.3f us/call  %8.0f calls/s  %u failed\n", what, slots,
	       own / (double)done * 1e6, redis / (double)done * 1e6, (double)done / wall, failed);
}

int main(int argc, char **argv)
{
	uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 10) : 400000;
	unsigned slots[] = {SLOTS, 1}, i;

	signal(SIGPIPE, SIG_IGN);
	server_start();
	base = event_base_new();
	for (i = 0; i < 2; i++) {
		uint64_t n = i ? calls / 10 : calls;

		upstream_open(1);
		measure("upstream, 1 link", upstream_run, slots[i], n);
		upstream_free(upstream);
		upstream_open(4);
		measure("upstream, 4 links", upstream_run, slots[i], n);
		upstream_free(upstream);
		single_open(&slots[i]);
		measure("one EVALSHA per call", single_run, slots[i], n);
		bufferevent_free(single);
		redisReaderFree(reader);
	}
	event_base_free(base);
	server_stop();
	return 0;
}
