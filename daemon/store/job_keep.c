/* SPDX-License-Identifier: BSD-2-Clause */
/* See job_keep.h. A row of the table tells how a job stands, as the operations of jobs.c left it. */
#include "daemon/store/job_keep_parts.h"

#include "daemon/base/mem.h"
#include "daemon/core/event/event.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LOG_NAME    "jobs.db-wal"
#define BAD_NAME    "jobs.db.bad"
#define SPARE_NAME  "jobs.spare"
#define FORMER_NAME "jobs" /* of earlier builds */
#define LOG_PAGES   1000 /* then it moves into the database, whatever the time */
#define ROW_BYTES   ((size_t)8 << 10) /* of the pages that one row changes, beside its texts */

/* Nothing waits for the device: locks would wait with it. */
static const char SET_UP[] = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF";
static const char MAKE[] = "CREATE TABLE job (number INTEGER PRIMARY KEY, queue TEXT, id TEXT, kind INTEGER, ms INTEGER, due_ms INTEGER, "
			   "failed INTEGER, value TEXT, lock TEXT, payload TEXT, peer TEXT); PRAGMA user_version = 1";
static const char PUT[] = "REPLACE INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

const char *job_file_path(const struct job_file *f, const char *name, char out[PATH_SIZE])
{
	snprintf(out, PATH_SIZE, "%s/%s", f->dir, name);
	return out;
}

/* --- errors ------------------------------------------------------------------------------------------------------------ */

/* SQLite keeps the errno of few errors; what failed last has left its own. */
int job_file_error(const struct job_file *f)
{
	int error = errno;

	switch (sqlite3_errcode(f->db) & 0xff) {
	case SQLITE_OK:
		return 0;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_BUSY:
		return -EBUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EBADMSG;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_READONLY:
		return -EROFS;
	default:
		return error > 0 ? -error : -EIO;
	}
}

const char *jobs_trouble(int error)
{
	switch (-error) {
	case EBUSY:
		return "another process uses " FILE_NAME ": each redlockd needs a state_dir of its own";
	case EBADMSG:
		return FILE_NAME " is damaged, or something else";
	case EPROTO:
		return FILE_NAME " is of a later redlockd, or of another program";
	case EMEDIUMTYPE:
		return FILE_NAME " is a database of another program";
	case EIDRM:
		return "somebody has removed " FILE_NAME;
	case ENODATA:
		return "somebody has cut " FILE_NAME;
	case ENOLINK:
		return "somebody has removed, cut or replaced " LOG_NAME;
	case -JOBS_SPARE_LOST:
		return "somebody has removed or cut " SPARE_NAME;
	case ESTALE:
		return FILE_NAME " is another file than before";
	case ETXTBSY:
		return "somebody has written to " FILE_NAME;
	case EEXIST:
		return "somebody has put a " FILE_NAME " there: restart redlockd, which reads it then";
	case -JOBS_SHUT:
		return "the next process could not open " FILE_NAME ": see its mode and owner, and those of the directories above";
	case -JOBS_FORMER:
		return "an earlier redlockd has left the file jobs in runtime_dir: let that one end its jobs, then remove the file";
	default:
		return strerror(-error);
	}
}

int job_file_trouble(const struct job_file *f)
{
	return f->error ? f->error : f->shut ? JOBS_SHUT : 0;
}

int jobs_error(const struct job_store *s)
{
	return s->file ? job_file_trouble(s->file) : 0;
}

/* --- the spare --------------------------------------------------------------------------------------------------------- */

static bool spare_is_there(const struct job_file *f)
{
	char path[PATH_SIZE];
	struct stat st;

	if (stat(job_file_path(f, SPARE_NAME, path), &st) < 0)
		return errno == EACCES;
	return st.st_size >= (off_t)JOBS_SPARE;
}

static void spare_drop(struct job_file *f)
{
	char path[PATH_SIZE];

	unlink(job_file_path(f, SPARE_NAME, path));
	f->spare = false;
}

static int spare_make(struct job_file *f)
{
	char path[PATH_SIZE];
	int fd = open(job_file_path(f, SPARE_NAME, path), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), r;

	if (fd < 0)
		return -errno;
	do
		r = posix_fallocate(fd, 0, (off_t)JOBS_SPARE);
	while (r == EINTR);
	close(fd);
	if (r)
		spare_drop(f);
	f->spare = r == 0;
	return -r;
}

/* --- the database ------------------------------------------------------------------------------------------------------ */

