/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/base/segment.c, mem.c and fdlist.c: memory and descriptors that go to another process. */
#include "daemon/base/segment.h"

#include "daemon/base/buf.h"
#include "daemon/base/fdlist.h"
#include "daemon/base/map.h"
#include "daemon/base/mem.h"
#include "daemon/base/rng.h"
#include "tests/fixture/seed.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAYOUT "the layout of this test"
#define BLOCKS 400

static struct segment *segment;

static void setup(void)
{
	segment = segment_new(LAYOUT, 3);
	ck_assert_ptr_nonnull(segment);
}

static void teardown(void)
{
	if (segment)
		segment_close(segment);
	segment = NULL;
}

/* As the next process does, but in this one. */
static void again(void)
{
	int fd = dup(segment_fd(segment));
	const char *why;

	segment_close(segment);
	segment = segment_open(fd, LAYOUT, &why);
	ck_assert_msg(segment != NULL, "%s", why);
}

struct kept {
	unsigned char *p;
	size_t n;
	unsigned char fill;
};

static void kept_check(const struct kept *k)
{
	for (size_t i = 0; i < k->n; i++)
		ck_assert_uint_eq(k->p[i], k->fill);
}

static size_t size_draw(struct rng *rng)
{
	return rng_below(rng, 20) ? rng_below(rng, 600) : rng_below(rng, 300000);
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 60)

TEST(blocks_keep_what_is_in_them_through_everything)
{
	struct kept kept[BLOCKS] = {{0}};
	struct rng rng;
	size_t live = 0;

	rng_init(&rng, (uint64_t[]){seed_pick("segment"), 1});
	for (unsigned i = 0; i < 40000; i++) {
		struct kept *k = &kept[rng_below(&rng, BLOCKS)];
		size_t n = size_draw(&rng);

		kept_check(k);
		live -= k->n;
		if (k->p && rng_below(&rng, 3) == 0) {
			segment_free(k->p);
			*k = (struct kept){0};
		} else if (k->p) {
			k->p = segment_grow(k->p, n);
			for (size_t j = 0; j < k->n && j < n; j++)
				ck_assert_uint_eq(k->p[j], k->fill);
		} else {
			k->p = segment_alloc(segment, n);
		}
		if (k->p) {
			ck_assert_uint_eq((uintptr_t)k->p % SEGMENT_ALIGN, 0);
			ck_assert_ptr_eq(segment_of(k->p), segment);
			*k = (struct kept){k->p, n, (unsigned char)i};
			memset(k->p, k->fill, n);
		}
		live += k->n;
		ck_assert_uint_eq(segment_live(segment), live);
		if (i % 10000 == 9999)
			again();
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		kept_check(&kept[i]);
		if (kept[i].p)
			segment_free(kept[i].p);
	}
	ck_assert_uint_eq(segment_live(segment), 0);
}

/* The memory that a steady load needs does not grow, and large blocks give theirs back. */
TEST(freed_memory_is_used_again_or_given_back)
{
	struct stat st, then;
	void *p;

	for (unsigned i = 0; i < 100; i++)
		segment_free(segment_alloc(segment, 8 << 20));
	ck_assert_int_eq(fstat(segment_fd(segment), &st), 0);
	p = segment_alloc(segment, 8 << 20);
	memset(p, 1, 8 << 20);
	ck_assert_int_eq(fstat(segment_fd(segment), &then), 0);
	ck_assert_int_eq(then.st_size, st.st_size);
	ck_assert_int_ge(then.st_blocks * 512, 8 << 20);
	segment_free(p);
	ck_assert_int_eq(fstat(segment_fd(segment), &then), 0);
	ck_assert_int_lt(then.st_blocks * 512, 1 << 20);
}

TEST(containers_live_in_it_if_it_is_in_use)
{
	struct segment *before = mem_use(segment);
	char *text = mem_copy("abc", 3), *zeros = mem_alloc(5000);
	struct buf *b = mem_alloc(sizeof(*b));

	buf_printf(b, "%s", text);
	mem_use(before);
	ck_assert_ptr_null(before);
	ck_assert_ptr_eq(segment_of(text), segment);
	ck_assert_ptr_eq(segment_of(buf_begin(b)), segment);
	for (size_t i = 0; i < 5000; i++)
		ck_assert_int_eq(zeros[i], 0);
	again();
	ck_assert_str_eq(text, "abc");
	buf_append(b, "def", 3);      /* ordinary memory is in use, but it stays where it is */
	ck_assert_ptr_eq(segment_of(buf_begin(b)), segment);
	ck_assert_mem_eq(buf_begin(b), "abcdef", 6);
	buf_release(b);
	mem_free(b);
	mem_free(text);
	mem_free(zeros);
	mem_free(NULL);
	ck_assert_uint_eq(segment_live(segment), 0);
	text = mem_copy("x", 1);
	ck_assert_ptr_null(segment_of(text));
	mem_free(text);
}

