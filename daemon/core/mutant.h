/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mistakes planted on purpose, to show that the simulator sees them. A program built with -DMUTANT=MUTANT_<ID> has that one; in every other build
 * MUTATED is the constant 0 and leaves nothing behind. The rows are in mutant.def; `make mutants` builds and hunts each. Most are planted from outside,
 * by a change of a copy of the source: those have no MUTATED.
 */
#ifndef CORE_MUTANT_H
#define CORE_MUTANT_H

enum mutant {
	MUTANT_NONE,
#define PLANT(id, text) MUTANT_##id,
#include "daemon/core/mutant.def"
#undef PLANT
};

#ifndef MUTANT
#define MUTANT MUTANT_NONE
#endif
#define MUTATED(id) (MUTANT == MUTANT_##id)

#endif
