/* SPDX-License-Identifier: BSD-2-Clause */
/* See keyfile.h. It does not know keys, only the slabs that contain them. */
#include "daemon/store/keyfile.h"

#include "daemon/base/mem.h"
#include "daemon/base/poison.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC      "redlockK"
#define VERSION    2U
#define SLAB_MAGIC 0x736c6162U
#define PAGE       ((size_t)4096)
#define SLAB_LEAST ((size_t)16 * 1024)
#define SLAB_MOST  ((size_t)1 << 20)
#define NAME_MAX_  32
#define MADE       KEYFILE_KEYS "new" /* a file that is being made. Its name has no number, so nobody reads it */

struct file_head {
	char magic[8];
	uint32_t version, layout, id, lost;
	uint64_t bytes; /* up to the end of the last slab: a file that was cut is damaged, even if the cut is between two slabs */
};

struct slab_head {
	uint32_t magic, object;
	uint64_t bytes, sum;
	char unused[40];
};

struct mapped {
	struct mapped *next;
	void *at;
	size_t bytes, place; /* in the file */
};

struct keyfile {
	int fd;
	uint32_t id;
	int nameless;           /* why it could not be made; 0: it has a name */
	bool full;              /* out of space: no more slabs are requested */
	struct file_head *head; /* mapped */
	size_t bytes;           /* of the file */
	struct mapped *slabs;
};

static void file_name(char *out, uint32_t id)
{
	snprintf(out, NAME_MAX_, KEYFILE_KEYS "%08x", (unsigned)id);
}

/* The next bytes of the file, reserved and mapped; NULL and errno. */
static void *file_grow(struct keyfile *f, size_t bytes)
{
	void *at;
	int r;

	if ((int64_t)(f->bytes + bytes) > KEYFILE_MAX) {
		errno = EFBIG;
		return NULL;
	}
	do
		r = posix_fallocate(f->fd, (off_t)f->bytes, (off_t)bytes);
	while (r == EINTR);
	if (r) {
		errno = r;
		return NULL;
	}
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, f->fd, (off_t)f->bytes);
	if (at == MAP_FAILED)
		return NULL;
	f->bytes += bytes;
	return at;
}

void keyfile_free(struct keyfile *f)
{
	if (!f)
		return;
	for (struct mapped *m = f->slabs, *next; m; m = next) {
		next = m->next;
		memory_unpoison(m->at, m->bytes);
		munmap(m->at, m->bytes);
		mem_free(m);
	}
	munmap(f->head, PAGE);
	if (f->fd >= 0)
		close(f->fd);
	mem_free(f);
}

static uint64_t slab_sum(const struct slab_head *head)
{
	return (head->bytes << 32 | head->object) ^ UINT64_C(0x9e3779b97f4a7c15);
}

/* The process may be killed between any two stores. The last one makes the slab valid. */
static void slab_begin(struct slab_head *head, size_t object, size_t bytes)
{
	head->object = (uint32_t)object;
	head->bytes = bytes;
	head->sum = slab_sum(head);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	head->magic = SLAB_MAGIC;
}

/* Slabs grow with the file, so there are few of them. */
static size_t slab_bytes(const struct keyfile *f, size_t object)
{
	size_t bytes = f->bytes / 8, least = sizeof(struct slab_head) + 4 * object;

	bytes = bytes < SLAB_LEAST ? SLAB_LEAST : bytes > SLAB_MOST ? SLAB_MOST : bytes;
	return roundup(MAX(bytes, least), PAGE);
}

void *keyfile_slab(struct keyfile *f, size_t object, size_t *ret_bytes)
{
	size_t bytes = slab_bytes(f, object);
	struct mapped *m;
	struct slab_head *head;

	head = f->full ? NULL : file_grow(f, bytes);
	if (!head) {
		f->full = true;
		return NULL;
	}
	slab_begin(head, object, bytes);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	f->head->bytes = f->bytes;
	m = mem_alloc(sizeof(*m));
	*m = (struct mapped){f->slabs, head, bytes, f->bytes - bytes};
	f->slabs = m;
	*ret_bytes = bytes - sizeof(*head);
	return head + 1;
}

