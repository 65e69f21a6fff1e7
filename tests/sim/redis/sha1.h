/* SPDX-License-Identifier: BSD-2-Clause */
/* SHA-1 (FIPS 180-4) in hex, by which Redis names scripts. For nothing else. */
#ifndef SIM_SHA1_H
#define SIM_SHA1_H

#include "proto/span.h"

#define SHA1_HEX 40

void sha1_hex(struct span text, char ret_hex[SHA1_HEX + 1]);

#endif
