/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public functions of a connection (redlock.h): opening and closing it, arbitrary requests, and its state. lock.c has those about locks.
 */
#include "client/lib/display.h"
#include "client/lib/exchange.h"
#include "client/lib/recovery.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#define ADDRESS_BYTES 512
#define SECRET_BYTES  1025
#define QUIT_MS   1000
#define NOT_A_TIMEOUT "a timeout is more than 0 ms"

static _Thread_local char open_message[MESSAGE_BYTES]; /* why the last redlock_open of this thread failed */

static bool timeout_is_valid(int64_t timeout_ms)
{
	return timeout_ms > 0 && timeout_ms <= INT64_MAX / US_PER_MS;
}

#define open_failed(err, ...) redlock_error_set(open_message, sizeof(open_message), err, __VA_ARGS__)

static const char *open_hint(int error)
{
	switch (error) {
	case ENOENT:
	case ECONNREFUSED:
		return "; is it running?";
	case EHOSTUNREACH:
		return "; does the name resolve? The path of a socket has a '/'";
	default:
		return "";
	}
}

static int open_unreached(int err, const char *addr)
{
	const char *flaw = err == -EINVAL ? address_flaw(addr) : err == -ENOTSOCK ? "the file at this path is not a socket" : NULL;
	char shown[ADDRESS_BYTES];

	shown_text(span_of(*addr ? addr : "''"), shown, sizeof(shown));
	return open_failed(err, "cannot reach redlockd at %s: %s%s", shown, flaw ? flaw : strerror(-err),
			   flaw ? "" : open_hint(-err));
}

/* The handshake of TLS. */
static int open_shake(struct redlock *c, int64_t until)
{
	struct pollfd fd = {.fd = c->channel.fd};
	char why[MESSAGE_BYTES / 2];
	enum tls_shake wants;

	c->channel.tls = redlock_secure->dial(c->channel.fd, c->host);
	if (!c->channel.tls)
		return open_failed(-ENOMEM, "out of memory");
	while ((wants = redlock_secure->shake(c->channel.tls, why, sizeof(why))) == TLS_READ || wants == TLS_WRITE) {
		if (redlock_now_us() >= until)
			return open_failed(-ETIMEDOUT, "redlockd at %s does not answer the handshake of TLS; does it listen there by listen.tls?", c->place);
		fd.events = wants == TLS_READ ? POLLIN : POLLOUT;
		(void)!poll(&fd, 1, boottime_poll_ms(until));
	}
	return wants == TLS_DONE ? 0 : open_failed(-EPROTO, "no TLS with redlockd at %s: %s", c->place, why);
}

static int open_connect(struct redlock *c, const char *addr)
{
	int r;

	shown_text(span_of(addr), c->place, sizeof(c->place));
	if (address_is_tls(addr, c->host) && !redlock_secure)
		return open_failed(-EPROTONOSUPPORT, "this program speaks no TLS: it must call redlock_use_tls before it opens %s", addr);
	r = address_connect(addr, c->timeout_ms, &c->address);
	if (r < 0)
		return open_unreached(r, addr);
	c->channel.fd = r;
	return *c->host ? open_shake(c, boottime_after(c->timeout_ms)) : 0;
}

/* --- authentication --- */

/* Reads the first line of the file, without its line end. It uses no buffer, because the line is a secret. */
static int secret_read(const char *path, char secret[SECRET_BYTES])
{
	FILE *file = fopen(path, "re");
	bool whole;
	int r = 0;

	if (!file)
		return -errno;
	setvbuf(file, NULL, _IONBF, 0);
	if (!fgets(secret, SECRET_BYTES, file))
		r = ferror(file) ? -errno : -EINVAL;
	whole = !r && (strchr(secret, '\n') || feof(file));
	fclose(file);
	if (!whole)
		return r ? r : -EINVAL;
	secret[strcspn(secret, "\r\n")] = '\0';
	return *secret ? 0 : -EINVAL;
}

/*
 * Finds the user of this process and its secret: $REDLOCK_USER, and the first line of the file $REDLOCK_SECRET_FILE, or $REDLOCK_SECRET. A secret
 * never comes from a command line, which everybody can read. 1: there is no user. -EINVAL: the secret is missing, empty, binary or too long. Else an
 * errno of reading the file. The caller wipes the secret. *ret_user is borrowed from the environment.
 */