void keyfile_lose(struct keyfile *f)
{
	f->head->lost = 1;
}

void keyfile_retry(struct keyfile *f)
{
	f->full = false;
}

void keyfile_complete(struct keyfile *f)
{
	f->head->lost = 0;
}

bool keyfile_lost(const struct keyfile *f)
{
	return f->head->lost || f->nameless;
}

int keyfile_nameless(const struct keyfile *f)
{
	return f->nameless;
}

enum keyfile_sight keyfile_look(const struct keyfile *f, int dir, int *ret_error)
{
	struct stat open, named;
	char name[NAME_MAX_];

	*ret_error = 0;
	if (f->fd < 0)
		return KEYFILE_GONE;
	if (fstat(f->fd, &open) || (size_t)open.st_size < f->bytes)
		return KEYFILE_CUT;
	file_name(name, f->id);
	if (fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW)) {
		*ret_error = errno == ENOENT ? 0 : -errno;
		return errno == ENOENT ? KEYFILE_GONE : KEYFILE_THERE;
	}
	return named.st_dev == open.st_dev && named.st_ino == open.st_ino ? KEYFILE_THERE : KEYFILE_GONE;
}

/* Parts of the source may be poisoned: see poison.h. Its bytes are a multiple of 8. */
__attribute__((no_sanitize("address"))) static void words_copy(char *to, const void *from, size_t bytes)
{
	const volatile uint64_t *word = from;

	for (size_t i = 0; i < bytes / sizeof(*word); i++) {
		uint64_t one = word[i];

		memcpy(to + i * sizeof(one), &one, sizeof(one));
	}
}

/* Fills an empty file with the mapped contents. */
static int file_fill(const struct keyfile *f, int fd)
{
	int r = posix_fallocate(fd, 0, (off_t)f->bytes);
	char *at;

	if (r)
		return -r;
	at = mmap(NULL, f->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	words_copy(at, f->head, PAGE);
	for (const struct mapped *m = f->slabs; m; m = m->next)
		words_copy(at + m->place, m->at, m->bytes);
	munmap(at, f->bytes);
	return 0;
}

/* If the new mapping fails, the old one may be gone: the process cannot go on. */
static void map_again(void *at, size_t bytes, int fd, size_t place)
{
	if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, (off_t)place) != at)
		abort();
}

