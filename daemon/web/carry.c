/* SPDX-License-Identifier: BSD-2-Clause */
/* A restart, as the web listener sees it: requests end, and the listening sockets go to the next process. Who connects meanwhile waits there. */
#include "daemon/web/web.h"

#include "daemon/base/mem.h"
#include "daemon/web/audience.h"
#include "daemon/web/internal.h"
#include "daemon/web/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void web_pause(struct web *w)
{
	w->paused = true;
	visits_accept(w, false);
	streams_end(w);
	audiences_end(w);
	if (w->room)
		w->room->end(w, "the daemon restarts: ask again");
	askers_end(w);
}

void web_resume(struct web *w)
{
	w->paused = false;
	visits_accept(w, true);
}

bool web_is_idle(const struct web *w)
{
	return visits_are_over(w);
}

struct packing {
	struct fdlist *fds;
	size_t n;
};

/* evhttp closes its own copy. */
static void listener_pack(struct evhttp_bound_socket *bound, void *context)
{
	struct packing *p = context;
	int fd = fcntl(evhttp_bound_socket_get_fd(bound), F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return;
	fdlist_add(p->fds, fd);
	p->n++;
}

size_t web_pack(struct web *w, struct fdlist *fds)
{
	struct packing packing = {fds, 0};

	evhttp_foreach_bound_socket(w->http, listener_pack, &packing);
	for (unsigned i = 0; i < w->listeners; i++) {
		mem_free(w->listener[i].path); /* or it would be unlinked */
		w->listener[i].path = NULL;
	}
	return packing.n;
}
