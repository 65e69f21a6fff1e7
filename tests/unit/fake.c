/* SPDX-License-Identifier: BSD-2-Clause */
/* See fake.h. */
#include "tests/unit/fake.h"

#include <check.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static void peer_close(struct fake_peer *p)
{
	if (!p->bev)
		return;
	bufferevent_free(p->bev);
	redisReaderFree(p->reader);
	p->bev = NULL;
}

static void peer_say(struct fake_peer *p, const char *text)
{
	bufferevent_write(p->bev, text, strlen(text));
}

static void peer_say_on(evutil_socket_t fd, short what, void *context)
{
	struct fake_peer *p = context;
	struct timeval soon = {0, 1};

	(void)fd, (void)what;
	if (!p->bev || !*p->slow)
		return;
	bufferevent_write(p->bev, p->slow++, 1);
	ck_assert_int_eq(event_base_once(p->fake->base, -1, EV_TIMEOUT, peer_say_on, p, &soon), 0);
}

/* False: the peer is gone. */
static bool peer_serve_script(struct fake_peer *p)
{
	struct fake *f = p->fake;

	f->scripts++;
	if (f->cuts) {
		peer_close(p);
		return false;
	}
	if (f->slowly) {
		p->slow = f->script;
		peer_say_on(-1, 0, p);
	} else {
		peer_say(p, f->script);
	}
	return true;
}

static bool peer_serve(struct fake_peer *p, const char *verb)
{
	struct fake *f = p->fake;

	if (!strcmp(verb, "EVALSHA") || !strcmp(verb, "EVAL"))
		return peer_serve_script(p);
	if (!strcmp(verb, "PING")) {
		f->pings++;
		peer_say(p, "+PONG\r\n");
		return true;
	}
	f->auths += !strcmp(verb, "AUTH");
	f->selects += !strcmp(verb, "SELECT");
	f->loads += !strcmp(verb, "SCRIPT");
	peer_say(p, f->hands ? f->hands : strcmp(verb, "SCRIPT") ? "+OK\r\n" : FAKE_SHA);
	return true;
}

static void peer_hear(struct fake_peer *p, const char *text, size_t n)
{
	redisReply *r = NULL;
	bool goes_on = true;

	ck_assert_int_eq(redisReaderFeed(p->reader, text, n), REDIS_OK);
	while (goes_on) {
		ck_assert_msg(redisReaderGetReply(p->reader, (void **)&r) == REDIS_OK, "%s", p->reader->errstr);
		if (!r)
			return;
		ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
		goes_on = peer_serve(p, r->element[0]->str);
		freeReplyObject(r);
	}
}

static void peer_on_read(struct bufferevent *bev, void *context)
{
	struct fake_peer *p = context;
	char chunk[4096];
	size_t n;

	while (p->bev && (n = bufferevent_read(bev, chunk, sizeof(chunk))))
		peer_hear(p, chunk, n);
}

void fake_hear(struct fake *f, const char *text, size_t n)
{
	peer_hear(&f->peer[0], text, n);
}

static void peer_on_event(struct bufferevent *bev, short what, void *context)
{
	(void)bev;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		peer_close(context);
}

static void fake_on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from, int n, void *context)
{
	struct fake *f = context;
	struct fake_peer *p = &f->peer[f->connections++ % FAKE_PEERS];

	(void)listener, (void)from, (void)n;
	if (f->greeting) {
		ck_assert_int_ge(write(fd, f->greeting, strlen(f->greeting)), 0);
		close(fd);
		return;
	}
	peer_close(p);
	p->fake = f;
	p->reader = redisReaderCreate();
	p->bev = bufferevent_socket_new(f->base, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(p->bev, peer_on_read, NULL, peer_on_event, p);
	bufferevent_enable(p->bev, f->deaf ? EV_WRITE : EV_READ | EV_WRITE);
}

static socklen_t address_make(struct fake *f, bool tcp)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&f->address;
	struct sockaddr_un *sun = (struct sockaddr_un *)&f->address;

	if (tcp) {
		in->sin_family = AF_INET;
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(*in);
	}
	sun->sun_family = AF_UNIX;
	(void)snprintf(sun->sun_path, sizeof(sun->sun_path), "%s/s", f->dir);
	return sizeof(*sun);
}

void fake_start(struct fake *f, struct event_base *base, bool tcp)
{
	*f = (struct fake){.base = base, .script = FAKE_SCRIPT};
	strcpy(f->dir, "/tmp/fake.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(f->dir));
	f->address_n = address_make(f, tcp);
	f->listener = evconnlistener_new_bind(base, fake_on_accept, f, LEV_OPT_CLOSE_ON_FREE, -1, (struct sockaddr *)&f->address,
					      (int)f->address_n);
	ck_assert_ptr_nonnull(f->listener);
	if (tcp)
		ck_assert_int_eq(getsockname(evconnlistener_get_fd(f->listener), (struct sockaddr *)&f->address, &f->address_n),
				 0);
}

void fake_listen(struct fake *f)
{
	unsigned i;

	f->deaf = false;
	for (i = 0; i < FAKE_PEERS; i++) {
		if (f->peer[i].bev)
			bufferevent_enable(f->peer[i].bev, EV_READ);
	}
}

void fake_hang_up(struct fake *f)
{
	unsigned i;

	for (i = 0; i < FAKE_PEERS; i++)
		peer_close(&f->peer[i]);
}

void fake_stop(struct fake *f)
{
	fake_hang_up(f);
	evconnlistener_free(f->listener);
	if (f->address.ss_family == AF_UNIX)
		unlink(((struct sockaddr_un *)&f->address)->sun_path);
	rmdir(f->dir);
}
