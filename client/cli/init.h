/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * redlock as process 1 of a container. For process 1 the kernel drops each signal that has no handler there, and process 1 must reap all orphans. So process 1
 * only passes on signals and reaps, and a child does what redlock was asked to do.
 */
#ifndef CLIENT_INIT_H
#define CLIENT_INIT_H

/* Returns in the child. Process 1 exits as the child does, after all keepers have ended. Must not be called by any other process. */
void init_run(void);

#endif
