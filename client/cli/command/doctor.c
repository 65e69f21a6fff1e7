/* SPDX-License-Identifier: BSD-2-Clause */
/* doctor: looks for what goes wrong in installations, and says what to do. It takes no lock and changes nothing. */
#include "client/cli/command/commands.h"
#include "client/cli/command/doctor_stores.h"
#include "client/cli/command/finding.h"
#include "client/cli/io/dial.h"
#include "client/lib/display.h"
#include "proto/proto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLDS_TOLD 10
#define TEXT_BYTES 256

/* What the user of the daemon must be allowed at a Redis server; redlockd(8) has the same. */
static const char redis_access[] = "~lock:* ~redlockd:* &redlockd:* -@all "
				   "+ping +select +eval +evalsha +script|load +time +get +mget +set +del +pttl +info "
				   "+exists +zadd +zrem +zcard +zcount +zrange +zrangebyscore +zrank +zscore "
				   "+zremrangebyscore +pexpire +publish +subscribe +hget +hset +hdel +hgetall +hlen";

/* Whatever the daemon answers, it is there; but without these answers nothing more can be found. */
static void refused_tell(struct findings *f, const struct redlock *c, int outcome)
{
	if (outcome == REDLOCK_REFUSED && !strcmp(redlock_code(c), "LIMIT"))
		finding_tell(f, "daemon", FINDING_FAIL, "end connections that nobody needs, or raise that limit: see limits in redlockd(8)",
		             "the daemon takes no more: %s", redlock_errmsg(c));
	else if (outcome == REDLOCK_REFUSED)
		finding_tell(f, "rights", FINDING_FAIL, "ask as a user who may look, or as root", "the daemon refuses to show this: %s", redlock_errmsg(c));
	else
		finding_tell(f, "daemon", FINDING_FAIL, "see whether its process is stopped or overloaded: systemctl status redlockd", "%s", redlock_errmsg(c));
}

static void unreached_tell(struct findings *f, int error)
{
	if (error == -EACCES || error == -EPERM)
		finding_tell(f, "socket", FINDING_FAIL, "make the folders above the socket searchable for this user, and the socket writable (mode 0666)",
			     "the socket of the daemon is not permitted: %s", redlock_errmsg(NULL));
	else
		finding_tell(f, "daemon", FINDING_FAIL, "start it, as with systemctl start redlockd, or say where it is with --addr or REDLOCK_ADDR",
			     "no daemon: %s", redlock_errmsg(NULL));
}

static void daemon_tell(struct findings *f, const struct redlock_line *hello, int64_t took_us)
{
	struct redlock_bytes server = redlock_line_find(hello, "server");
	char shown[TEXT_BYTES];

	shown_text((struct span){server.p ? server.p : "", server.n}, shown, sizeof(shown));
	finding_tell(f, "daemon", FINDING_OK, "", "%s answers in %" PRId64 ".%02d ms", shown, took_us / 1000, (int)(took_us % 1000 / 10));
	if (strcmp(shown, "redlockd/" REDLOCKD_VERSION) != 0)
		finding_tell(f, "version", FINDING_WARN, "install the same version of both, and restart the daemon after an upgrade",
			     "this is redlock %s, and the daemon is %s", REDLOCKD_VERSION, shown);
}

struct holds_told {
	struct findings *findings;
	unsigned n;
	char after[4 * NAME_MAX_BYTES + 3]; /* the last name, quoted; "" before the first page */
	bool got;
};

static void lock_row(void *arg, const struct redlock_line *row)
{
	struct holds_told *told = arg;
	struct redlock_bytes name = redlock_line_find(row, "name"), holder = redlock_line_find(row, "holder");
	char lock[TEXT_BYTES], who[TEXT_BYTES], age[AGE_BYTES];

	told->got = name.p && !redlock_quote(name, told->after, sizeof(told->after));
	if (!redlock_line_find(row, "alarm").p || told->n++ >= HOLDS_TOLD)
		return;
	shown_text((struct span){name.p, name.n}, lock, sizeof(lock));
	shown_text(holder.p ? (struct span){holder.p, holder.n} : SPAN("somebody"), who, sizeof(who));
	finding_tell(told->findings, "held", FINDING_WARN, "see whether the holder hangs; redlock break takes the lock from it",
		     "%s is held by %s for %s, longer than alarm.held", lock, who, age_text(redlock_line_number(row, "held_ms", 0), age));
}

/* Page by page: a daemon may have more locks than it tells in one answer. */
static int holds_examine(struct findings *f, struct redlock *c)
{
	struct holds_told told = {.findings = f};
	char line[sizeof(told.after) + 40];
	int r = 0;

	do {
		snprintf(line, sizeof(line), "LIST locks limit=1000%s%s", told.after[0] ? " after=" : "", told.after);
		told.got = false;
		r = redlock_request(c, line, 0, lock_row, &told);
	} while (!r && told.got && redlock_line_number(redlock_answer(c), "more", 0) > 0);
	if (told.n > HOLDS_TOLD)
		finding_tell(f, "held", FINDING_WARN, "redlock ls shows all", "%u further locks are held for longer than alarm.held", told.n - HOLDS_TOLD);
	return r;
}

static int examine(struct findings *f, struct redlock *c)
{
	struct doctor_stores stores = {.findings = f};
	int64_t began = redlock_now_us();
	int r = redlock_request(c, "HELLO 1 name=\"redlock doctor\"", 0, NULL, NULL);

	if (r)
		return r;
	daemon_tell(f, redlock_answer(c), redlock_now_us() - began);
	stores.lease_ms = redlock_line_number(redlock_answer(c), "lease_ms", 0);
	r = doctor_stores_examine(&stores, c);
	return r ? r : holds_examine(f, c);
}

int doctor_main(const struct invocation *in)
{
	struct findings findings = {.json = in->json};
	struct redlock *c;
	int r;

	if (in->print_acl) {
		printf("ACL SETUSER redlockd on >PASSWORD %s\n", redis_access);
		return EXIT_SUCCESS;
	}
	r = redlock_open(in->addr, ANSWER_TIMEOUT_MS, &c);
	if (r) {
		unreached_tell(&findings, r);
	} else {
		r = examine(&findings, c);
		if (r)
			refused_tell(&findings, c, r);
		redlock_close(c);
	}
	return findings.fails ? EXIT_NO : EXIT_SUCCESS;
}
