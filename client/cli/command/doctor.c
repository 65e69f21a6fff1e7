/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor: looks for common errors of an installation, and suggests corrections. It takes no lock and changes nothing. Only the daemon knows the
 * addresses, secrets and certificates of its stores, and whether its host can reach them. So doctor asks the daemon, and connects to no store.
 */
#include "client/cli/io/invocation.h"
#include "client/cli/io/dial.h"
#include "client/cli/io/output.h"
#include "proto/defect.h"
#include "proto/proto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define HOLDS_SHOWN     10
#define TEXT_BYTES      256
#define CLOCKS_APART_MS 500
#define CERTIFICATE_AHEAD_S (21 * 86400)
#define CLOCK_MOST_MS   (INT64_MAX / 4) /* so that neither the difference of two nor its rounding overflows */

/* The permissions that the user of the daemon needs at a Redis server; redlockd(8) has the same list. */
static const char redis_access[] = "~lock:* ~redlockd:* &redlockd:* -@all "
				   "+ping +select +eval +evalsha +script|load +time +get +mget +set +del +pttl +info "
				   "+exists +zadd +zrem +zcard +zcount +zrange +zrangebyscore +zrank +zscore "
				   "+zremrangebyscore +pexpire +publish +subscribe +hget +hset +hdel +hgetall +hlen";

/* --- one line for each check: for people, or as a JSON object --- */

enum finding_status {
	FINDING_OK,
	FINDING_WARN, /* works, but something is worse than it could be */
	FINDING_FAIL, /* locks are refused, or less safe than they should be */
};

struct doctor {
	bool json;
	unsigned fails;
	int64_t lease_ms;                 /* from the answer to HELLO; 0: it is not known */
	int64_t nodes, joined;            /* stores */
	int64_t clocks;                   /* how many stores have a known clock */
	int64_t clock_least, clock_most;  /* … how far their clocks are ahead of the clock of the daemon's host, in milliseconds */
	bool memory;
	bool needs_saving; /* there are jobs, or rate limits are in use */
	int64_t quarantined, left_ms; /* stores in quarantine, and how long the last of them stays there */
	unsigned held; /* locks that have been held for too long */
};

/* check: a word for programs. fix: how to correct it; "" for FINDING_OK. */
static void __attribute__((format(printf, 5, 6))) finding_show(struct doctor *f, const char *check, enum finding_status status, const char *fix,
							       const char *format, ...)
{
	static const char *const word[] = {[FINDING_OK] = "ok", [FINDING_WARN] = "warn", [FINDING_FAIL] = "fail"};
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
	json_print_text("{\"check\":", check);
	json_print_text(",\"status\":", word[status]);
	json_print_text(",\"text\":", text);
	json_print_text(",\"fix\":", fix);
	puts("}");
}

/* --- the stores --- */

/* A row of LIST nodes, escaped for a terminal. */
struct store_row {
	const struct redlock_line *line;
	char node[TEXT_BYTES], state[TEXT_BYTES], reason[TEXT_BYTES], cause[TEXT_BYTES];
	enum defect defect; /* the defect for that cause, which may be "" */
};

static void joined_show(struct doctor *w, const struct store_row *s)
{
	const struct defect_row *defect = &defect_table[s->defect];
	int64_t rtt_us = redlock_line_number(s->line, "rtt_us", 0);
	char rtt[RTT_BYTES];

	w->joined++;
	rtt_text(rtt_us, rtt);
	if (s->cause[0])
		finding_show(w, defect->check, defect->grade == DEFECT_WARN ? FINDING_WARN : FINDING_FAIL, defect->advice,
		             "store %s votes, but has a problem: %s", s->node, s->reason);
	else if (!w->memory)
		finding_show(w, "store", FINDING_OK, "", "store %s votes%s%s", s->node, rtt_us ? ", round trip " : "", rtt_us ? rtt : "");
	if (w->lease_ms && rtt_us / 100 > w->lease_ms)
		finding_show(w, "round-trip", FINDING_WARN, "place the server nearer, or set a longer lease",
			     "store %s has a round trip of %s, more than a tenth of the lease of %" PRId64 " ms", s->node, rtt, w->lease_ms);
	if (redlock_line_find(s->line, "saves").p && w->needs_saving)
		finding_show(w, "persistence", FINDING_WARN,
		             "see in its log whether its disk is full; then CONFIG SET appendonly yes, and the same in redis.conf",
		             "store %s does not save to disk: locks do not need that, but jobs and rate limits are lost with its memory", s->node);
}

