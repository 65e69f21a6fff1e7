/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How hold --release reaches the process that holds a lock for a script: by a socket in the abstract namespace, whose name is made of the user, the script's
 * process and the lock. Both ends check that the other one is of the same user, or of root.
 */
#ifndef CLIENT_RELEASE_SOCKET_H
#define CLIENT_RELEASE_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

/* A listening descriptor, or a negative errno. */
int release_socket_listen(pid_t pid, const char *name);
/* Whether such a process holds the lock for pid. */
bool release_socket_is_taken(pid_t pid, const char *name);
/* Takes a connection: a descriptor that release_socket_answer closes, or -1 if there is none, or it is of somebody else. */
int release_socket_accept(int listening);
/* Tells the exit code to whoever asked. -1 is allowed. */
void release_socket_answer(int fd, int code);
/* Asks the holder to let go, and waits until it has. The exit code, or a negative errno: there is no such holder. */
int release_socket_ask(pid_t pid, const char *name);

#endif
