/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands of cli.def. Each returns the exit code of redlock.
 */
#ifndef CLIENT_COMMANDS_H
#define CLIENT_COMMANDS_H

#include "client/cli/io/invocation.h"

int run_main(const struct invocation *in);
int hold_main(const struct invocation *in);
int once_main(const struct invocation *in);
int lead_main(const struct invocation *in);
int work_main(const struct invocation *in);
int defer_main(const struct invocation *in);
int retry_main(const struct invocation *in);
int drop_main(const struct invocation *in);
int queues_main(const struct invocation *in);
int jobs_main(const struct invocation *in);
int move_main(const struct invocation *in);
int passwd_main(const struct invocation *in);
int ls_main(const struct invocation *in);
int show_main(const struct invocation *in);
int clients_main(const struct invocation *in);
int nodes_main(const struct invocation *in);
int stats_main(const struct invocation *in);
int doctor_main(const struct invocation *in);
int top_main(const struct invocation *in);
int ping_main(const struct invocation *in);
int complete_main(const struct invocation *in);
int recent_main(const struct invocation *in);
int watch_main(const struct invocation *in);
int break_main(const struct invocation *in);
int kill_main(const struct invocation *in);
int drain_main(const struct invocation *in);
int rate_main(const struct invocation *in);
int raw_main(const struct invocation *in);

#endif
