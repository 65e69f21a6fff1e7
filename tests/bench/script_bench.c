/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * build/script_bench [PAIRS]: what the batch script costs Redis. N names are acquired in one call and released in the next, again and again, for several N, on
 * a redis-server of the bench's own. For comparison: N times SET NX PX and N times the script that deletes our key, as N clients without a daemon would
 * send them. Prints the processor time of Redis for a pair, and for a renewal. Not part of `check`.
 */
#include "daemon/redis/batch.h"
#include "daemon/redis/script.h"

#include <err.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MARKER "bench"

static const char delete_script[] = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

static char dir[] = "/tmp/bench.XXXXXX", path[64];
static pid_t server;
static redisContext *redis;
static struct script_keys keys;

static void server_start(void)
{
	const char *program = getenv("REDIS_SERVER");

	if (!mkdtemp(dir))
		err(1, "%s", dir);
	snprintf(path, sizeof(path), "%s/sock", dir);
	server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
		execlp(program && *program ? program : "redis-server", "redis-server", "--port", "0", "--unixsocket", path, "--dir", dir, "--save", "",
		       (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 500; i++) {
		redis = redisConnectUnix(path);
		if (redis && !redis->err)
			return;
		redisFree(redis);
		usleep(10000);
	}
	errx(1, "redis-server did not come up");
}

static void server_stop(void)
{
	redisFree(redis);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	unlink(path);
	rmdir(dir);
}

static double server_cpu_us(void)
{
	clockid_t clock;
	struct timespec t;

	if (clock_getcpuclockid(server, &clock) || clock_gettime(clock, &t))
		err(1, "the processor time of redis-server");
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static redisReply *reply_get(void)
{
	void *reply;

	if (redisGetReply(redis, &reply) != REDIS_OK)
		errx(1, "%s", redis->errstr);
	if (((redisReply *)reply)->type == REDIS_REPLY_ERROR)
		errx(1, "%s", ((redisReply *)reply)->str);
	return reply;
}

static void load(const char *text, size_t n, char *ret_sha)
{
	redisReply *reply;

	redisAppendCommand(redis, "SCRIPT LOAD %b", text, n);
	reply = reply_get();
	snprintf(ret_sha, 41, "%s", reply->str);
	freeReplyObject(reply);
}

static void call_all(struct batch *b, enum call_kind kind, unsigned n, int64_t px_ms, const char *sha)
{
	struct buf out;

	struct timespec t;
	int64_t now_us;

	clock_gettime(CLOCK_REALTIME, &t);
	now_us = (int64_t)t.tv_sec * SEC + t.tv_nsec / 1000;
	buf_init(&out);
	batch_reset(b);
	for (unsigned i = 0; i < n; i++) {
		char name[32], value[64], ticket[64];
		struct call call = {.id = i, .kind = kind, .marker = SPAN(MARKER), .px_ms = px_ms, .not_after_ms = now_us / 1000 + 100,
		                    .ticket_ms = 3000, .reserve_ms = 20, .create = true};

		call.fence = kind == CALL_ACQUIRE ? now_us + i : now_us - 3600 * SEC;
		call.name = (struct span){name, (size_t)snprintf(name, sizeof(name), "orders/%u", i)};
		call.value = (struct span){value, (size_t)snprintf(value, sizeof(value), "d957e2b41efc3016.h0:%u:6e0be9160ec87bcb7a705eb9e48a99e4", i)};
		call.new_value = call.value;
		if (kind == CALL_ACQUIRE)
			call.ticket = (struct span){ticket, (size_t)snprintf(ticket, sizeof(ticket), "d957e2b41efc3016.h0:%u:1761234567890:0", i)};
		batch_add(b, &keys, &call, i);
	}
	batch_write(b, &keys, sha, SPAN(""), &out);
	redisAppendFormattedCommand(redis, buf_begin(&out), buf_length(&out));
	freeReplyObject(reply_get());
	buf_release(&out);
}

static double batched(unsigned n, unsigned rounds, const char *sha)
{
	struct batch b;
	double us;

	batch_init(&b);
	us = server_cpu_us();
	for (unsigned i = 0; i < rounds; i++) {
		call_all(&b, CALL_ACQUIRE, n, 30000, sha);
		call_all(&b, CALL_RELEASE, n, 0, sha);
	}
	us = server_cpu_us() - us;
	batch_release(&b);
	return us / n / rounds;
}

static double renewed(unsigned n, unsigned rounds, const char *sha)
{
	struct batch b;
	double us;

	batch_init(&b);
	call_all(&b, CALL_ACQUIRE, n, 30000, sha);
	usleep(2000);
	us = server_cpu_us();
	for (unsigned i = 0; i < rounds; i++)
		call_all(&b, CALL_EXTEND, n, 30001 + i, sha);
	us = server_cpu_us() - us;
	call_all(&b, CALL_RELEASE, n, 0, sha);
	batch_release(&b);
	return us / n / rounds;
}

static double direct(unsigned n, unsigned rounds)
{
	char sha[41];
	double us;

	load(delete_script, sizeof(delete_script) - 1, sha);
	us = server_cpu_us();
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned k = 0; k < n; k++)
			redisAppendCommand(redis, "SET lock:orders/%u %040u NX PX 30000", k, k);
		for (unsigned k = 0; k < n; k++)
			freeReplyObject(reply_get());
		for (unsigned k = 0; k < n; k++)
			redisAppendCommand(redis, "EVALSHA %s 1 lock:orders/%u %040u", sha, k, k);
		for (unsigned k = 0; k < n; k++)
			freeReplyObject(reply_get());
	}
	return (server_cpu_us() - us) / n / rounds;
}

int main(int argc, char **argv)
{
	static const unsigned size[] = {1, 3, 5, 16, 32};
	unsigned pairs = argc > 1 ? (unsigned)atoi(argv[1]) : 100000;

	char sha[41];

	server_start();
	load(script_text[SCRIPT_BATCH].p, script_text[SCRIPT_BATCH].n, sha);
	script_keys_init(&keys, "lock:", 60000000, 10000000, "");
	freeReplyObject(redisCommand(redis, "SET redlockd:lock:!meta " MARKER));
	for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++)
		printf("%2u names a call: %5.2f us of Redis a pair, %5.2f a renewal; as many commands without a daemon, pipelined: %5.2f a pair\n", size[i],
		       batched(size[i], pairs / size[i], sha), renewed(size[i], pairs / size[i], sha), direct(size[i], pairs / size[i]));
	script_keys_release(&keys);
	server_stop();
	return 0;
}
