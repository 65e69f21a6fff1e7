/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket of a link, and what its stream knows. Its timers begin anew. */
#include "daemon/redis/link_carry.h"
#include "daemon/base/clock.h"
#include "daemon/redis/link_parts.h"
#include "daemon/redis/socket.h"

bool link_is_quiet(const struct link *l)
{
	return stream_is_quiet(&l->stream);
}

bool link_is_plain(const struct link *l)
{
	return !l->tls;
}

void link_pack(struct link *l, struct link_parcel *p, struct fdlist *fds)
{
	p->fd = fdlist_add(fds, l->fd);
	stream_pack(&l->stream, &p->stream);
	l->fd = -1;
	link_hang_up(l);
}

void link_unpack(struct link *l, const struct link_parcel *p, int fd, bool reload)
{
	struct instant now = clock_boottime();

	socket_keep(fd, l->conf->stall_us);
	l->fd = fd;
	l->error = 0;
	l->full = false;
	l->suspect = false;
	departure_init(&l->departure);
	l->state = LINK_READY;
	stream_unpack(&l->stream, &p->stream, reload, now);
	link_watch_socket(l);
	link_hand_over(l);
	link_watch(l, now);
}
