/* SPDX-License-Identifier: BSD-2-Clause */
/* See records.h. It must never end the process: what it cannot read is refused. */
#include "daemon/restart/records.h"

#include "daemon/base/buf.h"
#include "daemon/base/mem.h"
#include "daemon/core/event/journal.h"
#include "daemon/files/frame.h"
#include "daemon/net/carried.h"
#include "daemon/net/carry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_MOST ((size_t)1 << 32)

/* FILE */
#define THE_LOCK   "lock"
#define THE_FOLDER "folder"
#define THE_WEB    "web"
#define THE_API    "api"

/* --- writing ------------------------------------------------------------------------------------------------------------ */

static void put(struct buf *to, const struct journal_record *r)
{
	char room[JOURNAL_RECORD_MAX + JOURNAL_LINE_MOST];

	frame_append(to, (struct span){room, journal_encode(r, room)});
}

static void erase(struct buf *b)
{
	if (buf_length(b) > 0)
		explicit_bzero(buf_begin(b), buf_length(b));
}

static int64_t place_number(size_t place)
{
	return place == NO_PLACE ? 0 : (int64_t)place + 1;
}

static void put_process(struct buf *to, const struct carried *c)
{
	char mark[33];

	snprintf(mark, sizeof(mark), "%016" PRIx64 "%016" PRIx64, c->mark[0], c->mark[1]);
	put(to, &(struct journal_record){.kind = JOURNAL_PROCESS,
	                                 .secret = span_of(mark),
	                                 .since_us = c->started.us,
	                                 .until_us = c->paused.us,
	                                 .line = span_of(c->runtime_dir),
	                                 .sequence = (int64_t)c->audit_left_out,
	                                 .flags = c->audit_torn ? JOURNAL_TORN : 0});
}

static void put_file(struct buf *to, const char *what, size_t place, const char *where)
{
	if (place != NO_PLACE)
		put(to, &(struct journal_record){.kind = JOURNAL_FILE, .name = span_of(what), .place = place_number(place), .line = span_of(where)});
}

static void put_listener_of_web(struct buf *to, const char *what, const struct carried_web *w)
{
	for (size_t i = 0; i < w->fds; i++)
		put_file(to, what, w->fd + i, w->where);
}

static void put_bytes(struct buf *to, const char *bytes, size_t n, int64_t flags)
{
	for (size_t at = 0, part; at < n; at += part) {
		part = n - at < JOURNAL_LINE_MOST ? n - at : JOURNAL_LINE_MOST;
		put(to, &(struct journal_record){.kind = JOURNAL_BYTES, .line = {bytes + at, part}, .flags = flags});
	}
}

static void put_connection(struct buf *to, const struct carried_conn *c)
{
	bool failed = c->state == CONN_FAILED || c->state == CONN_DISMISSED;

	put(to, &(struct journal_record){
		.kind = JOURNAL_SOCKET,
		.sequence = (int64_t)c->session,
		.place = failed ? 0 : place_number(c->place),
		.line = {c->share, c->share_n},
		.flags = (c->is_unix ? JOURNAL_IS_UNIX : 0) | (c->skipping ? JOURNAL_SKIPPING : 0) | (c->ended ? JOURNAL_ENDED : 0) |
		         (c->half_closed ? JOURNAL_HALF : 0) | (c->mute ? JOURNAL_MUTE : 0) | (c->awaits ? JOURNAL_AWAITS : 0) |
		         (c->is_refused ? JOURNAL_REFUSED : 0) | (c->state == CONN_CLOSING ? JOURNAL_CLOSING : 0) |
		         (c->state == CONN_LINGERING ? JOURNAL_LINGERING : 0) | (failed ? JOURNAL_FAILED : 0)});
	put_bytes(to, c->rest, c->rest_n, 0);
	put_bytes(to, c->out, c->out_n, JOURNAL_OUTPUT);
}

static void put_net(struct buf *to, const struct net_parcel *p)
{
	for (size_t i = 0; i < p->listeners; i++) {
		const struct carried_listener *l = &p->listener[i];

		put(to, &(struct journal_record){.kind = JOURNAL_LISTENER, .place = place_number(l->place), .line = span_of(l->path ? l->path : ""),
		                                 .uid = (int64_t)l->device, .pid = (int64_t)l->inode, .flags = l->tls ? JOURNAL_TLS : 0});
	}
	for (size_t i = 0; i < p->conns; i++)
		put_connection(to, &p->conn[i]);
}

