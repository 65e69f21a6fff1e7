/* SPDX-License-Identifier: BSD-2-Clause */
/* The program of this process as it was started: its file and its arguments, to start what is now in that file. */
#ifndef DAEMON_PROGRAM_H
#define DAEMON_PROGRAM_H

struct program {
	char path[4096];    /* from /proc/self/exe; "": it could not be read */
	char *const *argv;  /* borrowed from main() */
};

void program_init(struct program *i, char *const *argv); /* at the start, because after a replacement of the file the link has another text */
/* The program replaces this one, with the same arguments and the present environment. Returns only if that fails, a negative errno. */
int program_exec(const struct program *i);

#endif