/* The file gets its name when it is complete. The process may be killed at any moment, and a file without a head would count as damaged. */
static int file_renew(struct keyfile *f, int dir)
{
	char name[NAME_MAX_];
	int fd, r;

	file_name(name, f->id);
	unlinkat(dir, MADE, 0);
	fd = openat(dir, MADE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = file_fill(f, fd);
	if (!r && renameat(dir, MADE, dir, name) < 0)
		r = -errno;
	if (r) {
		unlinkat(dir, MADE, 0);
		close(fd);
		return r;
	}
	map_again(f->head, PAGE, fd, 0);
	for (const struct mapped *m = f->slabs; m; m = m->next)
		map_again(m->at, m->bytes, fd, m->place);
	if (f->fd >= 0)
		close(f->fd);
	f->fd = fd;
	return 0;
}

int keyfile_renew(struct keyfile *f, int dir)
{
	f->nameless = file_renew(f, dir);
	return f->nameless;
}

int keyfile_new(int dir, uint32_t id, uint32_t layout, struct keyfile **ret)
{
	struct keyfile *f = mem_alloc(sizeof(*f));
	void *head = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char name[NAME_MAX_];

	if (head == MAP_FAILED)
		mem_exhausted();
	*f = (struct keyfile){.fd = -1, .id = id, .head = head, .bytes = PAGE};
	*f->head = (struct file_head){.magic = MAGIC, .version = VERSION, .layout = layout, .id = id, .bytes = PAGE};
	file_name(name, id);
	f->nameless = faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? -EEXIST : file_renew(f, dir);
	*ret = f;
	return f->nameless;
}

uint32_t keyfile_id(const struct keyfile *f)
{
	return f->id;
}

/* The file as one map; NULL and errno. */
static const char *file_map(int dir, uint32_t id, size_t *ret_bytes)
{
	char name[NAME_MAX_];
	struct stat st;
	void *at = NULL;
	int fd;

	file_name(name, id);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	errno = EBADMSG;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)PAGE && st.st_size <= KEYFILE_MAX) {
		*ret_bytes = (size_t)st.st_size;
		at = mmap(NULL, *ret_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static bool slab_is_sound(const struct slab_head *head, size_t left)
{
	return head->magic == SLAB_MAGIC && head->sum == slab_sum(head) && head->bytes >= PAGE && head->bytes <= left && head->bytes % PAGE == 0 &&
	       head->object >= 16;
}

/* Visits the objects of the slab at this place. Returns its bytes; 0: it is no slab. */
static size_t slab_visit(const char *at, size_t left, void (*visit)(void *context, const void *object, size_t size), void *context)
{
	struct slab_head head;

	memcpy(&head, at, sizeof(head));
	if (!slab_is_sound(&head, left))
		return 0;
	for (size_t i = sizeof(head); visit && i + head.object <= head.bytes; i += head.object)
		visit(context, at + i, head.object);
	return head.bytes;
}

/* The process was killed while it extended the file: no key is in there. */
static bool slab_is_unfinished(const char *at, size_t n)
{
	return n % PAGE == 0 && ((const struct slab_head *)(const void *)at)->magic == 0;
}

/* least: the slabs have at least that many bytes. */
static int slabs_visit(const char *at, size_t bytes, size_t least, void (*visit)(void *context, const void *object, size_t size), void *context)
{
	size_t done = PAGE, n;

	while (done < bytes) {
		n = bytes - done < PAGE ? 0 : slab_visit(at + done, bytes - done, visit, context);
		if (n == 0)
			return done >= least && slab_is_unfinished(at + done, bytes - done) ? 0 : -EBADMSG;
		done += n;
	}
	return done < least ? -EBADMSG : 0;
}

int keyfile_read(int dir, uint32_t id, uint32_t layout, void (*visit)(void *context, const void *object, size_t size), void *context)
{
	struct file_head head;
	size_t bytes = 0;
	const char *at = file_map(dir, id, &bytes);
	int r = -errno;

	if (!at)
		return r;
	memcpy(&head, at, sizeof(head));
	if (memcmp(head.magic, MAGIC, sizeof(head.magic)) != 0 || head.version != VERSION || head.layout != layout || head.id != id)
		r = -EBADMSG;
	else if (head.lost)
		r = -EXDEV;
	else
		r = slabs_visit(at, bytes, head.bytes, NULL, NULL);
	if (!r)
		r = slabs_visit(at, bytes, head.bytes, visit, context);
	munmap((void *)(uintptr_t)at, bytes);
	return r;
}

const char *keyfile_fault(int error)
{
	return error == -EBADMSG ? "cut or damaged" : error == -EXDEV ? "it lacks some: there was no space for them" : strerror(-error);
}

void keyfile_remove(int dir, uint32_t id)
{
	char name[NAME_MAX_];

	file_name(name, id);
	unlinkat(dir, name, 0);
}

/* Opens its own listing, because the folder may be listed several times. NULL: it cannot be listed. */
static DIR *folder_list(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (!d && fd >= 0)
		close(fd);
	return d;
}

void keyfile_remove_others(int dir, uint32_t id)
{
	char name[NAME_MAX_];
	DIR *d = folder_list(dir);

	file_name(name, id);
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		if (strncmp(e->d_name, KEYFILE_KEYS, strlen(KEYFILE_KEYS)) == 0 && strcmp(e->d_name, name) != 0)
			unlinkat(dir, e->d_name, 0);
	if (d)
		closedir(d);
}
