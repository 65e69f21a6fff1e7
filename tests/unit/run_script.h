/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts that transcripts of redlock run are made of.
 */
#ifndef UNIT_RUN_SCRIPT_H
#define UNIT_RUN_SCRIPT_H

#include "tests/unit/fake_daemon.h"

#define HELLO  "< HELLO 1 name=\"redlock run \n> OK proto=1 session=7\n"
#define LOCK   HELLO "< LOCK n wait=forever note=\n> OK name=n fence=17 valid_ms=100000 ttl_ms=100000 count=1\n"
#define CHECK  "< CHECK n\n> OK name=n fence=17 valid_ms=90000 ttl_ms=100000 count=1\n"
#define UNLOCK "< UNLOCK n$\n> OK name=n count=0\n=\n"
/* A lease of 600 ms: SIGTERM 480 ms after the last CHECK that was answered, SIGKILL at 540 ms. */
#define SHORT       "> OK name=n fence=17 valid_ms=600 ttl_ms=600 count=1\n"
#define SHORT_CHECK " OK name=n fence=17 valid_ms=600 ttl_ms=600 count=1\n"
#define SHORT_LOCK  HELLO "< LOCK n wait=forever\n" SHORT "< CHECK n\n" SHORT
#define SHORT_US    600000

#endif
