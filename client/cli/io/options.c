/* SPDX-License-Identifier: BSD-2-Clause */
/* See options.h. Each setter returns NULL, or what is wrong with the value. */
#include "client/cli/io/options.h"

#include "proto/proto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *addr_set(struct invocation *in, const char *value)
{
	in->addr = value;
	return *value ? NULL : "is empty";
}

static const char *tls_ca_set(struct invocation *in, const char *value)
{
	in->tls.ca_file = value;
	return *value ? NULL : "is empty";
}

static const char *tls_cert_set(struct invocation *in, const char *value)
{
	in->tls.cert_file = value;
	return *value ? NULL : "is empty";
}

static const char *tls_key_set(struct invocation *in, const char *value)
{
	in->tls.key_file = value;
	return *value ? NULL : "is empty";
}

static const char *tls_name_set(struct invocation *in, const char *value)
{
	in->tls.server_name = value;
	return *value ? NULL : "is empty";
}

/* The library reads these two of the environment. They hold no secret, so a command that runs under the lock may have them. */
static const char *user_set(struct invocation *in, const char *value)
{
	(void)in;
	if (!*value)
		return "is empty";
	return setenv("REDLOCK_USER", value, 1) ? "cannot be kept: no memory" : NULL;
}

static const char *secret_file_set(struct invocation *in, const char *value)
{
	(void)in;
	if (!*value)
		return "is empty";
	return setenv("REDLOCK_SECRET_FILE", value, 1) ? "cannot be kept: no memory" : NULL;
}

static const char *duration_set(const char *value, int64_t *ret_ms)
{
	static char hint[96];
	int64_t us = duration_parse(span_of(value));

	if (us >= 0) {
		*ret_ms = (us + 999) / 1000;
		return NULL;
	}
	if (us == DURATION_TOO_LARGE)
		return "is more than ten years";
	if (us != DURATION_NO_UNIT)
		return "is no duration: 500ms, 10s, 1.5s, 2m, 1h";
	snprintf(hint, sizeof(hint), "lacks a unit; did you mean %.32ss?", value);
	return hint;
}

static const char *wait_set(struct invocation *in, const char *value)
{
	in->wait_given = true;
	if (strcmp(value, "forever") != 0)
		return duration_set(value, &in->wait_ms);
	in->wait_ms = REDLOCK_FOREVER;
	return NULL;
}

static const char *ttl_set(struct invocation *in, const char *value)
{
	const char *wrong = duration_set(value, &in->ttl_ms);

	return wrong || in->ttl_ms ? wrong : "must be more than 0";
}

static const char *keep_set(struct invocation *in, const char *value)
{
	return duration_set(value, &in->keep_ms);
}

static const char *delay_set(struct invocation *in, const char *value)
{
	in->delay_given = true;
	return duration_set(value, &in->delay_ms);
}

static const char *defer_to_set(struct invocation *in, const char *value)
{
	in->defer_to = value;
	return *value ? NULL : "is empty";
}

static const char *from_set(struct invocation *in, const char *value)
{
	in->from = value;
	return *value ? NULL : "is empty";
}

static const char *lock_set(struct invocation *in, const char *value)
{
	in->lock = value;
	return *value ? NULL : "is empty";
}

static const char *id_set(struct invocation *in, const char *value)
{
	in->id = value;
	return *value ? NULL : "is empty";
}

static const char *exit_set(struct invocation *in, const char *value)
{
	size_t digits = strspn(value, "0123456789");
	unsigned long code = strtoul(value, NULL, 10);

	if (!digits || digits > 3 || value[digits] || code > 255)
		return "is no exit code: 0 to 255";
	in->busy_exit = (int)code;
	return NULL;
}

static const char *priority_set(struct invocation *in, const char *value)
{
	if (value[0] < '0' || value[0] > '9' || value[1])
		return "is no priority: 0 to 9";
	in->priority = value[0] - '0';
	return NULL;
}

