/* SPDX-License-Identifier: BSD-2-Clause */
/* A server inside the test, on the test's own event base, that looks like Redis as far as its orders go: it may fall silent, babble or hang up. */
#ifndef UNIT_FAKE_H
#define UNIT_FAKE_H

#include <event2/util.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct event_base;
struct evconnlistener;
struct bufferevent;
struct redisReader;

#define FAKE_SHA    "$40\r\n0123456789abcdef0123456789abcdef01234567\r\n"
#define FAKE_PEERS  32
#define FAKE_SCRIPT "*2\r\n:1\r\n*4\r\n$1\r\nG\r\n:42\r\n:9000\r\n$0\r\n\r\n" /* the answer to one ACQUIRE */

struct fake;

struct fake_peer {
	struct fake *fake;
	struct bufferevent *bev; /* NULL: gone */
	struct redisReader *reader;
	const char *slow; /* what is still to be said, a byte in each pass */
};

struct fake {
	struct event_base *base;
	struct evconnlistener *listener;
	char dir[32];
	struct sockaddr_storage address;
	socklen_t address_n;
	/* orders */
	const char *greeting; /* said to whoever connects, who is then hung up; NULL: shake hands */
	const char *hands;    /* the answer to every command of the handshake; NULL: the right ones; "": none */
	const char *script;   /* the answer to every script call; "": none */
	bool slowly;          /* one byte in each pass of the loop */
	bool cuts;            /* hangs up when a script call came */
	bool deaf;            /* does not read */
	/* what came */
	unsigned connections, auths, selects, loads, pings, scripts;
	struct fake_peer peer[FAKE_PEERS];
};

void fake_start(struct fake *f, struct event_base *base, bool tcp);
void fake_stop(struct fake *f);
void fake_listen(struct fake *f);                           /* deaf no more */
void fake_hear(struct fake *f, const char *text, size_t n); /* as if its first peer had sent it */
void fake_hang_up(struct fake *f);                          /* on everyone */

#endif
