/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notices files that somebody removes or cuts while the daemon uses them: its runtime directory, the journal, the files of the memory store, the audit log,
 * socket files. They are made again. Content that is not also in memory is lost: then the daemon ends, and logs why.
 */
#include "daemon/main/internal.h"

#include "daemon/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define LOOK_EVERY (5 * SEC)

/* --- a bus error --- */

/* The path of the mapping of this address, from the line of /proc/self/maps; NULL: it is not in this line. */
static const char *path_in_line(char *line, uintptr_t address)
{
	char *end;
	uintptr_t from = strtoull(line, &end, 16), to = *end == '-' ? strtoull(end + 1, &end, 16) : 0;

	if (address < from || address >= to)
		return NULL;
	end = strchr(end, '/');
	return end ? end : "";
}

/* "" if no file is mapped there. It is called for a fault of this thread in mapped memory, so that ordinary functions may be called. */
static void mapped_path(uintptr_t address, char *out, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[5000];

	out[0] = '\0';
	while (maps && fgets(line, sizeof(line), maps)) {
		const char *path = path_in_line(line, address);

		if (!path)
			continue;
		snprintf(out, size, "%.*s", (int)strcspn(path, "\n"), path);
		break;
	}
	if (maps)
		fclose(maps);
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	char path[4200] = "";

	(void)context;
	if (info->si_code > 0) /* from the kernel */
		mapped_path((uintptr_t)info->si_addr, path, sizeof(path));
	log_event(LOG_ERROR, "sigbus", "file=%s error=\"the file was cut, or its device failed\" note=\"the daemon ends\"", *path ? path : "unknown");
	/* The handler is reset: the fault comes again, and ends the process. */
	if (info->si_code <= 0)
		raise(number);
}

void removed_files_start(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER};

	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

/* --- the look --- */

/* The content of the file is nowhere else. The next start finds a crash, and refuses everything on which a client may still rely. */
static void daemon_ends(const struct daemon *d, const char *what, uint32_t id)
{
	log_event(LOG_ERROR, "sigbus", "file=%s/%s%08" PRIx32 " error=\"the file was cut\" note=\"the daemon ends\"", d->runtime.dir, what, id);
	_exit(EX_IOERR);
}

/* The directory, if it had to be made again; else NULL. A directory that cannot be examined does not count as gone. */
static const char *folder_look(struct daemon *d)
{
	int r = runtime_look(&d->runtime), was = d->folder_error;
	bool gone = r > 0;

	if (gone)
		r = runtime_again(&d->runtime);
	d->folder_error = r;
	if (gone && r == 0)
		log_event(LOG_ERROR, "runtime", "dir=%s note=\"somebody had removed the directory: it is made again, with what it had\"", d->runtime.dir);
	else if (gone && r != was)
		log_event(LOG_ERROR, "runtime", "dir=%s error=\"the directory was removed, and cannot be made again: %s\" note=\"%s\"", d->runtime.dir,
		          runtime_trouble(r), "it is tried again; systemctl restart redlockd makes it");
	else if (r != 0 && r != was)
		log_event(LOG_ERROR, "runtime", "dir=%s error=\"%s\" note=\"redlockd must be able to enter and write the directory\"", d->runtime.dir,
		          strerror(-r));
	else if (r == 0 && was != 0)
		log_event(LOG_NOTICE, "runtime", "dir=%s note=\"the directory can be used again\"", d->runtime.dir);
	return gone && r == 0 ? d->runtime.dir : NULL;
}

static void store_look(struct daemon *d, const char *dir)
{
	int error, was = d->files_error;
	enum keyfile_sight keys = state_look(&d->state, dir, &error);

	if (keys == KEYFILE_CUT)
		daemon_ends(d, KEYFILE_KEYS, keyfile_id(d->state.keys));
	d->files_error = error;
	if (error && error != was)
		log_event(LOG_ERROR, "state", "dir=%s error=\"%s\" note=\"files of names %s\"", d->runtime.dir, strerror(-error),
		          keys == KEYFILE_GONE ? "are missing or cut, and cannot be made; it is tried again" : "cannot be looked at");
	else if (keys == KEYFILE_GONE && !error)
		log_event(was ? LOG_NOTICE : LOG_ERROR, "state", "dir=%s note=\"files of names were missing or cut: they are made\"", d->runtime.dir);
	if (keys == KEYFILE_GONE && (!error || error != was))
		stores_mark(d);
}

void removed_files_look(struct daemon *d)
{
	struct instant now = clock_boottime();
	const char *dir;

	if (instant_before(now, d->look_at) || d->stopping || d->restart.phase != RESTART_NONE)
		return;
	d->look_at = instant_add(now, LOOK_EVERY);
	dir = folder_look(d);
	if (d->memory && d->state_open && d->folder_error == 0)
		store_look(d, dir);
	if (d->memory)
		memory_unmarked(d->memory, d->folder_error ? d->folder_error : d->mark_error);
	if (dir) {
		journal_begin_anew(&d->journal, dir, now);
	} else if (!journal_is_there(&d->journal)) {
		log_event(LOG_ERROR, "journal", "dir=%s note=\"somebody had removed or cut the file\"", d->runtime.dir);
		journal_begin_anew(&d->journal, NULL, now);
	}
	audit_file_look(&d->audit, now, clock_wall_us());
	net_look(d->net);
	if (d->web)
		web_look(d->web);
	if (d->api)
		web_look(d->api);
}
