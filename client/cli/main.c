/* SPDX-License-Identifier: BSD-2-Clause */
/* redlock(1). All else is linked into the tests too. */
#include "client/cli/io/invocation.h"

int main(int argc, char **argv)
{
	return cli_main(argc, argv);
}