/* A new store has no locks to forget, but the daemon cannot know that it is new. */
static void quarantine_show(struct doctor *w, const struct store_row *s)
{
	int64_t left_ms = redlock_line_number(s->line, "left_ms", 0);
	char age[AGE_BYTES];

	w->quarantined++;
	w->left_ms = MAX(w->left_ms, left_ms);
	finding_show(w, "quarantine", FINDING_WARN, "only wait", "store %s votes in %s, when each lock that it may have forgotten is over%s%s", s->node,
		     age_text(left_ms, age), s->reason[0] ? ": " : "", s->reason);
}

static void node_row(void *arg, const struct redlock_line *line)
{
	struct doctor *w = arg;
	struct store_row s = {.line = line};
	int64_t clock_ms = MAX(-CLOCK_MOST_MS, MIN(redlock_line_number(line, "clock_ms", 0), CLOCK_MOST_MS));

	field_show(line, "node", s.node, TEXT_BYTES);
	field_show(line, "state", s.state, TEXT_BYTES);
	field_show(line, "reason", s.reason, TEXT_BYTES);
	field_show(line, "cause", s.cause, TEXT_BYTES);
	s.defect = defect_of_word(s.cause);
	w->nodes++;
	w->memory |= field_is(line, "node", "memory");
	if (redlock_line_find(line, "clock_ms").p) {
		w->clock_least = w->clocks ? MIN(w->clock_least, clock_ms) : clock_ms;
		w->clock_most = w->clocks ? MAX(w->clock_most, clock_ms) : clock_ms;
		w->clocks++;
	}
	if (!strcmp(s.state, "joined"))
		joined_show(w, &s);
	else if (!strcmp(s.state, "quarantine") && !s.cause[0])
		quarantine_show(w, &s);
	else if (!strcmp(s.state, "probing") && !s.cause[0])
		finding_show(w, "store", FINDING_WARN, "wait a second; if it stays so, fix the other stores",
		             "store %s is being asked whether it may vote%s%s", s.node, s.reason[0] ? ": " : "", s.reason);
	else /* a store that loads its data only needs time */
		finding_show(w, defect_table[s.defect].check, s.defect == DEFECT_LOADING ? FINDING_WARN : FINDING_FAIL, defect_table[s.defect].advice,
		             "store %s is %s%s%s", s.node, strcmp(s.state, "quarantine") ? s.state : "in quarantine", s.reason[0] ? ": " : "", s.reason);
}

/* If the clocks of all stores agree, that of this host is wrong. */
static void clocks_show(struct doctor *w)
{
	int64_t least = MIN(w->clock_least, 0), most = MAX(w->clock_most, 0), apart_ms = most - least, tenths = (apart_ms + 99) / 100;
	bool alike = w->clocks > 1 && w->clock_most - w->clock_least <= CLOCKS_APART_MS;

	if (apart_ms > CLOCKS_APART_MS && alike)
		finding_show(w, "clocks", FINDING_WARN, "run chrony or another NTP client on this host",
			     "this host's clock is %" PRId64 ".%d s %s the stores'", tenths / 10, (int)(tenths % 10), most > 0 ? "behind" : "ahead of");
	else if (apart_ms > CLOCKS_APART_MS)
		finding_show(w, "clocks", FINDING_WARN, "run chrony or another NTP client on all hosts",
			     "the clocks of this host and of the stores are up to %" PRId64 ".%d s apart", tenths / 10, (int)(tenths % 10));
	else if (!w->memory && w->joined)
		finding_show(w, "clocks", FINDING_OK, "", "the clocks of this host and of the stores agree to %" PRId64 " ms", apart_ms);
}