void job_file_init(struct job_file *f, const char *dir, const char *runtime_dir)
{
	struct stat st;

	*f = (struct job_file){.db = NULL};
	snprintf(f->dir, sizeof(f->dir), "%s", dir);
	snprintf(f->former, sizeof(f->former), "%s/" FORMER_NAME, runtime_dir);
	if (stat(f->former, &st) < 0 || !S_ISREG(st.st_mode))
		f->former[0] = '\0';
	else
		f->error = JOBS_FORMER;
}

void job_file_close(struct job_file *f)
{
	sqlite3_finalize(f->begin);
	sqlite3_finalize(f->put);
	sqlite3_finalize(f->drop);
	sqlite3_finalize(f->commit);
	sqlite3_close(f->db);
	f->begin = f->put = f->drop = f->commit = NULL;
	f->db = NULL;
}

/* What is no log of the file any more must not get into it: neither now nor in the next run, which has the file as it was before that log. */
static void file_lose(struct job_file *f, int why)
{
	char log[PATH_SIZE];

	if (f->db)
		sqlite3_db_config(f->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	job_file_close(f);
	f->lost = f->replaced = why;
	if (why == -ENOLINK)
		unlink(job_file_path(f, LOG_NAME, log));
}

/* The file has a second name then, by which it stays in sight when another takes the first. */
void job_file_set_aside(struct job_file *f)
{
	char from[PATH_SIZE], to[PATH_SIZE];
	struct stat st;

	if (lstat(job_file_path(f, FILE_NAME, from), &st) < 0)
		return;
	unlink(job_file_path(f, BAD_NAME, to));
	f->aside = link(from, to) == 0 || rename(from, to) == 0;
	if (rename(job_file_path(f, LOG_NAME, from), job_file_path(f, BAD_NAME "-wal", to)) < 0)
		unlink(to);
}

int job_file_statement(struct job_file *f, const char *text, struct sqlite3_stmt **ret)
{
	return sqlite3_prepare_v3(f->db, text, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL) ? job_file_error(f) : 0;
}

static int run(struct job_file *f, struct sqlite3_stmt *s)
{
	errno = 0;
	sqlite3_step(s);
	return sqlite3_reset(s) ? job_file_error(f) : 0;
}

static int run_text(struct job_file *f, const char *text)
{
	errno = 0;
	return sqlite3_exec(f->db, text, NULL, NULL, NULL) ? job_file_error(f) : 0;
}

/* The first column of what it answers must be this. -EPROTO: it is not. */
static int expect(struct job_file *f, const char *question, const char *answer)
{
	struct sqlite3_stmt *s = NULL;
	int r = job_file_statement(f, question, &s);
	const void *text = !r && sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_text(s, 0) : NULL;
	bool same = text && strcmp(text, answer) == 0;

	if (!r)
		r = sqlite3_finalize(s) ? job_file_error(f) : same ? 0 : -EPROTO;
	return r;
}

/* Nothing is written to a file before it is known to be ours. It has our table as long as it has its name: without any, it has lost it. */
static int file_judge(struct job_file *f)
{
	int r = expect(f, "SELECT count(*) FROM sqlite_master", "0");

	if (r != -EPROTO)
		return r ? r : -EBADMSG;
	r = expect(f, "PRAGMA user_version", "1");
	if (r == -EPROTO)
		return expect(f, "PRAGMA user_version", "0") ? r : -EMEDIUMTYPE;
	if (!r)
		r = expect(f, "SELECT count(*) FROM pragma_table_info('job')", "11");
	return r == -EPROTO ? -EMEDIUMTYPE : r;
}

static struct job_file_mark mark_of(const struct stat *st)
{
	return (struct job_file_mark){st->st_ino, st->st_size, (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec};
}

static int file_find(const struct job_file *f, const char *name, struct job_file_mark *ret)
{
	char path[PATH_SIZE];
	struct stat st;

	if (stat(job_file_path(f, name, path), &st) < 0)
		return -errno;
	*ret = mark_of(&st);
	return 0;
}

/* This process has written to the file that is open, whatever has its name by now. */
static void file_is_written(const struct job_file *f, const char *name, struct job_file_mark *m)
{
	struct job_file_mark now = {.inode = m->inode}; /* without a look: the next one takes what it finds */
	int r = file_find(f, name, &now);

	if (now.inode == m->inode && r != -ENOENT && r != -ENOTDIR)
		*m = now;
}

/* What cannot be looked at is not lost: what is open is written as before. */
static int file_look(const struct job_file *f, const char *name, struct job_file_mark *m)
{
	struct job_file_mark now;
	int r = file_find(f, name, &now);

	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR ? -EIDRM : 0;
	if (now.inode != m->inode)
		return -ESTALE;
	if (now.size < m->size)
		return -ENODATA;
	if (m->written_ns == 0)
		*m = now;
	return now.size > m->size || now.written_ns != m->written_ns ? -ETXTBSY : 0;
}

/* Somebody has removed a file, has cut it, or has put another in its place; 0: nobody has. */
static int file_is_lost(struct job_file *f)
{
	int r;

	if (!f->db || f->seen)
		return 0;
	r = file_look(f, FILE_NAME, &f->file);
	if (!r && file_look(f, LOG_NAME, &f->log) < 0)
		r = -ENOLINK;
	f->seen = r == 0;
	return r;
}

static int file_connect(struct job_file *f, const char *path)
{
	errno = 0;
	return sqlite3_open_v2(path, &f->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) ? job_file_error(f) : run_text(f, SET_UP);
}

static int file_prepare(struct job_file *f)
{
	int r = job_file_statement(f, "BEGIN", &f->begin);

	if (!r)
		r = job_file_statement(f, PUT, &f->put);
	if (!r)
		r = job_file_statement(f, "DELETE FROM job WHERE number = ?", &f->drop);
	return r ? r : job_file_statement(f, "COMMIT", &f->commit);
}

static int file_mark(struct job_file *f, const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), r;
	struct stat st;

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0 ? -errno : st.st_size == 0 ? -EBADMSG : 0; /* SQLite would remove the log of an empty one */
	close(fd);
	if (!r)
		f->file = mark_of(&st);
	return r;
}

static int log_grows(void *context, struct sqlite3 *db, const char *name, int pages)
{
	struct job_file *f = context;

	(void)db, (void)name;
	f->log_pages = pages;
	return SQLITE_OK;
}

int job_file_open(struct job_file *f)
{
	char path[PATH_SIZE];
	int r = file_mark(f, job_file_path(f, FILE_NAME, path));

	if (r)
		return r;
	r = file_connect(f, path);
	if (!r)
		r = file_judge(f);
	if (!r)
		r = expect(f, "PRAGMA journal_mode = WAL", "wal");
	if (!r)
		r = file_prepare(f);
	if (!r)
		r = file_find(f, LOG_NAME, &f->log);
	if (!r)
		sqlite3_wal_hook(f->db, log_grows, f); /* instead of SQLite, which would write to the file whenever it likes */
	if (r)
		job_file_close(f);
	else
		file_is_written(f, FILE_NAME, &f->file);
	f->spare = r == 0 && spare_is_there(f);
	return r;
}

/* --- what changes ------------------------------------------------------------------------------------------------------ */

static void each_job(struct job_store *s, void (*visit)(struct job_store *s, struct job_row *j))
{
	for (size_t i = 0; i < s->count; i++)
		for (unsigned k = 0; k < KINDS; k++)
			for (size_t r = 0; r < s->queue[i]->list[k].count; r++)
				visit(s, s->queue[i]->list[k].row[r]);
}

bool jobs_are_unwritten(const struct job_store *s)
{
	return s->file && (!TAILQ_EMPTY(&s->changed) || s->gone_n > 0);
}

void job_keep(struct job_store *s, struct job_row *j)
{
	if (!s->file || j->changed)
		return;
	j->changed = true;
	TAILQ_INSERT_TAIL(&s->changed, j, in_changed);
	s->unwritten += ROW_BYTES + j->payload.n + j->lock.n;
}

void job_keep_gone(struct job_store *s, struct job_row *j)
{
	if (j->changed)
		TAILQ_REMOVE(&s->changed, j, in_changed);
	j->changed = false;
	if (!j->stored)
		return;
	if (s->gone_n == s->gone_cap) {
		s->gone_cap = s->gone_cap ? 2 * s->gone_cap : 64;
		s->gone = mem_grow(s->gone, s->gone_cap, sizeof(*s->gone));
	}
	s->gone[s->gone_n++] = j->number;
	s->unwritten += ROW_BYTES;
}

/* --- a transaction ----------------------------------------------------------------------------------------------------- */

static void bind_text(struct sqlite3_stmt *s, int place, struct span text)
{
	sqlite3_bind_text(s, place, text.n > 0 ? text.p : "", (int)text.n, SQLITE_STATIC);
}

static int row_put(struct job_file *f, const struct job_row *j)
{
	sqlite3_bind_int64(f->put, NUMBER, (int64_t)j->number);
	bind_text(f->put, QUEUE, j->queue->name);
	bind_text(f->put, ID, j->id);
	sqlite3_bind_int64(f->put, KIND, j->kind);
	sqlite3_bind_int64(f->put, MS, j->ms);
	sqlite3_bind_int64(f->put, DUE_MS, j->due_ms);
	sqlite3_bind_int64(f->put, FAILED, j->failed);
	bind_text(f->put, VALUE, j->value);
	bind_text(f->put, LOCK, j->lock);
	bind_text(f->put, PAYLOAD, j->payload);
	bind_text(f->put, PEER, j->peer);
	return run(f, f->put);
}

void job_row_is_changed(struct job_store *s, struct job_row *j)
{
	if (!j->changed)
		TAILQ_INSERT_TAIL(&s->changed, j, in_changed);
	j->changed = true;
}

static void store_is_written(struct job_store *s)
{
	struct job_row *j;

	while ((j = TAILQ_FIRST(&s->changed))) {
		TAILQ_REMOVE(&s->changed, j, in_changed);
		j->changed = false;
		j->stored = true;
	}
	s->gone_n = s->unwritten = 0;
}

static int transaction(struct job_store *s)
{
	struct job_file *f = s->file;
	const struct job_row *j;
	int r = run(f, f->begin);

	for (j = TAILQ_FIRST(&s->changed); j && !r; j = TAILQ_NEXT(j, in_changed))
		r = row_put(f, j);
	for (size_t i = 0; i < s->gone_n && !r; i++) {
		sqlite3_bind_int64(f->drop, 1, (int64_t)s->gone[i]);
		r = run(f, f->drop);
	}
	if (!r)
		r = run(f, f->commit);
	if (r && !sqlite3_get_autocommit(f->db))
		(void)run_text(f, "ROLLBACK");
	return r;
}

/* No log is needed for a file that nobody has yet. SQLite would give it the mode of the umask. */
static int file_fill(struct job_store *s, const char *path)
{
	struct job_file *f = s->file;
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), r;

	if (fd < 0)
		return -errno;
	close(fd);
	r = file_connect(f, path);
	if (!r)
		r = expect(f, "PRAGMA journal_mode = OFF", "off");
	if (!r)
		r = run_text(f, MAKE);
	if (!r)
		r = file_prepare(f);
	if (!r)
		r = transaction(s);
	if (!r)
		r = expect(f, "PRAGMA journal_mode = WAL", "wal");
	job_file_close(f);
	return r;
}

