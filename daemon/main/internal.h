/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the daemon: what daemon.c, guard.c, pump.c, stores.c and supervise.c share. */
#ifndef DAEMON_INTERNAL_H
#define DAEMON_INTERNAL_H

#include "daemon/base/rng.h"
#include "daemon/core/service/service.h"
#include "daemon/core/session/client.h"
#include "daemon/files/audit_file.h"
#include "daemon/files/credentials.h"
#include "daemon/files/journal.h"
#include "daemon/files/runtime.h"
#include "daemon/main/answer_queue.h"
#include "daemon/main/backlog.h"
#include "daemon/main/daemon.h"
#include "daemon/main/descriptors.h"
#include "daemon/main/passed.h"
#include "daemon/main/rest.h"
#include "daemon/main/verifier.h"
#include "daemon/net/net.h"
#include "daemon/redis/upstream.h"
#include "daemon/restart/restart.h"
#include "daemon/store/job_keep.h"
#include "daemon/store/memory.h"
#include "daemon/store/state.h"
#include "daemon/systemd/systemd.h"
#include "daemon/web/web.h"

#include <event2/event.h>

#define SIGNALS 5 /* that the daemon handles */

/* Result of the last reading of the configuration; the first one is at the start. */
struct reloaded {
	int64_t wall_us; /* when it was last applied, by CLOCK_REALTIME */
	bool failed;     /* a later reading was not applied; or a file that it names could not be used, and the former one stays in use */
};

/* Answers of the memory store about jobs: the service gets them at the end of the pass, when the file of jobs is written. Owned, with their texts. */
struct unwritten {
	struct answer *answer;
	size_t n, cap;
};

struct daemon {
	struct conf *conf;
	const struct daemon_args *args;
	struct runtime runtime;
	struct systemd systemd;
	struct event_base *base;
	struct service *service;
	struct core_conf core_conf;
	struct outer outer;
	struct effects effects;
	struct carried *carried;   /* what the previous process has handed over, until all of it is taken; else NULL */
	struct restart restart;
	struct backlog backlog;
	int64_t wall_ahead_us;     /* wall_known: CLOCK_REALTIME - CLOCK_BOOTTIME, as it was at the first step of the loop pass */
	bool held_back;            /* calls to the stores wait for the next pass */
	struct instant begun;      /* wall_known: the first step of the loop pass */
	struct rest rest;
	bool wall_known;
	struct instant pass_end;   /* when the loop pass must end: PASS_US after its first step */
	struct instant calls_end;  /* when the loop pass stops carrying out calls of the memory store: CALLS_US after the first one */
	bool record_first; /* the journal has a record that must be written before the memory store carries out a call */
	struct journal journal;
	struct net *net;
	struct credentials credentials;
	struct web *web;           /* NULL: listen.http is no */
	struct web *api;           /* NULL: listen.api is no */
	char *web_where, *api_where; /* where they listen, as configured, or as before the restart; NULL: nowhere */
	struct upstream *upstream; /* store: redis */
	struct memory *memory;     /* store: memory */
	struct state state;
	bool state_open;
	bool names_elsewhere; /* the names of a previous process with unusable state may be in another directory */
	struct job_file jobs;
	struct unwritten unwritten;
	struct answer_queue answers;
	struct instant answers_end; /* when the loop pass stops giving the service answers of Redis servers: ANSWERS_US after the first one */
	int jobs_error;         /* the error that is in the log */
	struct instant jobs_at; /* the next check of the jobs */
	struct rules *rules, *old_rules; /* as the service has them; NULL: none */
	struct conf_users *users, *old_users;      /* NULL: none */
	struct user_names *user_names, *old_names; /* likewise, as the service has them */
	struct verifier *verifier;
	bool verifying;                  /* a secret is being verified */
	struct proofs *proofs;           /* guard.c: of secrets that were right; NULL: there are no users */
	struct audit_file audit;
	char host[256];
	char unix_path[4200];
	char *set_name;
	/* The timer of the service: a timerfd on CLOCK_BOOTTIME, so that a lease ends on time after a suspend. */
	int timer_fd;
	struct event *timer_event;
	struct instant armed; /* when the timer expires; INSTANT_NEVER: not set */
	struct event *signal_event[SIGNALS];
	struct event *tick_event; /* ready, watchdog, status, state file */
	struct instant started, watchdog_at, status_at;
	struct instant look_at; /* removed_files.c: the next check … */
	int folder_error;       /* … and why the runtime directory is missing or inaccessible, as logged */
	int files_error;        /* … why the files of names cannot be checked, or made again */
	int mark_error;         /* … and why the last mark of the memory store could not be written */
	int64_t wall_ahead_at_start_us; /* CLOCK_REALTIME - CLOCK_BOOTTIME, when this process was started */
	struct reloaded reloaded;
	bool address_lacks; /* a configured address was not available at a restart, and is not used before the next one */
	char status[160];
	bool ready, stopping, stopped;
	/* Notifications that the service manager has not accepted yet: sent again at the next tick. */
	bool owes_reloading, owes_ready, owes_stopping, owes_removal;
	struct instant stop_at;
};

