/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the load generators share: one thread, one epoll, connections to the daemon that move lines, commands from standard input, figures on standard output. A
 * generator only measures: the program that starts it judges. A generator that cannot do its work ends and says why.
 */
#ifndef LOAD_GEN_H
#define LOAD_GEN_H

#include "daemon/base/buf.h"
#include "daemon/base/instant.h"

#include <stdint.h>

struct peer;

struct peer_kind {
	void (*line)(struct peer *p, char *line, size_t n); /* without its LF; NULL: see bytes */
	void (*bytes)(struct peer *p, const char *bytes, size_t n); /* what comes, unparsed; NULL: see line; both NULL: what comes is only counted */
	void (*room)(struct peer *p);                       /* all that was said is in the socket; NULL: nothing more to say */
	void (*ended)(struct peer *p);                      /* the daemon closed it; the peer is closed by then and may dial again */
	bool deaf;                                          /* never reads */
};

struct peer {
	const struct peer_kind *kind;
	int fd; /* -1: closed */
	unsigned number;
	bool full; /* the socket takes no more for now */
	struct buf in, out;
};

struct gen {
	int epoll;
	int64_t now_us;       /* when the present pass began */
	uint64_t bytes_in, bytes_out;
	bool over;
	void (*command)(const char *word);
	int64_t (*tick)(void); /* after each pass: microseconds until it is wanted again; < 0: not before something happens */
};

extern struct gen gen;

int64_t gen_clock(void); /* microseconds */
/* address: one, or several with commas between. */
void gen_run(const char *address, void (*command)(const char *word), int64_t (*tick)(void));
void gen_tell(const char *format, ...) __attribute__((format(printf, 1, 2))); /* one line of figures */

/* Waits while the daemon's backlog is full. where: which of the addresses. */
void peer_dial_at(struct peer *p, const struct peer_kind *kind, unsigned number, unsigned where);
void peer_dial(struct peer *p, const struct peer_kind *kind, unsigned number); /* the first of them */
unsigned gen_addresses(void);
void peer_close(struct peer *p);
/* What is said while input is read is sent once all input is read. */
void peer_say(struct peer *p, const char *bytes, size_t n);
void peer_printf(struct peer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void peer_flush(struct peer *p);
void peer_await_room(struct peer *p); /* room is called in a later pass, also when there is room now */

/* Durations, and what can be said of them. */
struct samples {
	uint32_t *us;
	size_t n, cap;
	bool sorted;
};

void samples_add(struct samples *s, int64_t us);
uint32_t samples_at(struct samples *s, double share); /* 0.99: the 99th percentile; 0 without samples */
void samples_clear(struct samples *s);

/* One of these is the generator; each gets what stands behind its name on the command line. */
void hold_main(int argc, char **argv);
void mix_main(int argc, char **argv);
void flood_main(int argc, char **argv);

#endif