static int secret_find(const char **ret_user, char secret[SECRET_BYTES])
{
	const char *user = secure_getenv("REDLOCK_USER"), *path = secure_getenv("REDLOCK_SECRET_FILE"), *text = secure_getenv("REDLOCK_SECRET");

	if (!user || !*user)
		return 1;
	*ret_user = user;
	if (path && *path)
		return secret_read(path, secret);
	if (!text || !*text || strlen(text) >= SECRET_BYTES)
		return -EINVAL;
	memcpy(secret, text, strlen(text) + 1);
	return 0;
}

/* The caller closes the connection after a failure. */
static int open_authenticate(struct redlock *c)
{
	char secret[SECRET_BYTES], shown[PLACE_BYTES];
	const char *user;
	int r = secret_find(&user, secret);

	if (r > 0)
		return 0;
	if (r < 0)
		return open_failed(r, "the secret of $REDLOCK_USER, in $REDLOCK_SECRET_FILE or $REDLOCK_SECRET, cannot be used: %s",
				   r == -EINVAL ? "it is one line of 1 to 1023 bytes" : strerror(-r));
	r = redlock_auth(c, user, secret);
	explicit_bzero(secret, sizeof(secret));
	shown_text(span_of(user), shown, sizeof(shown));
	if (r)
		open_failed(0, "redlockd at %s does not accept $REDLOCK_USER (%s): %.200s", c->place, shown, c->message);
	return r > 0 ? -EACCES : r;
}

int redlock_open(const char *addr, int64_t timeout_ms, struct redlock **ret_connection)
{
	char standard[ADDRESS_BYTES];
	struct redlock *c;
	int r = addr ? 0 : redlock_address(standard, sizeof(standard));

	if (r)
		return open_failed(r, "cannot reach redlockd: $REDLOCK_ADDR is too long");
	if (!timeout_is_valid(timeout_ms))
		return open_failed(-EINVAL, NOT_A_TIMEOUT);
	c = calloc(1, sizeof(*c));
	if (!c)
		return open_failed(-ENOMEM, "out of memory");
	c->timeout_ms = timeout_ms;
	c->channel.fd = -1;
	STAILQ_INIT(&c->pushes.arrived);
	STAILQ_INIT(&c->watches.all);
	r = open_connect(c, addr ? addr : standard);
	if (!r)
		r = open_authenticate(c);
	c->user = 0; /* the caller has made no request yet: after fork(2) either process may make the first */
	if (r)
		redlock_close(c);
	else
		*ret_connection = c;
	return r;
}

/* --- the end of a session with grace: QUIT frees at once what it holds --- */

static bool quit_sent(struct redlock *c, int64_t until)
{
	struct pollfd fd = {.fd = c->channel.fd, .events = POLLOUT};

	while (!conn_drain(c) && channel_unsent(&c->channel) && redlock_now_us() < until)
		(void)!poll(&fd, 1, boottime_poll_ms(until));
	return !channel_unsent(&c->channel) && !c->channel.mute;
}

/* Reads until the daemon closes: unread data would turn the close into a reset. */
static void quit_await_close(struct redlock *c, int64_t until)
{
	struct pollfd fd = {.fd = c->channel.fd, .events = POLLIN};
	int more = 0;

	while (more >= 0 && redlock_now_us() < until) {
		c->channel.in_n = 0;
		more = more > 0 || poll(&fd, 1, boottime_poll_ms(until)) > 0 ? channel_read(&c->channel) : 0;
	}
}

/* Sends QUIT, if this process owns the session, and waits at most a second for the daemon to close. */
static void quit_session(struct redlock *c)
{
	/* A tagged QUIT overtakes a waiting LOCK. During recovery it must not overtake RESUME, so it has no tag. */
	const char *quit = c->link == LINK_UP && c->pending.in_flight ? "@quit QUIT" : "QUIT";
	int64_t until = boottime_after(MIN(c->timeout_ms, QUIT_MS));

	if (!c->greeting.resumes || c->greeting.owner != getpid() || c->channel.fd < 0 || c->link == LINK_CONNECTING)
		return;
	/* A stopped daemon reads QUIT when it continues. */
	if (!channel_append(&c->channel, quit, strlen(quit)) && quit_sent(c, until) && !c->broken)
		quit_await_close(c, until);
}

int redlock_set_timeout(struct redlock *c, int64_t timeout_ms)
{
	if (!timeout_is_valid(timeout_ms))
		return conn_error(c, -EINVAL, NOT_A_TIMEOUT);
	c->timeout_ms = timeout_ms;
	return 0;
}

/* Wipes and frees it; NULL is allowed. */
static void secret_wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

