/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/restart/parcel.c: descriptors come out as they went in, once, or not at all. */
#include "daemon/restart/parcel.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t mark[2] = {7, UINT64_MAX};
static struct fdlist list, found;

static void setup(void)
{
	list = found = (struct fdlist){0};
}

static void teardown(void)
{
	fdlist_close(&list);
	fdlist_close(&found);
}

/* Each is another file. */
static void descriptors(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int pair[2];

		ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
		close(pair[1]);
		fdlist_add(&list, pair[0]);
	}
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static const size_t amount[] = {0, 1, 249, 250, 251, 500, 700};

FIXTURE(.setup = setup, .teardown = teardown)

LOOP_TEST(descriptors_come_out_in_their_order_with_their_mark, sizeof(amount) / sizeof(*amount))
{
	uint64_t seen[2] = {0, 0};
	int parcel;

	descriptors(amount[_i]);
	parcel = parcel_pack(&list, mark);
	ck_assert_int_ge(parcel, 0);
	ck_assert_int_eq(parcel_unpack(parcel, &found, seen), 0);
	ck_assert_uint_eq(seen[0], mark[0]);
	ck_assert_uint_eq(seen[1], mark[1]);
	ck_assert_uint_eq(found.n, list.n);
	for (size_t i = 0; i < list.n; i++) {
		ck_assert(same_file(found.fd[i], list.fd[i]));
		ck_assert_int_eq(fcntl(found.fd[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	}
	ck_assert_int_eq(fcntl(parcel, F_GETFD), -1);
}

TEST(what_was_taken_out_is_not_there_a_second_time)
{
	uint64_t seen[2];
	int parcel, copy;

	descriptors(2);
	parcel = parcel_pack(&list, mark);
	copy = dup(parcel);
	ck_assert_int_eq(parcel_unpack(parcel, &found, seen), 0);
	ck_assert_int_eq(parcel_unpack(copy, &found, seen), -EBADMSG);
	ck_assert_uint_eq(found.n, 2);
}

TEST(a_connection_in_a_parcel_is_open_until_the_parcel_is_closed)
{
	int pair[2], parcel;
	char byte;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	fdlist_add(&list, pair[0]);
	parcel = parcel_pack(&list, mark);
	ck_assert_int_ge(parcel, 0);
	fdlist_close(&list);
	ck_assert_int_eq(send(pair[1], "x", 1, MSG_NOSIGNAL), 1);
	ck_assert_int_eq(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
	close(parcel);
	ck_assert_int_le(recv(pair[1], &byte, 1, 0), 0);
	close(pair[1]);
}

TEST(an_empty_place_is_refused)
{
	descriptors(2);
	close(list.fd[1]);
	list.fd[1] = -1;
	ck_assert_int_eq(parcel_pack(&list, mark), -EBADF);
}

/* Without the room for all of them none is taken: their peers see the end. */
TEST(a_process_that_may_not_have_all_of_them_gets_none)
{
	struct rlimit limit, before;
	uint64_t seen[2];
	int parcel;

	descriptors(300);
	parcel = parcel_pack(&list, mark);
	ck_assert_int_ge(parcel, 0);
	getrlimit(RLIMIT_NOFILE, &before);
	limit = before;
	limit.rlim_cur = (rlim_t)parcel + 280;
	setrlimit(RLIMIT_NOFILE, &limit);
	ck_assert_int_eq(parcel_unpack(parcel, &found, seen), -EBADMSG);
	setrlimit(RLIMIT_NOFILE, &before);
	ck_assert_uint_eq(found.n, 0);
}

TEST(what_is_no_parcel_is_refused)
{
	uint64_t seen[2];
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert_int_eq(send(pair[0], "hello", 5, 0), 5);
	ck_assert_int_eq(parcel_unpack(pair[1], &found, seen), -EBADMSG);
	close(pair[0]);
	ck_assert_uint_eq(found.n, 0);
}
