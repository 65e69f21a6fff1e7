/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state file of the memory store, `<runtime_dir>/state`: what one run of the daemon leaves to the next.
 *
 *   found         previous run                                  names                              guard of this run
 *   STATE_FIRST   none, or a reboot that no client survived     none                               trust: join at once
 *   STATE_CLEAN   a clean end                                   kept until their deadlines         trust: join at once
 *   STATE_KEPT    no clean end, in this boot, and its keyfile   kept until their deadlines         trust: join at once
 *   STATE_CRASH   no clean end otherwise, or no sound file      unknown                            strict: refuse everything for G
 *
 * A run that has handed over its state leaves a mark that is not clean. If that state cannot be used, and there is no file, or one of a clean end, then
 * that run had another directory: `elsewhere`. That is STATE_CRASH as well.
 *
 * The directory may not survive a reboot or the end of a container. So if other hosts can reach the daemon, a missing file counts as a crash until G after the
 * boot, or the start of the container: from then on no client relies on an earlier lease. After a crash in an earlier boot G counts from the boot, too:
 * `rebooted`.
 *
 * Names are kept with their values. A kept name is refused to all but the holder, who knows the value and may extend or adopt the lease.
 *
 * "Trust" is GUARD_TRUST_FIRST_START for the service, whatever the configuration says; the memory store starts without a marker. In every case the fence
 * continues above all tokens that were granted before. It never runs further ahead of the store's clock than the skew, a join lifts it to clock + skew, and the
 * clock never goes back. So the skew must not shrink from run to run.
 *
 * Use, in this order, with the directory locked against a second daemon and before the first listener is opened:
 *
 *   state_open(&state, &conf, &found, &why)    log found and why; end on an error: the directory cannot be opened
 *   memory_new({.epoch_us = state.epoch_us, .file = state.keys, …})
 *   state_restore(&state, memory)              names and fence
 *   state_mark(&state, memory, now)            from here on a crash is detected; on error see below
 *   …
 *   when state_due(&state, memory) is reached          state_mark again, before the event of that pass is stepped
 *   …
 *   state_finish(&state, memory, now)          the service has stopped: no grant comes after it
 *   state_close(&state)
 *
 * A run that ends during its quarantine cannot report a clean end for the run before it: state_finish then leaves the mark (STATE_UNSURE), and
 * the next run finds a crash.
 *
 * The mark names the keyfile of its run (keyfile.h), once this has all names of the run before, or these are over. So the file never names a keyfile that lacks
 * a name on which clients rely. If there is no space for the keyfile, or for one of its keys, the next marks name none, until there is space; see
 * state_loses_names.
 *
 * Errors (negative errno: -ENOSPC, -EROFS, -EACCES, -EDQUOT …) are logged, and the daemon goes on. While no mark could be written, not even in place over the
 * old file, the next run would find the old file after a crash: log that at level error. A failed mark is due again after STATE_RETRY_US. A failed finish
 * leaves the mark, so the next run finds a crash. Not thread-safe. See ALGORITHMS.md, Memory store.
 */
#ifndef STORE_STATE_H
#define STORE_STATE_H

#include "daemon/base/buf.h"
#include "daemon/base/instant.h"
#include "daemon/store/keyfile.h"
#include "proto/span.h"

/*
 * The format of a state file: little-endian; a header of fixed size, names with values and deadlines, and a checksum over all of
 * it. A file that is cut, damaged, too long or of another version is refused. Pure: no files, no clocks.
 *
 *   0 magic   8 version   12 kind ('R' running, 'C' clean)   16 epoch_us   24 clock_us   32 fence   40 written_us   48 flags (1 remote)   52 keyfile
 *   56 names  64 bytes of names   72 boot id, padded with NUL   136 lease_us   144 {u32 length of the name, u32 of the value, i64 until_us, name, value} …
 *   then u64 SipHash-2-4
 */
#define STATEFILE_BOOT_MAX 64

struct statefile {
	bool clean;  /* the daemon ended properly; false: it runs, or crashed */
	bool remote; /* clients on other hosts could reach the daemon */
	char boot_id[STATEFILE_BOOT_MAX];
	int64_t epoch_us; /* server clock - CLOCK_BOOTTIME, in this boot */
	int64_t clock_us; /* clean: the server clock when the file was written; else: an upper bound of the server clock */
	int64_t fence;
	uint32_t keyfile; /* running: the names are in the keyfile of this id; 0: in none */
	int64_t lease_us; /* longest lease plus lock-delay that may have been granted before the file was written */
	struct instant written;
	uint64_t count;    /* number of names; set by statefile_read */
	struct span names; /* set by statefile_read, borrowed: for statefile_next */
};