/* A log that another file has left would be taken for that of the new one. */
static int file_put_in_place(struct job_file *f, const char *path)
{
	char to[PATH_SIZE];

	if (f->replaced && (f->replaced != -ENOLINK || file_look(f, FILE_NAME, &f->file) < 0))
		job_file_set_aside(f);
	unlink(job_file_path(f, LOG_NAME, to));
	return rename(path, job_file_path(f, FILE_NAME, to)) < 0 ? -errno : 0;
}

/* What has the name though none was lost has the jobs of somebody else. -ENOENT: nothing has it. Else why it cannot be ours. */
static int file_of_others(const struct job_file *f)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000000, .l_len = 512}; /* all that SQLite locks */
	char path[PATH_SIZE];
	int fd = open(job_file_path(f, FILE_NAME, path), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), r;

	if (fd < 0)
		return -errno;
	r = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? -EBUSY : -EEXIST;
	close(fd);
	return r;
}

/* Another file, with all jobs. Whenever the process is killed, one that is complete has the name. */
static int file_make(struct job_store *s)
{
	struct job_file *f = s->file;
	char path[PATH_SIZE];
	int r = f->replaced ? -ENOENT : file_of_others(f);

	if (r != -ENOENT)
		return r;
	unlink(job_file_path(f, NEW_NAME, path));
	each_job(s, job_row_is_changed);
	r = file_fill(s, path);
	if (!r)
		r = file_put_in_place(f, path);
	if (r) {
		unlink(path);
		return r;
	}
	f->replaced = 0;
	r = job_file_open(f);
	if (r)
		file_lose(f, r);
	else
		store_is_written(s);
	return r;
}