static int memfd_of(const struct buf *b)
{
	int fd = memfd_create("redlockd-records", MFD_CLOEXEC);
	size_t n = buf_length(b);
	ssize_t done;

	if (fd < 0)
		return -errno;
	for (size_t at = 0; at < n; at += (size_t)done) {
		done = pwrite(fd, buf_begin(b) + at, n - at, (off_t)at);
		if (done <= 0) {
			close(fd);
			return -EIO;
		}
	}
	return fd;
}

int records_write(const struct carried *c, const struct buf *service)
{
	struct buf b = {0};
	int fd;

	put_process(&b, c);
	put_file(&b, THE_LOCK, c->lock_fd, "");
	put_file(&b, THE_FOLDER, c->folder_fd, "");
	put_listener_of_web(&b, THE_WEB, &c->web);
	put_listener_of_web(&b, THE_API, &c->api);
	put_net(&b, c->net);
	buf_append(&b, buf_begin(service), buf_length(service));
	fd = memfd_of(&b);
	erase(&b); /* it may contain secrets */
	buf_release(&b);
	return fd;
}

/* --- reading ------------------------------------------------------------------------------------------------------------ */

static char *text_copy(struct span text)
{
	return mem_copy(text.p ? text.p : "", text.n);
}

static size_t place_of(const struct journal_record *r)
{
	return r->place > 0 ? (size_t)r->place - 1 : NO_PLACE;
}

static bool take_process(struct carried *c, const struct journal_record *r)
{
	char mark[33] = "";

	if (c->runtime_dir || r->secret.n != 32 || r->line.n == 0)
		return false;
	memcpy(mark, r->secret.p, 32);
	if (sscanf(mark, "%16" SCNx64 "%16" SCNx64, &c->mark[0], &c->mark[1]) != 2) /* NOLINT(cert-err34-c): 16 digits fit */
		return false;
	c->runtime_dir = text_copy(r->line);
	c->started.us = r->since_us;
	c->paused.us = r->until_us;
	c->audit_left_out = (uint64_t)r->sequence;
	c->audit_torn = r->flags & JOURNAL_TORN;
	return true;
}

static void take_listener_of_web(struct carried_web *w, const struct journal_record *r)
{
	if (w->fds++ > 0)
		return;
	w->fd = place_of(r);
	mem_free(w->where);
	w->where = text_copy(r->line);
}

/* A descriptor of an unknown kind is closed at the end. */
static bool take_file(struct carried *c, const struct journal_record *r)
{
	if (span_equal(r->name, SPAN(THE_LOCK)))
		c->lock_fd = place_of(r);
	else if (span_equal(r->name, SPAN(THE_FOLDER)))
		c->folder_fd = place_of(r);
	else if (span_equal(r->name, SPAN(THE_WEB)))
		take_listener_of_web(&c->web, r);
	else if (span_equal(r->name, SPAN(THE_API)))
		take_listener_of_web(&c->api, r);
	return true;
}

static bool take_listener(struct net_parcel *p, const struct journal_record *r)
{
	struct carried_listener *l;

	p->listener = mem_grow(p->listener, p->listeners + 1, sizeof(*p->listener));
	l = &p->listener[p->listeners++];
	*l = (struct carried_listener){.place = place_of(r), .device = (dev_t)r->uid, .inode = (ino_t)r->pid, .tls = r->flags & JOURNAL_TLS};
	l->path = r->line.n > 0 ? text_copy(r->line) : NULL;
	return true;
}

static enum conn_state state_of(int64_t flags)
{
	return flags & JOURNAL_FAILED      ? CONN_FAILED
	       : flags & JOURNAL_LINGERING ? CONN_LINGERING
	       : flags & JOURNAL_CLOSING   ? CONN_CLOSING
	       : flags & JOURNAL_ENDED     ? CONN_ENDED
	                                   : CONN_OPEN;
}