/* A name that may still be held. The value identifies its holder; "" matches no holder. */
struct statefile_name {
	struct span name, value;
	struct instant until;
};

/* Writes into an empty buffer: begin, add for each name, end. */
void statefile_begin(struct buf *b, const struct statefile *record);
void statefile_add(struct buf *b, const struct statefile_name *name);
void statefile_end(struct buf *b);

/* Checks the whole file, all names included. 0, or -EBADMSG and *ret_why, a static text. */
int statefile_read(struct span bytes, struct statefile *ret_record, const char **ret_why) __attribute__((warn_unused_result));
/* The next name of record->names; false: no more. */
bool statefile_next(struct span *names, struct statefile_name *ret_name);

struct memory;

/*
 * A mark covers the store's clock until RESERVE after it was written, and is written again after RENEW. Only the first mark is synced to the disk. The loop
 * must not wait for a disk. The kernel writes the later marks long before RESERVE - RENEW is over.
 */
#define STATE_RESERVE_US (120 * SEC)
#define STATE_RENEW_US   (60 * SEC)
#define STATE_RETRY_US   (5 * SEC)
#define STATE_FILE_MAX   ((size_t)1 << 29) /* bytes; a larger file is not read, and never written */

enum state_found { STATE_FIRST, STATE_CLEAN, STATE_KEPT, STATE_CRASH };

enum { STATE_UNSURE = 1 };

/* boot_id: /proc/sys/kernel/random/boot_id without its LF; "" if unknown: each deadline keeps its remaining time then. */
struct state_conf {
	const char *dir;
	const char *boot_id;
	uint32_t keyfile; /* a number that no other run has had; 0: the names of this run are lost if it crashes */
	bool remote; /* clients on other hosts can reach the daemon: it listens beyond Unix sockets and loopback */
	bool elsewhere; /* a run of this boot may have had another directory; it has just handed over a state that cannot be used */
	int64_t lease_us; /* longest lease and lock-delay of this run: max_lease + max_delay */
	int64_t guard_us; /* G: after this time no client relies on such a lease */
	struct instant now;
	struct instant began; /* start of the container; 0: the boot */
	int64_t wall_us;
};

struct state {
	int64_t epoch_us; /* for memory_conf */
	int dir;
	struct keyfile *keys; /* of this run; NULL: none is wanted */
	enum state_found found;
	bool rebooted; /* STATE_CRASH: the unknown leases were granted before this boot, so G counts from the boot */
	bool unsound;        /* STATE_CRASH: the file cannot be read, or is damaged … */
	uint32_t unread;     /* … or the keyfile of this id; 0: none … */
	int unread_error;    /* … why, a negative errno: see keyfile_fault() */
	bool marked;        /* a mark of this run is in the file … */
	size_t mark_size;   /* … of so many bytes */
	bool others;        /* the folder may contain keyfiles of other runs */
	struct statefile mine; /* what this run writes */
	struct instant due; /* of the next mark */
	struct instant opened;
	struct buf file; /* the file of the previous run, until state_restore */
	struct statefile past;
	int64_t shift_us; /* added to the deadlines of the previous run to get ours */
	bool clock_known; /* leases of the previous run may last, and the offset of its clock from ours is known */
	int64_t lease_us;
	bool remote;
	struct instant past_until; /* leases of the previous run are over then; marks that are written earlier must cover them, too */
};

/* Reads the file. 0, or a negative errno if the directory cannot be opened. *ret_why: "" or a word for the log. */
int state_open(struct state *s, const struct state_conf *conf, enum state_found *ret_found, const char **ret_why)
	__attribute__((warn_unused_result));
void state_restore(struct state *s, struct memory *m);
/* How much later a lease of the previous run ends by the clock of this run than it says; never negative. */
int64_t state_later_us(const struct state *s);
int state_mark(struct state *s, const struct memory *m, struct instant now) __attribute__((warn_unused_result));
struct instant state_due(const struct state *s, const struct memory *m);
/* If this run crashed, its names would be lost, because the keyfile could not be written. */
bool state_loses_names(const struct state *s);
/*
 * Checks the files of a store that is in use. dir: the folder that has replaced the one of state_open; or NULL. KEYFILE_GONE: something was removed, or the
 * mark was cut; the keys are in a file again, or state_loses_names. A mark is due. KEYFILE_CUT: the keys cannot be read any more, so the process must end.
 * *ret_error: why the files cannot be checked, or not be made again, a negative errno; else 0. The next look tries again.
 */
enum keyfile_sight state_look(struct state *s, const char *dir, int *ret_error);
/* 0, STATE_UNSURE, or a negative errno (-EFBIG: more than STATE_FILE_MAX). */
int state_finish(struct state *s, struct memory *m, struct instant now) __attribute__((warn_unused_result));
void state_close(struct state *s);

#endif
