/* SPDX-License-Identifier: BSD-2-Clause */
/* A redis-server of a test's own in a folder of its own: a Unix socket, and a loopback port when asked for. It can be stopped and started again. */
#ifndef UNIT_SERVER_H
#define UNIT_SERVER_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <sys/types.h>

struct server {
	char dir[32], path[64]; /* path: its socket */
	int port;               /* 0: none */
	pid_t pid;
	int log;             /* its standard output */
	redisContext *admin; /* NULL while it is loading or stopped */
};

void server_make(struct server *s, bool with_port);             /* the folder and the port */
void server_start(struct server *s, const char *const *option); /* "--x", "1", …, NULL; returns when it answers */
void server_begin(struct server *s, const char *const *option); /* returns when it listens; it may still be loading */
void server_kill(struct server *s);                             /* SIGKILL; the folder stays */
void server_remove(struct server *s);                           /* both */

/* Fails the test on an error; the text of the reply, good until the next one ("" for numbers and arrays). */
const char *server_tell(struct server *s, const char *format, ...);
const char *server_tell_line(struct server *s, const char *line); /* words between blanks */
redisContext *server_connect(const struct server *s);             /* another client */

#endif
