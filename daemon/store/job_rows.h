/* SPDX-License-Identifier: BSD-2-Clause */
/* The jobs of a memory store: its queues, and the jobs of each in lists by their kinds. */
#ifndef STORE_JOB_ROWS_H
#define STORE_JOB_ROWS_H

#include "daemon/base/heap.h"
#include "daemon/base/map.h"
#include "proto/span.h"

#include <sys/queue.h>

struct job_file;
struct ledger;

enum { DUE, LEASED, DEAD, KINDS };

struct job_row {
	struct map_node by_id;
	struct job_queue *queue;
	struct span id, payload, lock, value; /* owned; value: of its lease, "" = none */
	struct span peer;    /* owned; who stored it */
	uint64_t number;     /* the store counts its jobs */
	int64_t due_ms, failed;
	int64_t ms; /* its place in the list of its kind */
	unsigned kind;
	bool stored;  /* the file has it, under its number */
	bool changed; /* it is in job_store.changed */
	TAILQ_ENTRY(job_row) in_changed;
};

/* In the order of ms, then of the numbers. */
struct job_list {
	struct job_row **row;
	size_t count, cap;
};

struct job_queue {
	struct span name;
	struct map ids;
	struct job_list list[KINDS];
	struct span peer;   /* owned; who began it */
	struct timer dead;  /* in job_store.dead */
};

/* A DEFER that was carried out. Its job may be gone long since, and is charged to nobody: so this is small. */
struct job_note {
	struct map_node by_nonce;
	STAILQ_ENTRY(job_note) in_notes;
	int64_t until_ms; /* from then on no try of it may be */
	uint32_t n;
	char nonce[];
};

struct job_store {
	struct job_file *file; /* NULL: the jobs end with the process */
	struct job_queue **queue; /* those that have jobs, in the order of their names */
	size_t count, cap;
	struct heap dead; /* queues with jobs that have failed for good, by when the first of them did, or earlier */
	struct ledger *ledger;
	uint64_t number;   /* of the last job; the file knows each by its number */
	/* What the file does not have yet: jobs that have changed, and the numbers of those that are gone. */
	TAILQ_HEAD(, job_row) changed;
	uint64_t *gone;
	size_t gone_n, gone_cap;
	size_t unwritten;  /* about so many bytes */
	struct map deferred; /* the DEFERs that were carried out, by their nonces */
	STAILQ_HEAD(, job_note) notes; /* likewise, as they came */
	uint64_t seed[2];
};

void job_store_init(struct job_store *s, const uint64_t seed[2], struct ledger *ledger);
void job_store_release(struct job_store *s);
/* The first place that is not before this. */
size_t job_list_place(const struct job_list *l, int64_t ms, uint64_t number);
/* Out of the list of its kind, into one, from one to another. */
void job_row_leave(struct job_queue *q, struct job_row *j);
void job_row_enter(struct job_queue *q, struct job_row *j, unsigned kind, int64_t ms);
void job_row_move(struct job_queue *q, struct job_row *j, unsigned kind, int64_t ms);
/* Owned texts. */
struct span job_row_text_keep(struct span text);
void job_row_text_drop(struct span *text);
void job_row_text_replace(struct span *text, struct span by);
/* NULL: there is none. q: may be NULL. job_row_of: by the value of its lease. */
struct job_row *job_row_find(const struct job_queue *q, struct span id);
struct job_row *job_row_of(const struct job_queue *q, struct span value);
/* A job of this id, which is in no list yet, and comes behind all others of one moment; and one that is gone. */
struct job_row *job_row_add(struct job_store *s, struct job_queue *q, struct span id);
/* In bytes, as the ledger counts: a job with these texts, and a queue. */
int64_t job_row_bytes(struct span id, struct span payload, struct span lock, struct span peer);
int64_t job_queue_bytes(struct span name);
/* The ledger gets, or loses, the bytes of the job. */
void job_row_charge(struct job_store *s, const struct job_row *j, int sign);
void job_row_remove(struct job_queue *q, struct job_row *j);
/* NULL: it has none. */
struct job_note *job_note_find(const struct job_store *s, struct span nonce);
void job_note_add(struct job_store *s, struct span nonce, int64_t until_ms);
void job_note_remove_first(struct job_store *s);
size_t job_rows_count(const struct job_queue *q); /* of all kinds; q: may be NULL */
struct job_queue *job_rows_find(const struct job_store *s, struct span name);
struct job_queue *job_rows_add(struct job_store *s, struct span name, struct span peer);
/* The job is gone, and nor is its queue if it was the last one. */
void job_rows_forget(struct job_store *s, struct job_queue *q, struct job_row *j);

#endif
