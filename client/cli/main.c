/* SPDX-License-Identifier: BSD-2-Clause */
/* redlock(1). The tests link everything except this file. */
#include "client/cli/io/invocation.h"

int main(int argc, char **argv)
{
	return cli_main(argc, argv);
}
