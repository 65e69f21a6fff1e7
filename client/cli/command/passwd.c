/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * passwd: prints the line of a user for auth.users_file of redlockd. It reads the secret from the input, or asks for it on a terminal.
 */
#include "client/cli/io/invocation.h"
#include "client/cli/io/output.h"

#include <crypt.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define NAME_BYTES_MOST 256
#define SECRET_BYTES    1025

/* A name ends at the first blank of its line, and a line that begins with # is a comment. */
static bool name_fits(const char *name)
{
	if (!*name || *name == '#' || strlen(name) > NAME_BYTES_MOST)
		return false;
	for (; *name; name++)
		if ((unsigned char)*name <= ' ' || *name == 0x7f)
			return false;
	return true;
}

/* Reads one line. False: the input has no line, or it is too long. */
static bool line_read(char secret[SECRET_BYTES])
{
	char *end;

	if (!fgets(secret, SECRET_BYTES, stdin))
		return false;
	end = secret + strcspn(secret, "\r\n");
	if (!*end && !feof(stdin))
		return false;
	*end = '\0';
	return true;
}

/* Asks on the terminal, without echo. A signal now would end redlock with the echo off, so signals are blocked. */
static bool line_ask(const char *prompt, char secret[SECRET_BYTES])
{
	struct termios before, quiet;
	sigset_t all, mask;
	bool good;

	if (tcgetattr(STDIN_FILENO, &before))
		return false;
	quiet = before;
	quiet.c_lflag &= ~(tcflag_t)(ECHO | ISIG);
	quiet.c_lflag |= ECHONL;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	fputs(prompt, stderr);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
	good = line_read(secret);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return good && !strchr(secret, 3); /* Ctrl-C arrives as a byte */
}

static bool secret_take(char secret[SECRET_BYTES])
{
	char again[SECRET_BYTES];
	bool same;

	if (!isatty(STDIN_FILENO))
		return line_read(secret);
	if (!line_ask("secret: ", secret) || !line_ask("again: ", again))
		return false;
	same = !strcmp(secret, again);
	explicit_bzero(again, sizeof(again));
	if (!same)
		complain("the two are not the same");
	return same;
}

/* Hashes with yescrypt, which is slow and needs memory; if the system lacks it, with its preferred method. 0 or a negative errno. */
static int hash_print(const char *name, const char *secret)
{
	char salt[CRYPT_GENSALT_OUTPUT_SIZE];
	struct crypt_data *data = calloc(1, sizeof(*data));
	const char *hash = NULL;

	if (!data)
		return -ENOMEM;
	errno = 0;
	if (crypt_gensalt_rn("$y$", 0, NULL, 0, salt, sizeof(salt)) || crypt_gensalt_rn(NULL, 0, NULL, 0, salt, sizeof(salt)))
		hash = crypt_rn(secret, salt, data, (int)sizeof(*data));
	if (hash && *hash == '$')
		printf("%s %s\n", name, hash);
	explicit_bzero(data, sizeof(*data));
	free(data);
	return hash ? 0 : errno ? -errno : -ENOSYS;
}

int passwd_main(const struct invocation *in)
{
	char secret[SECRET_BYTES];
	int r;

	if (!name_fits(in->operand)) {
		complain("a user has a name of 1 to %d bytes without blanks, which does not begin with #", NAME_BYTES_MOST);
		return EX_USAGE;
	}
	if (!secret_take(secret) || !*secret) {
		complain("the input has no secret: one line of at most %d bytes", SECRET_BYTES - 2);
		return EX_DATAERR;
	}
	r = hash_print(in->operand, secret);
	explicit_bzero(secret, sizeof(secret));
	if (r)
		complain("the secret cannot be hashed: %s", strerror(-r));
	return r ? EX_UNAVAILABLE : EXIT_SUCCESS;
}