/* What another process, at other addresses, finds. */
TEST(another_process_finds_what_the_root_points_to)
{
	char **list = segment_alloc(segment, 2 * sizeof(*list)), number[12];
	int status;
	pid_t pid;

	list[0] = segment_alloc(segment, 6);
	list[1] = segment_alloc(segment, 6);
	memcpy(list[0], "first", 6);
	memcpy(list[1], "again", 6);
	segment_set_root(segment, list);
	snprintf(number, sizeof(number), "%d", segment_fd(segment));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		int fd = dup(segment_fd(segment));
		const char *why = "";
		struct segment *s;

		munmap(segment, SEGMENT_SIZE);
		s = segment_open(fd, LAYOUT, &why);
		if (!s)
			_exit(1);
		list = segment_root(s);
		_exit(strcmp(list[0], "first") == 0 && strcmp(list[1], "again") == 0 ? 0 : 2);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void refused(int fd, const char *layout, const char *why)
{
	const char *said = NULL;

	ck_assert_ptr_null(segment_open(fd, layout, &said));
	ck_assert_str_eq(said, why);
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
}

TEST(what_is_no_segment_is_refused)
{
	int fd = segment_fd(segment), other = memfd_create("other", MFD_CLOEXEC);
	char page[4096] = {0};

	refused(fd, LAYOUT, "File exists"); /* it is mapped here already */
	refused(fd, "another layout", "another build wrote it");
	refused(other, LAYOUT, "it is damaged");
	ck_assert_int_eq(pwrite(other, page, sizeof(page), 0), sizeof(page));
	refused(other, LAYOUT, "it is damaged");
	ck_assert_int_eq(pread(fd, page, sizeof(page), 0), sizeof(page));
	ck_assert_int_eq(pwrite(other, page, sizeof(page), 0), sizeof(page));
	refused(other, LAYOUT, "it is damaged"); /* the file is shorter than it says */
	close(other);
	refused(other = open("/dev/null", O_RDWR), LAYOUT, "it is damaged");
	close(other);
}

static uintptr_t strays[4];

static void on_stray(void *context, const void *at, size_t size, size_t offset, uintptr_t word)
{
	unsigned *n = context;

	ck_assert_uint_eq(size, 4 * sizeof(void *));
	ck_assert_uint_eq(((const uintptr_t *)at)[offset / sizeof(word)], word);
	strays[(*n)++] = word;
}

TEST(pointers_to_elsewhere_are_found_and_no_others)
{
	const void **p = segment_alloc(segment, 4 * sizeof(*p));
	static const char text[] = "a literal";
	char *heap = mem_copy("x", 1);
	unsigned n = 0;

	p[0] = p;
	p[1] = (const void *)123456789;
	p[2] = text;
	p[3] = heap;
	ck_assert_uint_eq(segment_strays(segment, on_stray, &n), 2);
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(strays[0], (uintptr_t)text);
	ck_assert_uint_eq(strays[1], (uintptr_t)heap);
	mem_free(heap);
	segment_free(p);
	ck_assert_uint_eq(segment_strays(segment, on_stray, &n), 0);
}

/* Also where the next owner has written over a part of it, as a text does. */
TEST(what_was_freed_or_cut_off_is_no_stray)
{
	const void **p;

	segment_clear_freed(segment);
	p = segment_alloc(segment, 4 * sizeof(*p));
	p[1] = p[2] = p[3] = strays;
	p = segment_grow(p, 3 * sizeof(*p));
	p = segment_grow(p, 4 * sizeof(*p));
	ck_assert_ptr_null(p[3]);
	segment_free(p);
	p = segment_alloc(segment, 4 * sizeof(*p));
	memcpy(p, "a line.\r\n", 9);
	ck_assert_uint_eq(segment_strays(segment, NULL, NULL), 0);
	segment_free(p);
}

SIGNAL_TEST(a_block_that_is_freed_twice_ends_the_process, SIGABRT)
{
	void *p = segment_alloc(segment, 100);

	ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr)); /* the assertion's own words */
	segment_free(p);
	segment_free(p);
}

/* Each test has a process of its own. */
TEST(a_process_whose_files_may_not_be_so_long_gets_no_segment)
{
	const struct rlimit limit = {SEGMENT_SIZE - 1, SEGMENT_SIZE - 1};

	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_ptr_null(segment_new(LAYOUT, 5));
	ck_assert_int_eq(errno, EFBIG);
}

TEST(a_descriptor_is_taken_once_and_the_others_are_closed)
{
	struct fdlist l = {0};
	int fd[40];

	for (int i = 0; i < 40; i++) {
		fd[i] = open("/dev/null", O_RDONLY);
		ck_assert_uint_eq(fdlist_add(&l, fd[i]), (size_t)i);
	}
	ck_assert_int_eq(fdlist_take(&l, 39), fd[39]);
	ck_assert_int_eq(fdlist_take(&l, 39), -1);
	ck_assert_int_eq(fdlist_take(&l, 40), -1);
	fdlist_close(&l);
	ck_assert_int_eq(fcntl(fd[0], F_GETFD), -1);
	ck_assert_int_ge(fcntl(fd[39], F_GETFD), 0);
	close(fd[39]);
}