/* daemon.c */
const char *tcp_text(const char *host, uint16_t port, char *out, size_t size);
/* listen.c */
#define UNPROTECTED (-EPROTO) /* everybody can connect to a socket that was passed */
#define UNUSABLE    (-ENOTRECOVERABLE) /* a file that the configuration names cannot be used */
int listen_start(struct daemon *d);
struct listener_access listen_access(const struct conf *c); /* of Unix sockets */
bool daemon_speaks_tls(const struct daemon *d); /* at listen.tls, or at a passed socket called tls */

/* pump.c: one event in, its effects out. */
void pump_step(struct daemon *d, struct event *event);
void pump_restore(struct daemon *d); /* restores the previous run from the journal; before any other event */
void pump_pass(struct daemon *d); /* at the end of a loop pass: sends all that was collected, and sets the timer */
bool pump_is_behind(const struct daemon *d); /* the next pass must come without waiting for events */
int pump_start(struct daemon *d);
void pump_stop(struct daemon *d);
void pump_verified(void *context, uint64_t number, bool ok); /* a verifier_done */
extern const struct net_sink pump_net_sink;
extern const struct upstream_sink pump_upstream_sink;

/* site.c: the web listeners; exposition.c: the text of /metrics. */
int site_start(struct daemon *d);
void site_reload(struct daemon *d); /* reads the tokens again */
void site_stop(struct daemon *d);
void exposition_write(const struct daemon *d, struct buf *out);
void status_log(struct daemon *d); /* the state of the daemon, for the log (SIGUSR1) */

/* outer_figures.c: the figures of the daemon around the service. Before the service. */
void outer_figures_start(struct daemon *d);

/* stores.c: the store of the service, and its configuration. */
int stores_configure(struct daemon *d); /* fills core_conf */
int stores_open(struct daemon *d);      /* opens the memory store anew */
int stores_start(struct daemon *d);
void stores_stop(struct daemon *d);
void stores_release(struct daemon *d);
void stores_tick(struct daemon *d);
void stores_mark(struct daemon *d); /* writes the state file of the memory store */
void core_conf_fill(struct core_conf *to, const struct conf *from);

/* guard.c: users, rules, the audit log. */
void guard_secrets(const struct conf *c); /* once the configuration is read */
int guard_start(struct daemon *d, verifier_done *verified);
void guard_stop(struct daemon *d);
/* After the configuration in effect has changed: reads the files again. The service must get *ret_core before guard_reloaded. */
void guard_reload(struct daemon *d, struct core_conf *ret_core);
void guard_reloaded(struct daemon *d);
void guard_verify(struct daemon *d, const struct effect *effect);
bool guard_verified(struct daemon *d, bool ok); /* The verification has ended. False: it was given up before, and nobody waits for it */
void guard_audit(struct daemon *d, struct span line);
void guard_write(struct daemon *d); /* once a pass */

/* signals.c: those that supervise.c handles. hold: they wait until they are released. */
extern const int signals[SIGNALS];
void signals_hold(bool hold);
void signals_hold_ends(bool hold); /* only those that end the daemon */

/* supervise.c: what signals do, systemd, reload. */
int supervise_start(struct daemon *d); /* releases the signals, and handles them from then on */
void supervise_stop(struct daemon *d);
void supervise_tick(struct daemon *d);
void supervise_end(struct daemon *d, const char *why); /* begins the shut-down; why: for the log */

/* restart.c: a restart that no client notices, as the old process sees it. */
int restart_start(struct daemon *d);
void restart_stop(struct daemon *d);
void restart_ask(struct daemon *d); /* SIGUSR2 */
bool restart_takes_over(struct daemon *d); /* SIGTERM: whether a restart by the service manager begins instead of a shut-down */
void restart_give_up(struct daemon *d, const char *why); /* if one is under way */
void restart_pass(struct daemon *d); /* at the end of each pass of the loop, outside all steps */
void restart_resume(struct daemon *d); /* the next process: reads no client before its service has restored everything */
bool restart_keeps_secret(struct daemon *d, const struct effect *effect); /* EFFECT_VERIFY; true: it was kept for later */

/* carry.c: writes, and hands over. */
int carry_begin(struct daemon *d, uint64_t ret_mark[2]); /* 0, or -errno: nothing may be handed over */
int carry_pack(struct daemon *d, const uint64_t mark[2]); /* only the end may follow. -errno: what was packed is lost */
int carry_store(struct daemon *d); /* BY_MANAGER, after carry_pack: to the service manager. 0 or -errno */
/* After all stages have stopped. Returns only if the program cannot be started, -errno; or 0 if program is NULL. In both cases this program must begin anew. */
int carry_exec(const struct program *program, struct carried *c, int records);

/* carried.c: what the previous process has handed over. */
int carried_start(struct daemon *d);
void carried_refuse(struct daemon *d, const char *why); /* closes what was handed over: the daemon goes on as after a crash */
int carried_take_fd(struct daemon *d, size_t place); /* the caller owns it; -1: there is none */
int carried_resume(struct daemon *d); /* the last stage: closes what was not taken */

/* removed_files.c: files that somebody removes or cuts while the daemon works with them. */
void removed_files_start(void);            /* a bus error names its file */
void removed_files_look(struct daemon *d); /* at each tick: checks every few seconds */

#endif