void redlock_close(struct redlock *c)
{
	if (!c)
		return;
	quit_session(c);
	/* Only the process that uses the connection ends TLS; another one that shares it must not. */
	if (c->channel.tls && c->user == getpid() && c->link != LINK_CONNECTING)
		redlock_secure->end(c->channel.tls);
	holds_release(&c->holds);
	unchecked_jobs_release(&c->unchecked);
	pushes_release(&c->pushes);
	subscriptions_release(&c->watches);
	secret_wipe(c->auth);
	channel_close(&c->channel);
	buffer_release(&c->channel.in);
	buffer_release(&c->channel.out);
	buffer_release(&c->pending.line);
	buffer_release(&c->draft.line);
	buffer_release(&c->answer.room);
	buffer_release(&c->passing.room);
	free(c);
}

/* --- any request --- */

/* The daemon never answers a blank line or a comment, so waiting for an answer would not end. */
static bool line_is_answered(const char *line)
{
	line += strspn(line, " \t\r");
	return *line && *line != '#' && !strchr(line, '\n');
}

int redlock_send(struct redlock *c, const char *line)
{
	if (!c->broken && !c->pending.in_flight && !line_is_answered(line))
		return conn_error(c, -EINVAL, "not a request: empty, a comment, or more than one line");
	draft_verb(&c->draft, line);
	return exchange_send(c, PENDING_ONCE, "", REDLOCK_FOREVER);
}

int redlock_request(struct redlock *c, const char *line, int64_t wait_ms, void (*row)(void *arg, const struct redlock_line *line),
		    void *arg)
{
	int r = redlock_send(c, line);

	if (r)
		return r;
	c->pending.busy_ms = wait_ms;
	c->row = row;
	c->row_arg = arg;
	return await_answer(c, 0);
}

static void greeting_hello(struct greeting *g, const struct redlock_session *session, struct draft *d)
{
	draft_verb(d, "HELLO 1");
	draft_quoted(d, " name=", session->label);
	draft_positive(d, "heartbeat", session->heartbeat_ms, "ms");
	if (session->grace_ms > 0 || g->resumes)
		draft_ms(d, "grace", session->grace_ms);
	g->grace = session->grace_ms > 0;
}

int redlock_hello(struct redlock *c, const struct redlock_session *session)
{
	struct redlock_session s;
	int r = conn_take(c, &s, session);

	if (r)
		return r;
	if (s.grace_ms > 0 && c->owner[0])
		return conn_error(c, -EINVAL, "a session with grace has no owners");
	greeting_hello(&c->greeting, &s, &c->draft);
	if (c->draft.n >= HELLO_BYTES)
		return conn_error(c, -EMSGSIZE, "the label is too long");
	return await_answer(c, exchange_send(c, PENDING_HELLO, "", 0));
}

int redlock_auth(struct redlock *c, const char *user, const char *secret)
{
	struct draft *d = &c->draft;
	char *line = NULL;
	int r;

	draft_verb(d, "AUTH");
	draft_quoted(d, " ", user);
	draft_quoted(d, " ", secret); /* must be the last field: if the line grew after it, the secret would stay in freed memory */
	if (!d->error && !(line = strdup(d->line.p)))
		r = conn_break(c, -ENOMEM, "out of memory");
	else
		r = await_answer(c, exchange_send(c, PENDING_ONCE, "", 0));
	if (!c->pending.in_flight && c->pending.line.p)
		explicit_bzero(c->pending.line.p, c->pending.line.size);
	if (d->line.p)
		explicit_bzero(d->line.p, d->line.size);
	secret_wipe(r ? line : c->auth);
	if (!r)
		c->auth = line;
	return r;
}

/* --- the state of a connection --- */

const char *redlock_session_id(const struct redlock *c)
{
	return c->greeting.session;
}

const char *redlock_session_secret(const struct redlock *c)
{
	return c->greeting.secret;
}

bool redlock_away(const struct redlock *c)
{
	return c->link != LINK_UP;
}

const char *redlock_errmsg(const struct redlock *c)
{
	return c ? c->message : open_message;
}

const char *redlock_code(const struct redlock *c)
{
	return c->answered && c->answer.parsed.kind == LINE_ERR ? c->code : "";
}

const struct redlock_line *redlock_answer(const struct redlock *c)
{
	return c->answered ? &c->answer : NULL;
}

const struct redlock_line *redlock_next_push(struct redlock *c)
{
	return pushes_next(&c->pushes);
}

bool redlock_in_flight(const struct redlock *c)
{
	return c->pending.in_flight;
}
