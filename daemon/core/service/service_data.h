/* SPDX-License-Identifier: BSD-2-Clause */
/* What a service consists of: for service.c and service_view.c alone. */
#ifndef CORE_SERVICE_DATA_H
#define CORE_SERVICE_DATA_H

#include "daemon/core/engine/engine.h"
#include "daemon/core/service/service.h"
#include "daemon/core/session/request_context.h"
#include "daemon/core/session/session.h"

struct service {
	struct core core;
	struct engine engine;
	struct session_table sessions;
	struct request_context context;
	bool stepping;
	enum { RUN_NEW, RUN_RESTORING, RUN_BEGUN } run; /* the records of the previous run come first */
};

#endif
