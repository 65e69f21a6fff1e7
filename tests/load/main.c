/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Load for a redlockd, many connections from one process. It says "ready", takes commands on standard input, a word a line, answers with lines of
 * figures, and ends with its input.
 *
 *   build/load hold ADDRESS SESSIONS LOCKS WINDOW WAIT PREFIX    sessions that take LOCKS names each and keep them
 *   build/load mix ADDRESS CLIENTS THINK_MS PREFIX SEED          clients that LOCK and UNLOCK a name of their own and think in between
 *   build/load flood ADDRESS KIND WIDTH [PER_SECOND]             badly behaved clients, WIDTH at a time; see flood.c
 *
 * ADDRESS: the path of a Unix socket, or an IPv4 address with a port.
 */
#include "tests/load/gen.h"

#include <err.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

int main(int argc, char **argv)
{
	static const struct {
		const char *word;
		void (*main)(int argc, char **argv);
		int least;
	} modes[] = {{"hold", hold_main, 6}, {"mix", mix_main, 5}, {"flood", flood_main, 3}};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (argc >= 2 + modes[i].least && strcmp(argv[1], modes[i].word) == 0) {
			modes[i].main(argc - 2, argv + 2);
			return 0;
		}
	errx(2,
	     "usage: load hold ADDRESS SESSIONS LOCKS WINDOW WAIT PREFIX | mix ADDRESS CLIENTS THINK_MS PREFIX SEED | flood ADDRESS KIND WIDTH [PER_SECOND]");
}
