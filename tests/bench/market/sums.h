/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the market adds up when all actors rest: what stands in Redis, against what the actors say that they did. */
#ifndef MARKET_SUMS_H
#define MARKET_SUMS_H

#include "tests/bench/market/actor.h"

/*
 * No money came or went, and each buyer has paid what it says. Each item that was made is in one place, and in one only: with its seller, on the market,
 * or with a buyer. The buyers have as many as they say. What is wrong is printed on standard error.
 */
bool sums_hold(struct actor *actors, unsigned count);

#endif
