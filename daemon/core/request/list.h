/* SPDX-License-Identifier: BSD-2-Clause */
/* LIST. */
#ifndef CORE_LIST_H
#define CORE_LIST_H

#include "daemon/core/session/request_context.h"

void serve_LIST(struct request_context *x, struct session *s);

#endif
