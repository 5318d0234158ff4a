/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TESTS_CHAIN_H
#define MS_TESTS_CHAIN_H

/* The fixture of suites that plan by hand on a chain of equal units
 * (laws_chain): unit i reads and saves a_i (a_0 is an input) and makes
 * a_(i + 1); forward takes 10 ns, backward 20.  Storage i is a_i.
 *
 *     tcase_add_checked_fixture(tcase, chain_setup, chain_teardown);
 *     ...
 *     laws_outcome out = chain_run("swap:belady,budget=1GB", 25, 1);
 */

#include "sim/graph.h"
#include "tests/laws/laws.h"
#include "tests/laws/policy.h"

#define CHAIN_UNITS 8u
#define CHAIN_BYTES UINT64_C(1000000) /* of each a_i */
#define CHAIN_NS (CHAIN_UNITS * 30)
#define CHAIN_PEAK ((CHAIN_UNITS + 3) * CHAIN_BYTES + 1)

extern ms_arena chain_arena;
extern ms_fault chain_fault;
extern ms_graph chain_graph;

void chain_setup(void);
void chain_teardown(void);
/* copy_ns: of each copy of an a_i. */
laws_outcome chain_run(const char *policy, uint64_t copy_ns,
                       uint32_t micro_batches);
/* The storages that the program moves to the host's memory, in order. */
uint32_t chain_moved(const laws_outcome *out,
                     uint32_t storages[2 * CHAIN_UNITS]);

#endif
