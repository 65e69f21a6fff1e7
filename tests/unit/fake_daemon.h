/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon that plays a transcript: a process of its own on a Unix socket in a folder of its own. It serves one connection after
 * the other as the script says, and ends with 0 if all was as expected; fake_daemon_end() holds it to that.
 *
 * A script is lines, ended by "\n":
 *   < text    a request comes that begins with text; if text ends in "$", it is all of the request
 *   > text    says text and a line end; >> text says it without a line end
 *   . text    says text, byte by byte, and a line end
 *   * text    answers every CHECK with text, until something else comes; that is left for the next line
 *   % text    the same, for as long as $FAKE_CHECKS says, then CHECKs stay unanswered until the client goes
 *   =         the client goes now
 *   @ path    no process lives whose id stands in that file, at this moment; ~ path: soon
 *   ! signal  sends the signal, a number, to the process whose id stands in the file "pid" of the folder
 *   ^ name    leaves a number in a file of that name in the folder
 *   # n       reads n bytes of a request, and leaves the rest unread
 *   +         hangs up, and takes the next connection
 *   - ms      hangs up, and nobody listens for that long
 */
#ifndef UNIT_FAKE_DAEMON_H
#define UNIT_FAKE_DAEMON_H

#include <sys/types.h>

struct fake_daemon {
	char folder[64], addr[96];
	pid_t pid;
};

/* It listens when this returns. */
void fake_daemon_begin(struct fake_daemon *f, const char *script);
/* Fails the test if it was not played to its end. */
void fake_daemon_end(struct fake_daemon *f);
/* Ends it wherever it is in its script. */
void fake_daemon_break(struct fake_daemon *f);
/* A path in its folder; static memory, four at a time. */
const char *fake_daemon_path(const struct fake_daemon *f, const char *name);

/* What redlock left. $FOLDER is the fake's folder for the commands that it runs. */
struct outcome {
	int code; /* -1: it was killed */
	char out[8192], err[8192];
};

/* Runs the command line, at the daemon's address, until it has ended. argv without argv[0]; at most 16 words, NULL-terminated. */
void redlock_run(const struct fake_daemon *f, struct outcome *ret_outcome, const char *const *argv);
/* The same in two steps. */
pid_t redlock_begin(const struct fake_daemon *f, const char *const *argv);
void redlock_end(const struct fake_daemon *f, pid_t pid, struct outcome *ret_outcome);
/* What it has printed so far. */
void redlock_peek(const struct fake_daemon *f, struct outcome *ret_outcome);

/* One run of redlock; the script is played to its end. */
void played(struct outcome *ret_outcome, const char *script, const char *const *argv);
#define PLAYED(o, script, ...) played(o, script, (const char *const[]){__VA_ARGS__, NULL})

/* The number in a file, once there is one; fails the test after ten seconds. */
long fake_daemon_number(const char *path);

#endif
