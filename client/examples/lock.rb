# SPDX-License-Identifier: BSD-2-Clause
# A lock from Ruby, by Fiddle: ruby lock.rb NAME. What is declared here stands in redlock.h.
require "fiddle/import"

module Redlock
  extend Fiddle::Importer
  dlload ENV.fetch("REDLOCK_LIBRARY", "libredlock.so.0")
  typealias "int64_t", "long long"
  Options = struct ["size_t size", "int64_t wait_ms", "int64_t ttl_ms"]
  Grant = struct ["int64_t fence", "int64_t ttl_ms", "int64_t valid_ms", "int64_t count", "int64_t until_us"]
  extern "int redlock_open(char *, int64_t, void *)"
  extern "int redlock_lock(void *, char *, void *, void *)"
  extern "int redlock_check(void *, char *, void *)"
  extern "int redlock_unlock(void *, char *, int64_t)"
  extern "int64_t redlock_left_us(void *)"
  extern "char *redlock_errmsg(void *)"
  extern "void redlock_close(void *)"
end

connection, options, grant = nil, Redlock::Options.malloc(Fiddle::RUBY_FREE), Redlock::Grant.malloc(Fiddle::RUBY_FREE)
must = ->(result) { result.zero? or raise "#{result}: #{Redlock.redlock_errmsg(connection)}" } # 1: busy, 2: not free in time, 3: refused; negative: an errno
Fiddle::Pointer.malloc(Fiddle::SIZEOF_VOIDP, Fiddle::RUBY_FREE).tap { |place| must.(Redlock.redlock_open(nil, 1000, place)); connection = place.ptr }
options.size, options.wait_ms, options.ttl_ms = Redlock::Options.size, 500, 0 # a shorter struct than that of redlock.h: what it lacks has its default
must.(Redlock.redlock_lock(connection, ARGV[0], options, grant))
puts "fence #{grant.fence}" # send it along with what you write
must.(Redlock.redlock_check(connection, ARGV[0], grant)) # right before a side effect, and each third of the lease
puts "left #{Redlock.redlock_left_us(grant).positive? ? "some" : "none"}"
must.(Redlock.redlock_unlock(connection, ARGV[0], 0))
Redlock.redlock_close(connection)