static const char *count_set(const char *value, int64_t *ret_n)
{
	size_t digits = strspn(value, "0123456789");

	if (!digits || digits > 10 || value[digits])
		return "is no number: 0 to 9999999999";
	*ret_n = strtoll(value, NULL, 10);
	return NULL;
}

static const char *limit_set(struct invocation *in, const char *value)
{
	return count_set(value, &in->limit);
}

static const char *cost_set(struct invocation *in, const char *value)
{
	return count_set(value, &in->cost);
}

static const char *every_set(struct invocation *in, const char *value)
{
	const char *wrong = duration_set(value, &in->every_ms);

	return wrong ? wrong : in->every_ms > 0 ? NULL : "is no time: 1h, 1d";
}

static const char *status_set(struct invocation *in, const char *value)
{
	(void)value;
	in->status = true;
	return NULL;
}

static const char *per_set(struct invocation *in, const char *value)
{
	return duration_set(value, &in->per_ms);
}

static const char *slots_set(struct invocation *in, const char *value)
{
	int n = 0;

	for (; *value >= '0' && *value <= '9' && n <= 1024; value++)
		n = 10 * n + *value - '0';
	if (*value || n < 1 || n > 1024)
		return "is no number of slots: 1 to 1024";
	in->slots = n;
	return NULL;
}

static const char *pid_set(struct invocation *in, const char *value)
{
	int64_t pid;

	if (count_set(value, &pid) || pid < 1 || pid > INT32_MAX)
		return "is no process id; in a shell script it is $$";
	in->pid = (pid_t)pid;
	return NULL;
}

static const char *release_set(struct invocation *in, const char *value)
{
	in->release = !value;
	return NULL;
}

static const char *note_set(struct invocation *in, const char *value)
{
	in->note = value;
	return NULL;
}

static const char *trace_set(struct invocation *in, const char *value)
{
	in->trace = *value ? value : NULL;
	if (!in->trace || trace_is_sound(span_of(value)))
		return NULL;
	return "is no traceparent of W3C Trace Context, as in 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
}

static const char *in_set(struct invocation *in, const char *value)
{
	in->bounded = true;
	return duration_set(value, &in->in_ms);
}

static const char *stay_set(struct invocation *in, const char *value)
{
	in->stay = !value;
	return NULL;
}

static const char *shared_set(struct invocation *in, const char *value)
{
	in->shared = !value;
	return NULL;
}

static const char *any_set(struct invocation *in, const char *value)
{
	in->any = !value;
	return NULL;
}

static const char *quiet_set(struct invocation *in, const char *value)
{
	in->quiet = !value;
	return NULL;
}

static const char *print_acl_set(struct invocation *in, const char *value)
{
	in->print_acl = !value;
	return NULL;
}

static const char *once_set(struct invocation *in, const char *value)
{
	in->once = !value;
	return NULL;
}

static const char *long_set(struct invocation *in, const char *value)
{
	in->whole = !value;
	return NULL;
}

static const char *json_set(struct invocation *in, const char *value)
{
	in->json = !value;
	return NULL;
}

static const char *help_set(struct invocation *in, const char *value)
{
	in->help = !value;
	return NULL;
}

static const char *version_set(struct invocation *in, const char *value)
{
	in->version = !value;
	return NULL;
}

const struct cli_command cli_commands[CLI_COMMANDS] = {
#define CLI_COMMAND(id, word, operands, least, most, wraps, function, help)                                                      \
	[CLI_##id] = {word, operands, least, most, wraps, help},
#include "client/cli/cli.def"
};

#define ON(id)  (UINT64_C(1) << CLI_##id)
#define ANY     ANY_COMMAND
#define WAITS   (ON(RUN) | ON(TRY) | ON(HOLD) | ON(LEAD) | ON(ONCE) | ON(WORK))
#define QUERIES ((ANY & ~WAITS & ~ON(TOP) & ~ON(MOVE)) | ON(ONCE))

const struct option_row option_rows[OPTIONS] = {
#define CLI_OPTION(id, ...) [OPTION_##id] = {__VA_ARGS__},
#include "client/cli/cli.def"
};