/* Without jobs there is no file yet: whether there could be one. */
static int folder_look(const struct job_file *f)
{
	struct statvfs fs;
	int r = file_of_others(f);

	if (r != -ENOENT)
		return r;
	if (access(f->dir, W_OK | X_OK) < 0 || statvfs(f->dir, &fs) < 0)
		return -errno;
	return fs.f_blocks > 0 && fs.f_bavail * fs.f_frsize < JOBS_SPARE ? -ENOSPC : 0;
}

/* The process has it open. Whether another could open it: what an administrator has forbidden shows before that one is there. */
static bool file_is_shut(const struct job_file *f)
{
	char path[PATH_SIZE];

	return f->db && (access(job_file_path(f, FILE_NAME, path), R_OK | W_OK) < 0 || access(job_file_path(f, LOG_NAME, path), R_OK | W_OK) < 0);
}

static int file_ready(struct job_store *s)
{
	return s->file->db ? 0 : file_make(s);
}

/*
 * What is in the log alone is lost if a run is killed before it sees that somebody has removed or cut it: no more than what came since the last look. As it
 * ends, the log gives its space back: on a full device that may be enough.
 */
static bool log_move(struct job_file *f, bool ends)
{
	bool moved;

	if (!f->db || file_look(f, FILE_NAME, &f->file) < 0)
		return false;
	f->log_pages = 0;
	moved = sqlite3_wal_checkpoint_v2(f->db, NULL, ends ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) == SQLITE_OK;
	file_is_written(f, FILE_NAME, &f->file);
	if (ends)
		file_is_written(f, LOG_NAME, &f->log);
	return moved;
}