static bool take_connection(struct net_parcel *p, const struct journal_record *r)
{
	struct carried_conn *c;

	if ((p->conns & (p->conns + 1)) == 0)
		p->conn = mem_grow(p->conn, 2 * p->conns + 1, sizeof(*p->conn));
	c = &p->conn[p->conns++];
	/* The service will say again whether it is to be read. */
	*c = (struct carried_conn){.session = (uint64_t)r->sequence,
	                           .place = place_of(r),
	                           .share_n = r->line.n,
	                           .share = r->line.n > 0 ? text_copy(r->line) : NULL,
	                           .state = (unsigned char)state_of(r->flags),
	                           .fate = GONE_RESTART,
	                           .is_unix = r->flags & JOURNAL_IS_UNIX,
	                           .reading = true,
	                           .skipping = r->flags & JOURNAL_SKIPPING,
	                           .ended = r->flags & JOURNAL_ENDED,
	                           .half_closed = r->flags & JOURNAL_HALF,
	                           .mute = r->flags & JOURNAL_MUTE,
	                           .awaits = r->flags & JOURNAL_AWAITS,
	                           .is_refused = r->flags & JOURNAL_REFUSED};
	return (c->session == 0) == (c->state >= CONN_CLOSING);
}

static bool take_bytes(const struct net_parcel *p, const struct journal_record *r)
{
	struct carried_conn *c = p->conns > 0 ? &p->conn[p->conns - 1] : NULL;
	bool output = r->flags & JOURNAL_OUTPUT;
	char **bytes;
	size_t *n;

	if (!c || r->line.n == 0)
		return false;
	bytes = output ? &c->out : &c->rest;
	n = output ? &c->out_n : &c->rest_n;
	*bytes = mem_grow(*bytes, *n + r->line.n, 1);
	memcpy(*bytes + *n, r->line.p, r->line.n);
	*n += r->line.n;
	return true;
}

/* False: the record makes no sense. The service checks its own records. */
static bool take(struct carried *c, struct span bytes)
{
	struct journal_record r;
	int decoded = journal_decode(bytes, &r);

	if (decoded == JOURNAL_UNKNOWN)
		return true;
	if (decoded < 0 || (!c->runtime_dir && r.kind != JOURNAL_PROCESS))
		return false;
	switch (r.kind) {
	case JOURNAL_PROCESS:
		return take_process(c, &r);
	case JOURNAL_FILE:
		return take_file(c, &r);
	case JOURNAL_LISTENER:
		return take_listener(c->net, &r);
	case JOURNAL_SOCKET:
		return take_connection(c->net, &r);
	case JOURNAL_BYTES:
		return take_bytes(c->net, &r);
	default:
		return true;
	}
}

/* NULL, or what is wrong. */
static const char *all_take(struct carried *c)
{
	enum frame last;
	struct span record;

	c->rest = (struct span){buf_begin(&c->records), buf_length(&c->records)};
	while ((last = frame_next(&c->rest, &record)) == FRAME_WHOLE)
		if (!take(c, record))
			return "a record makes no sense";
	if (last == FRAME_DAMAGED || c->rest.n > 0)
		return "records are damaged";
	c->rest = (struct span){buf_begin(&c->records), buf_length(&c->records)};
	return c->runtime_dir ? NULL : "records are missing";
}

bool records_next(struct carried *c, struct span *ret_record)
{
	while (frame_next(&c->rest, ret_record) == FRAME_WHOLE)
		if (ret_record->n >= 2 && (unsigned char)ret_record->p[1] < JOURNAL_OUTER)
			return true;
	return false;
}

struct carried *carried_new(void)
{
	struct carried *c = mem_alloc(sizeof(*c));

	c->net = mem_alloc(sizeof(*c->net));
	c->lock_fd = c->folder_fd = NO_PLACE;
	c->web.where = mem_copy("", 0);
	c->api.where = mem_copy("", 0);
	return c;
}

void carried_free(struct carried *c)
{
	if (c->net)
		net_parcel_free(c->net);
	erase(&c->records);
	buf_release(&c->records);
	mem_free(c->runtime_dir);
	mem_free(c->web.where);
	mem_free(c->api.where);
	fdlist_release(&c->fds);
	mem_free(c);
}

struct carried *records_read(int fd, const char **ret_why)
{
	struct carried *c = carried_new();
	int r = file_read_whole(fd, FILE_MOST, &c->records);

	*ret_why = r < 0 ? strerror(-r) : all_take(c);
	if (!*ret_why)
		return c;
	carried_free(c);
	return NULL;
}
