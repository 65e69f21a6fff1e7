/* SPDX-License-Identifier: BSD-2-Clause */
/* See program.h. */
#include "daemon/main/program.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define REPLACED " (deleted)" /* the file was replaced after the start: its successor has its name */

void program_init(struct program *i, char *const *argv)
{
	ssize_t n = readlink("/proc/self/exe", i->path, sizeof(i->path) - 1);

	i->path[n > 0 ? n : 0] = '\0';
	i->argv = argv;
	if (n > (ssize_t)strlen(REPLACED) && strcmp(i->path + n - strlen(REPLACED), REPLACED) == 0)
		i->path[n - (ssize_t)strlen(REPLACED)] = '\0';
}

int program_exec(const struct program *i)
{
	if (!i->path[0])
		return -ENOENT;
	execve(i->path, i->argv, environ);
	return -errno;
}
