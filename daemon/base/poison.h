/* SPDX-License-Identifier: BSD-2-Clause */
/* Marks the free bytes of a pool or an arena for AddressSanitizer. Has no effect in a plain build. */
#ifndef BASE_POISON_H
#define BASE_POISON_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BASE_POISON 1
#endif
#endif

#if defined(BASE_POISON) || defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define memory_poison(p, n)   ASAN_POISON_MEMORY_REGION((p), (n))
#define memory_unpoison(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
#define memory_poison(p, n)   ((void)(p), (void)(n))
#define memory_unpoison(p, n) ((void)(p), (void)(n))
#endif

#endif