static void quorum_show(struct doctor *w)
{
	int64_t quorum = w->nodes / 2 + 1;
	char age[AGE_BYTES];

	if (w->joined < quorum && w->joined + w->quarantined >= quorum)
		finding_show(w, "quorum", FINDING_WARN, "only wait; this is normal after a first start",
			     "no quorum yet: enough stores vote in %s, and locks are granted from then on", age_text(w->left_ms, age));
	else if (w->joined < quorum)
		finding_show(w, "quorum", FINDING_FAIL, "fix the stores above until enough of them vote",
			     "no quorum: %" PRId64 " of %" PRId64 " stores vote, and %" PRId64 " are needed for any lock", w->joined, w->nodes, quorum);
	else if (w->memory)
		finding_show(w, "quorum", FINDING_OK, "", "the memory store: locks are of this host only; for several hosts set store: redis");
	else
		finding_show(w, "quorum", FINDING_OK, "", "quorum: %" PRId64 " of %" PRId64 " stores vote, and %" PRId64 " are needed", w->joined,
			     w->nodes, quorum);
	if (w->nodes % 2 == 0)
		finding_show(w, "even", FINDING_WARN, "use an odd number: 1, 3 or 5",
			     "%" PRId64 " stores are an even number: they survive no more failures than %" PRId64, w->nodes, w->nodes - 1);
	clocks_show(w);
}

static void figure_row(void *arg, const struct redlock_line *row)
{
	int64_t value = redlock_line_number(row, "value", 0);
	struct doctor *w = arg;

	w->needs_saving |= (field_is(row, "metric", "rates_admitted_total") || field_is(row, "metric", "rates_refused_total")) && value > 0;
	if (field_is(row, "metric", "journal_writable") && !value)
		finding_show(w, "journal", FINDING_FAIL,
		             "see the log of redlockd for the error: the disk of runtime_dir may be full. If somebody removed it: systemctl restart redlockd",
		             "the journal cannot be written: no session could be resumed after a restart of the daemon");
	if (field_is(row, "metric", "sockets_lost") && value > 0)
		finding_show(w, "sockets", FINDING_FAIL, "see the log of redlockd for the path: remove the file that is there",
		             "nobody can connect to a Unix socket of the daemon: its file was removed, or another one is in its place");
	if (field_is(row, "metric", "audit_writable") && !value)
		finding_show(w, "audit", FINDING_FAIL, "see the log of redlockd for the error: make room on its disk, or its directory again",
		             "the audit log cannot be written: its lines are left out");
	if (field_is(row, "metric", "certificate_expires_seconds") && value <= 0)
		finding_show(w, "certificate", FINDING_FAIL,
		             "see the log of redlockd for its file or server and date: renew the one that ended, and reload; or set a clock that is ahead",
		             "a certificate of the daemon or of a server, or its authority, has ended");
	else if (field_is(row, "metric", "certificate_expires_seconds") && value < CERTIFICATE_AHEAD_S)
		finding_show(w, "certificate", FINDING_WARN, "see the log of redlockd for its file or server and date: renew that in time, and reload",
		             "a certificate of the daemon or of a server, or its authority, ends in %" PRId64 " days", value / 86400);
	if (field_is(row, "metric", "config_last_reload_successful") && !value)
		finding_show(w, "reload", FINDING_FAIL, "correct what `redlockd --check-config` or its log shows, and reload",
		             "the configuration that was read last has an error: the daemon continues with the former one, and a restart would fail");
}

/* --- the daemon --- */

/* The daemon has answered, so it is running. But without these answers doctor cannot check more. */
static void refused_show(struct doctor *f, const struct redlock *c, int outcome)
{
	if (outcome == REDLOCK_REFUSED && !strcmp(redlock_code(c), "LIMIT"))
		finding_show(f, "daemon", FINDING_FAIL, "end connections that nobody needs, or raise that limit: see limits in redlockd(8)",
		             "the daemon takes no more: %s", redlock_errmsg(c));
	else if (outcome == REDLOCK_REFUSED)
		finding_show(f, "rights", FINDING_FAIL, "ask as a user who may look, or as root", "the daemon refuses to show this: %s", redlock_errmsg(c));
	else
		finding_show(f, "daemon", FINDING_FAIL, "see whether its process is stopped or overloaded: systemctl status redlockd", "%s", redlock_errmsg(c));
}

