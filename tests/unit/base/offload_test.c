/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon/base/offload.c: calls that block, each in a thread. */
#include "daemon/base/offload.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static struct job {
	struct task task;
	pthread_t worker;
	bool worked, blocks_signals;
} job[OFFLOAD_TASKS + 1];
static struct offload *offload;
static int gate[2], over[2]; /* a task works until it reads a byte at the gate; one that is not wanted writes one to over */
static unsigned wanted, last_error;

static void work(struct task *t)
{
	struct job *j = (struct job *)t;
	sigset_t blocked;
	char byte;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	j->blocks_signals = sigismember(&blocked, SIGTERM) == 1;
	j->worker = pthread_self();
	j->worked = read(gate[0], &byte, 1) == 1;
}

static void end(struct task *t, bool is_wanted)
{
	if (is_wanted) {
		wanted++;
		last_error = (unsigned)t->error;
	} else {
		ck_assert_int_eq(write(over[1], "", 1), 1);
	}
}

static void setup(void)
{
	offload = offload_new();
	ck_assert(!pipe(gate) && !pipe(over));
	wanted = last_error = 0;
}

static void teardown(void)
{
	offload_free(offload);
	close(gate[1]);
}

static void begin(struct job *j)
{
	*j = (struct job){.task = {.work = work, .end = end}};
	offload_begin(offload, &j->task);
}

static void go_on(size_t n)
{
	while (n-- > 0)
		ck_assert_int_eq(write(gate[1], "", 1), 1);
}

/* The loop: until so many were wanted. */
static void collect(unsigned least)
{
	struct pollfd fd = {.fd = offload_fd(offload), .events = POLLIN};

	while (wanted < least) {
		ck_assert_int_eq(poll(&fd, 1, 20000), 1);
		offload_collect(offload);
	}
}

static void await_unwanted(size_t n)
{
	char byte;

	while (n-- > 0)
		ck_assert_int_eq(read(over[0], &byte, 1), 1);
}

FIXTURE(.setup = setup, .teardown = teardown, .seconds = 30)

TEST(a_task_works_in_a_thread_without_signals_and_ends_on_the_loop)
{
	begin(&job[0]);
	go_on(1);
	collect(1);
	ck_assert(job[0].worked && job[0].blocks_signals);
	ck_assert(!pthread_equal(job[0].worker, pthread_self()));
	ck_assert_uint_eq(last_error, 0);
}

TEST(a_task_without_work_ends_when_the_loop_comes_round)
{
	job[0] = (struct job){.task = {.end = end}};
	offload_begin(offload, &job[0].task);
	ck_assert_uint_eq(wanted, 0);
	collect(1);
}

TEST(a_task_that_is_forgotten_ends_and_is_not_wanted)
{
	begin(&job[0]);
	job[0].task.forgotten = true;
	begin(&job[1]);
	go_on(2);
	collect(1);
	offload_collect(offload);
	job[2] = (struct job){.task = {.end = end}};
	offload_begin(offload, &job[2].task);
	job[2].task.forgotten = true;
	offload_collect(offload);
	await_unwanted(1);
	ck_assert_uint_eq(wanted, 1);
}

TEST(tasks_beyond_the_bound_end_at_once)
{
	for (unsigned i = 0; i < OFFLOAD_TASKS; i++)
		begin(&job[i]);
	begin(&job[OFFLOAD_TASKS]);
	collect(1);
	ck_assert_uint_eq(last_error, EAGAIN);
	ck_assert(!job[OFFLOAD_TASKS].worked);
	go_on(OFFLOAD_TASKS);
	collect(OFFLOAD_TASKS + 1);
	ck_assert_uint_eq(last_error, 0);
	begin(&job[0]);
	go_on(1);
	collect(OFFLOAD_TASKS + 2);
	ck_assert_uint_eq(last_error, 0);
}

TEST(tasks_outlive_what_they_were_begun_with)
{
	begin(&job[0]);
	begin(&job[1]);
	offload_free(offload);
	offload = NULL;
	go_on(2);
	await_unwanted(2);
	ck_assert(job[0].worked && job[1].worked);
	ck_assert_uint_eq(wanted, 0);
}
