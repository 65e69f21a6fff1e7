/* SPDX-License-Identifier: BSD-2-Clause */
/* hiredis formats these commands, because they are rare. Pure. */
#include "daemon/redis/handshake.h"
#include "daemon/base/mem.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#define SECRET_PREFIX 8 /* servers cut texts that they quote, so the first bytes of a secret count as the secret */

static void command_append(struct buf *out, int argc, const char **argv, const size_t *length)
{
	char *text = NULL;
	long long n = redisFormatCommandArgv(&text, argc, argv, length);

	if (n < 0)
		mem_exhausted();
	buf_append(out, text, (size_t)n);
	free(text);
}

void handshake_auth(struct buf *out, const char *user, const char *password)
{
	const char *argv[] = {"AUTH", user ? user : password, password};

	command_append(out, user ? 3 : 2, argv, NULL);
}

void handshake_select(struct buf *out, unsigned database)
{
	char number[16];
	const char *argv[] = {"SELECT", number};

	(void)snprintf(number, sizeof(number), "%u", database);
	command_append(out, 2, argv, NULL);
}

void handshake_load(struct buf *out, struct span script)
{
	const char *argv[] = {"SCRIPT", "LOAD", script.p};
	const size_t length[] = {6, 4, script.n};

	command_append(out, 3, argv, length);
}

void handshake_eval(struct buf *out)
{
	const char *argv[] = {"EVAL", HANDSHAKE_EVAL, "0"};

	command_append(out, 3, argv, NULL);
}

void handshake_ping(struct buf *out)
{
	const char *argv[] = {"PING"};

	command_append(out, 1, argv, NULL);
}

void handshake_role(struct buf *out)
{
	const char *argv[] = {"INFO", "replication"};

	command_append(out, 2, argv, NULL);
}

void handshake_what(struct buf *out)
{
	const char *argv[] = {"INFO", "server"};

	command_append(out, 2, argv, NULL);
}

void handshake_where(struct buf *out, const char *master)
{
	const char *argv[] = {"SENTINEL", "get-master-addr-by-name", master};

	command_append(out, 3, argv, NULL);
}

void handshake_subscribe(struct buf *out, const char *channel)
{
	const char *argv[] = {"SUBSCRIBE", channel};

	command_append(out, 2, argv, NULL);
}

static bool text_betrays(struct span text, const char *secret)
{
	size_t n = secret ? strnlen(secret, SECRET_PREFIX) : 0;

	return n && memmem(text.p, text.n, secret, n);
}

static size_t first_word(struct span text)
{
	const char *blank = text.n ? memchr(text.p, ' ', text.n) : NULL;

	return blank ? (size_t)(blank - text.p) : text.n;
}

void handshake_reason(struct span text, const char *secret, char *ret_reason, size_t size)
{
	size_t word = first_word(text), i;

	if (text_betrays((struct span){text.p + word, text.n - word}, secret) ||
	    text_betrays((struct span){text.p, word}, secret)) {
		/* An error code is in capitals. Any other first word may be the secret itself. */
		for (i = 0; i < word && text.p[i] >= 'A' && text.p[i] <= 'Z'; i++)
			;
		(void)snprintf(ret_reason, size, "%.*s (the text is withheld: it repeats the password)",
			       i == word && word < 24 ? (int)word : 0, text.p);
		return;
	}
	if (text.n >= size)
		text.n = size - 1;
	for (i = 0; i < text.n; i++)
		ret_reason[i] = text.p[i] >= ' ' && text.p[i] < 127 ? text.p[i] : '?';
	ret_reason[i] = 0;
}