static void unreached_show(struct doctor *f, int error)
{
	if (error == -EACCES || error == -EPERM)
		finding_show(f, "socket", FINDING_FAIL, "make the folders above the socket searchable for this user, and the socket writable (mode 0666)",
			     "the socket of the daemon is not permitted: %s", redlock_errmsg(NULL));
	else
		finding_show(f, "daemon", FINDING_FAIL, "start it, as with systemctl start redlockd, or say where it is with --addr or REDLOCK_ADDR",
			     "no daemon: %s", redlock_errmsg(NULL));
}

static void daemon_show(struct doctor *f, const struct redlock_line *answer, int64_t took_us)
{
	char server[TEXT_BYTES], rtt[RTT_BYTES];

	field_show(answer, "server", server, sizeof(server));
	finding_show(f, "daemon", FINDING_OK, "", "%s answers in %s", server, rtt_text(took_us, rtt));
	if (strcmp(server, "redlockd/" REDLOCKD_VERSION) != 0)
		finding_show(f, "version", FINDING_WARN, "install the same version of both, and restart the daemon after an upgrade",
			     "this is redlock %s, and the daemon is %s", REDLOCKD_VERSION, server);
}

static void lock_row(void *arg, const struct redlock_line *row)
{
	struct doctor *f = arg;
	char lock[TEXT_BYTES], who[TEXT_BYTES], age[AGE_BYTES];

	if (!field_of(row, "alarm").p || f->held++ >= HOLDS_SHOWN)
		return;
	field_show(row, "name", lock, sizeof(lock));
	if (field_is(row, "kind", "semaphore")) {
		finding_show(f, "held", FINDING_WARN, "redlock show has its holders: see whether one hangs; redlock break takes the permits from all of them",
			     "a permit of %s is held for longer than alarm.held", lock);
		return;
	}
	if (!field_show(row, "holder", who, sizeof(who)))
		strcpy(who, "somebody");
	finding_show(f, "held", FINDING_WARN, "see whether the holder hangs; redlock break takes the lock from it",
		     "%s is held by %s for %s, longer than alarm.held", lock, who, age_text(redlock_line_number(row, "held_ms", 0), age));
}

/* Returns 0, or the result of the request that failed. */
static int examine(struct doctor *f, struct redlock *c)
{
	struct redlock_page first = {.size = sizeof(first), .limit = 1}, locks = {.size = sizeof(locks), .limit = 1000};
	int64_t began = redlock_now_us();
	int r = hello(c, "redlock doctor");

	if (r)
		return r;
	daemon_show(f, redlock_answer(c), redlock_now_us() - began);
	f->lease_ms = redlock_line_number(redlock_answer(c), "lease_ms", 0);
	f->needs_saving = !redlock_list(c, REDLOCK_QUEUES, &first, NULL, NULL) && redlock_line_number(redlock_answer(c), "n", 0) > 0;
	r = redlock_stats(c, figure_row, f);
	if (!r)
		r = redlock_list(c, REDLOCK_NODES, NULL, node_row, f);
	if (r)
		return r;
	quorum_show(f);
	r = list_all(c, REDLOCK_LOCKS, &locks, lock_row, f);
	if (f->held > HOLDS_SHOWN)
		finding_show(f, "held", FINDING_WARN, "redlock ls shows all", "%u further locks are held for longer than alarm.held", f->held - HOLDS_SHOWN);
	return r;
}

int doctor_main(const struct invocation *in)
{
	struct doctor f = {.json = in->json};
	struct redlock *c;
	int r;

	if (in->print_acl) {
		printf("ACL SETUSER redlockd on >PASSWORD %s\n", redis_access);
		return EXIT_SUCCESS;
	}
	r = redlock_open(in->addr, ANSWER_TIMEOUT_MS, &c);
	if (r) {
		unreached_show(&f, r);
	} else {
		r = examine(&f, c);
		if (r)
			refused_show(&f, c, r);
		redlock_close(c);
	}
	return f.fails ? EXIT_NO : EXIT_SUCCESS;
}