static int store_write(struct job_store *s)
{
	struct job_file *f = s->file;
	int r = file_is_lost(f);

	if (r)
		file_lose(f, r);
	r = file_ready(s);
	if (!r) {
		r = transaction(s);
		file_is_written(f, LOG_NAME, &f->log);
	}
	if (r == -EBADMSG && f->db) {
		file_lose(f, r);
		r = file_ready(s);
	} else if (!r) {
		store_is_written(s);
	}
	if (f->log_pages >= LOG_PAGES)
		log_move(f, false);
	return r;
}

static void store_catch_up(struct job_store *s)
{
	struct job_file *f = s->file;
	int r = store_write(s), full;

	if (r && log_move(f, true))
		r = store_write(s);
	full = r;
	if (r && f->spare) {
		spare_drop(f);
		r = store_write(s);
	}
	f->failed = r != 0;
	if (r || full || f->spare)
		f->error = r ? r : full;
}

int jobs_write(struct job_store *s)
{
	if (jobs_are_unwritten(s) && !s->file->failed)
		store_catch_up(s);
	if (s->file)
		s->file->seen = false;
	return s->file && s->file->failed ? s->file->error : 0;
}

static bool former_is_there(struct job_file *f)
{
	if (!f->former[0])
		return false;
	f->error = access(f->former, F_OK) == 0 ? JOBS_FORMER : 0;
	if (!f->error)
		f->former[0] = '\0';
	return f->error;
}

/* The error of a full device stands until there is a spare, whatever else there is room for. */
static void spare_ready(struct job_store *s)
{
	struct job_file *f = s->file;
	int was = f->error;

	f->error = file_ready(s);
	if (!f->error && !f->spare)
		f->error = spare_make(f);
	if (f->error == -ENOSPC && was != -ENOSPC && log_move(f, true)) /* not with each request that is refused */
		f->error = spare_make(f);
}

void jobs_look(struct job_store *s)
{
	struct job_file *f = s->file;

	if (!f || former_is_there(f) || f->unread)
		return;
	f->seen = false;
	if (f->failed || file_is_lost(f))
		store_catch_up(s);
	if (f->spare && !spare_is_there(f)) {
		f->spare = false;
		f->lost = JOBS_SPARE_LOST;
	}
	if (!f->failed && (f->error || (f->db && !f->spare)))
		spare_ready(s);
	else if (!f->failed && !f->db)
		f->error = folder_look(f);
	f->shut = file_is_shut(f);
	log_move(f, false);
}

/* A transaction is no longer than the spare has room for. */
bool jobs_may(struct job_store *s, enum job_change change)
{
	struct job_file *f = s->file;

	if (!f)
		return true;
	if (former_is_there(f))
		return false;
	if (s->unwritten > JOBS_SPARE / 2)
		(void)jobs_write(s);
	if (change == JOB_GROWS && !f->failed && file_is_lost(f))
		store_catch_up(s);
	if (f->failed || f->spare || change == JOB_ENDS)
		return !f->failed;
	spare_ready(s);
	return !f->error;
}
