/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_ALLOC_ARENA_H
#define MS_ALLOC_ARENA_H

/* memsim alloc --allocator arena: static plans, side by side.
 *
 *     alloc_arena.c  options to runs, the command
 *     alloc_place.c  a run's plan
 *     alloc_lives.c  buffers from CSV, text traces and recorded histories
 *     alloc_plans.c  plans as text, JSON and CSV */

#include "policies/common/policy.h"
#include "sim/pools/place/placement.h"
#include "tools/cli/alloc/alloc.h"
#include "tools/cli/commands.h"
#include "tools/options/options.h"
#include "tools/results/keys/keys.h"
#include "tools/terminal/screen.h"

#define MS_ALLOC_MOST_STEPS UINT64_C(1000000)
#define MS_ALLOC_BYTES 512u /* what PyTorch rounds sizes up to */

/* Orders behind the rules of placement.c: whole objects in two orders, the
 * lowest plan of all rules, and the exact search. */
enum {
    MS_ALLOC_OBJECTS = MS_PLACEMENT_N_RULES,
    MS_ALLOC_FLOW,
    MS_ALLOC_BEST,
    MS_ALLOC_EXACT,
    MS_ALLOC_N_ORDERS
};
typedef struct ms_alloc_order {
    const char *name, *help;
} ms_alloc_order;
/* order < MS_ALLOC_N_ORDERS, of --allocator arena,order=. */
ms_alloc_order ms_alloc_plans_order(uint32_t order);

typedef struct ms_alloc_plan {
    const char *spec;
    /* by: the order that made the plan */
    uint32_t order, by;
    /* 0: the plan is to be as low as possible */
    uint64_t capacity_bytes;
    /* most_ns 0: there is no limit on the time */
    uint64_t most_steps, most_ns, n_steps;
    uint64_t height, *offsets; /* offsets NULL: no plan was found */
    uint64_t floor_bytes; /* it is proven that no plan is lower than this */
    /* Where offsets is NULL: the height of the lowest plan that is known. */
    uint64_t known_bytes;
    uint32_t known_by;
} ms_alloc_plan;

typedef struct ms_alloc_arena {
    const char *name; /* the name of the trace */
    ms_placement_list list;
    uint64_t bound_bytes;
    ms_alloc_plan plans[MS_ALLOC_MOST_POOLS];
    uint32_t n_plans;
} ms_alloc_arena;

/* Says whether --allocator asks for a static plan. */
bool ms_alloc_arena_asked(const ms_arguments *arguments);
ms_err ms_alloc_arena_command(const ms_hall *hall, ms_fault *fault);

/* Makes one plan; run->list and run->bound_bytes must be set. */
ms_err ms_alloc_place(const ms_alloc_arena *run, ms_alloc_plan *plan,
                      const ms_hall *hall, ms_fault *fault);

ms_err ms_alloc_lives_read(const char *path, ms_arena *arena, const char **name,
                           ms_placement_list *list, ms_fault *fault);

void ms_alloc_plans_text(const ms_alloc_arena *run, const ms_style *style,
                         ms_text *text);
/* the keys of what ms_alloc_plans_json prints */
extern const ms_keys ms_alloc_plans_keys;
void ms_alloc_plans_json(const ms_alloc_arena *run, ms_text *text);
/* the columns of what ms_alloc_plans_csv prints */
extern const ms_keys ms_alloc_plans_line;
void ms_alloc_plans_csv(const ms_alloc_arena *run, ms_text *text);

#endif
