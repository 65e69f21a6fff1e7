/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state file of the memory store: what one life of the daemon leaves to the next, `<runtime_dir>/state`.
 *
 *   found         what stood there                              names                              guard of the new life
 *   STATE_FIRST   nothing, or a reboot that no client survived  none                               trust: join at once
 *   STATE_CLEAN   a clean end                                   kept until their deadlines         trust: join at once
 *   STATE_CRASH   a life that did not end, or no sound file     unknown                            strict: refuse everything for G
 *
 * A folder that does not survive a reboot has no file then. Where other hosts can reach the daemon, no file is a crash as well until the boot is
 * longer ago than G: what was promised before it is believed no longer then. So it is where the container began less than G ago, since the folder
 * of the one before may have gone with it. A crash of another boot waits likewise: `rebooted`.
 *
 * Names are kept with their values: refused to everybody but to whoever knows the value and so may extend or adopt the lease.
 *
 * "Trust" is GUARD_TRUST_FIRST_START for the service, whatever the configuration says; the memory store starts without a marker.
 * In every case the store's clock and fence go on above all that was given out before: the fence never runs further ahead of the clock
 * than the skew, a join lifts it to clock + skew, and the clock never falls back. So the skew must not shrink from life to life.
 *
 * Use, in this order, with the directory locked against a second daemon and before the first listener is opened:
 *
 *   state_open(&state, &conf, &found, &why)    log found and why; on error end with it: not even the directory can be opened
 *   memory_new({.epoch_us = state.epoch_us, …})
 *   state_restore(&state, memory)              names and fence
 *   state_mark(&state, memory, now)            from here on a crash is a crash; on error see below
 *   …
 *   when state_due(&state) is reached          state_mark again, before the event of that pass is stepped
 *   …
 *   state_finish(&state, memory, now)          the service has stopped: no grant comes after it
 *   state_close(&state)
 *
 * A life that is over before its quarantine was cannot vouch for its predecessor: state_finish then leaves the mark (STATE_UNSURE), and
 * the next life is a crash again.
 *
 * Errors (negative errno: -ENOSPC, -EROFS, -EACCES, -EDQUOT …) are logged, and the daemon goes on. While no mark could be written, not
 * even over the old file in place, the next life after a crash would find what stood there before: say so at level error. A failed
 * mark is due again after STATE_RETRY_US; a failed finish leaves the mark, so the next life takes it for a crash.
 * See ALGORITHMS.md, Memory store.
 */
#ifndef STORE_STATE_H
#define STORE_STATE_H

#include "daemon/base/buf.h"
#include "daemon/store/record.h"

struct memory;

/*
 * A mark covers the store's clock until RESERVE after it was written and is written anew after RENEW. Only the first one waits for the disk:
 * the kernel writes the others out long before RESERVE - RENEW is over, and the loop must not wait for a disk.
 */
#define STATE_RESERVE_US (120 * SEC)
#define STATE_RENEW_US   (60 * SEC)
#define STATE_RETRY_US   (5 * SEC)
#define STATE_FILE_MAX   ((size_t)1 << 29) /* bytes; a larger file is not ours */

enum state_found { STATE_FIRST, STATE_CLEAN, STATE_CRASH };

enum { STATE_UNSURE = 1 };

/* boot_id: /proc/sys/kernel/random/boot_id without its LF; "" = unknown: then no deadline is taken for over. */
struct state_conf {
	const char *dir;
	const char *boot_id;
	bool remote; /* clients of other hosts can reach this life: it listens beyond Unix sockets and loopback */
	int64_t lease_us; /* the longest promise of this life: max_lease and max_delay */
	int64_t guard_us; /* G: after that long nobody believes in such a promise */
	struct instant now;
	struct instant began; /* of the container that this life runs in; 0: that of the boot */
	int64_t wall_us;
};

struct state {
	int64_t epoch_us; /* for memory_conf */
	int dir;
	enum state_found found;
	bool rebooted; /* CRASH: what is unknown was promised before this boot, so G counts from its beginning */
	bool marked;
	struct record mine; /* what this life writes */
	struct instant due;
	struct buf file; /* the predecessor's, until state_restore */
	struct record past;
	int64_t shift_us; /* from its deadlines to ours */
	int64_t lease_us;
	bool remote;
	struct instant past_until; /* then its promises are over; a crash before then must wait for them, too */
};

/* Reads what the predecessor left. 0, or a negative errno when the directory cannot be opened; why is "" or a word for the log. */
int state_open(struct state *s, const struct state_conf *conf, enum state_found *ret_found, const char **ret_why)
	__attribute__((warn_unused_result));
void state_restore(struct state *s, struct memory *m);
int state_mark(struct state *s, const struct memory *m, struct instant now) __attribute__((warn_unused_result));
struct instant state_due(const struct state *s);
/* 0, STATE_UNSURE, or a negative errno (-EFBIG: more than STATE_FILE_MAX). */
int state_finish(struct state *s, struct memory *m, struct instant now) __attribute__((warn_unused_result));
void state_close(struct state *s);

#endif
