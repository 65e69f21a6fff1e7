/* SPDX-License-Identifier: BSD-2-Clause */
/* The program of this process as it was started: its file and its arguments, to start what stands in that file now. */
#ifndef DAEMON_PROGRAM_H
#define DAEMON_PROGRAM_H

struct program {
	char path[4096];    /* what /proc/self/exe said; "": it could not be read */
	char *const *argv;  /* borrowed from main() */
};

void program_init(struct program *i, char *const *argv); /* at the start: once the file is replaced, the link says so instead */
/* The program takes the place of this one, with the same arguments and the environment as it is. Returns only if that fails, a negative errno. */
int program_exec(const struct program *i);

#endif
