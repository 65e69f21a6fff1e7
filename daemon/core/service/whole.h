/* SPDX-License-Identifier: BSD-2-Clause */
/* What a service consists of: for service.c and view.c alone. */
#ifndef CORE_WHOLE_H
#define CORE_WHOLE_H

#include "daemon/core/engine/engine.h"
#include "daemon/core/service/service.h"
#include "daemon/core/session/commander.h"
#include "daemon/core/session/session.h"

struct service {
	struct core core;
	struct engine engine;
	struct session_table sessions;
	struct commander commander;
	bool stepping;
	enum { RUN_NEW, RUN_RESTORING, RUN_BEGUN } run; /* the records of the previous run come first */
};

#endif
