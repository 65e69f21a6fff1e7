<?php
// SPDX-License-Identifier: BSD-2-Clause
// A lock from PHP, by its FFI: php lock.php NAME. What is declared here stands in redlock.h.
$lib = FFI::cdef('
    struct redlock;
    struct redlock_options { size_t size; int64_t wait_ms, ttl_ms; bool no_renew; const char *note; };
    struct redlock_grant { int64_t fence, ttl_ms, valid_ms, count, until_us; };
    int redlock_open(const char *addr, int64_t timeout_ms, struct redlock **ret);
    int redlock_lock(struct redlock *c, const char *name, const struct redlock_options *options, struct redlock_grant *ret);
    int redlock_check(struct redlock *c, const char *name, struct redlock_grant *ret);
    int redlock_unlock(struct redlock *c, const char *name, int64_t keep_ms);
    int64_t redlock_left_us(const struct redlock_grant *grant);
    const char *redlock_errmsg(const struct redlock *c);
    void redlock_close(struct redlock *c);', getenv('REDLOCK_LIBRARY') ?: 'libredlock.so.0');
[$connection, $options, $grant] = [$lib->new('struct redlock *'), $lib->new('struct redlock_options'), $lib->new('struct redlock_grant')];
$must = function (int $result) use ($lib, &$connection): void {
    if ($result != 0) { // 1: busy, 2: not free in time, 3: refused; negative: an errno
        throw new RuntimeException($lib->redlock_errmsg($connection), $result);
    }
};
$must($lib->redlock_open(null, 1000, FFI::addr($connection)));
$options->size = FFI::sizeof($options); // of a shorter struct than that of redlock.h: what it lacks has its default
$options->wait_ms = 500;
$must($lib->redlock_lock($connection, $argv[1], FFI::addr($options), FFI::addr($grant)));
echo "fence $grant->fence\n"; // send it along with what you write
$must($lib->redlock_check($connection, $argv[1], FFI::addr($grant))); // right before a side effect, and each third of the lease
echo 'left ', $lib->redlock_left_us(FFI::addr($grant)) > 0 ? 'some' : 'none', "\n";
$must($lib->redlock_unlock($connection, $argv[1], 0));
$lib->redlock_close($connection);
