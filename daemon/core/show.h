/* SPDX-License-Identifier: BSD-2-Clause */
/* SHOW: who has a name, and who waits for it. The daemon asks the stores for what it does not know. */
#ifndef CORE_SHOW_H
#define CORE_SHOW_H

#include "daemon/core/commander.h"

void serve_SHOW(struct commander *x, struct session *s);
/* Answers a SHOW that asked the stores: by what the daemon knows, and by what they said. False: it is held back, and told by show_tell(). */
bool show_answer(struct commander *x, struct session *s, const struct pending *p);
void show_tell(struct commander *x, struct session *s, const struct pending *p);

#endif
