/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TESTS_LAWS_H
#define MS_TESTS_LAWS_H

/* Random graphs and programs, and an oracle that is naive on purpose: plain
 * walks over arrays, no state shared with the code under test.
 *
 *     laws_random random = {seed};
 *     laws_graph(&random, &arena, &graph);
 *     laws_keep(&random, &graph, &arena, &keep);
 *     ... program, expand, replay ...
 *     laws_check_rows(&plan);
 *     laws_check_levels(&plan, &line);
 *
 * Checks fail through libcheck, with the seed in laws_seed. */

#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "tools/cli/commands.h"

typedef struct laws_random {
    uint64_t state;
} laws_random;

extern uint64_t laws_seed; /* the seed of the trial that runs, for messages */

uint32_t laws_below(laws_random *random, uint32_t n); /* 0 .. n - 1 */
bool laws_chance(laws_random *random, uint32_t percent);

/* A training step: units of several ops, skips, random saved sets, backward
 * ops that read them, gradients, an optimizer; sometimes several streams. */
void laws_graph(laws_random *random, ms_arena *arena, ms_graph *graph);
/* Random places of saved storages, random segments. */
void laws_keep(laws_random *random, const ms_graph *graph, ms_arena *arena,
               ms_keep *keep);
/* Inserts moves of random kept storages to host memory, and waits for them. */
void laws_moves(laws_random *random, const ms_graph *graph, ms_arena *arena,
                ms_program *program);

/* Makes ranks share random states, of which each has a random part. */
void laws_share(laws_random *random, ms_graph *graph, ms_arena *arena);
/* Inserts gathers, reductions and releases of random states. */
void laws_collectives(laws_random *random, const ms_graph *graph,
                      ms_arena *arena, ms_program *program);

/* Inserts random WORK calls: for every unit, on every stream, with sets of
 * storages that may or may not be there. */
void laws_work(laws_random *random, const ms_graph *graph, ms_arena *arena,
               ms_program *program);

/* ranks.c: one program in which rank i runs the program of[i] (of one rank).
 * The calls of the ranks follow each other rank by rank, in turn, or at random.
 */
ms_program laws_ranks(laws_random *random, const ms_program *const *of,
                      uint32_t n, ms_arena *arena);

/* n equal units of one op each, in n blocks: op i reads and saves a_(i - 1) and
 * makes a_i; a_0 is an input. Each tensor has unit_bytes; the loss has one
 * byte. Only activations have gradients. */
void laws_chain(uint32_t n, uint64_t unit_bytes, ms_arena *arena,
                ms_graph *graph);

/* Of ms_expand_opts: groups of some of the roles, of several sizes, on nodes of
 * two. */
#define LAWS_LINKS                                                             \
    {                                                                          \
        .node_bytes_per_s = 1e11, .network_bytes_per_s = 1e10                  \
    }
#define LAWS_GROUP(role, members, apart, on_node, where)                       \
    [role] = {.ranks = (members),                                              \
              .stride = (apart),                                               \
              .node_ranks = (on_node),                                         \
              .queue = (where),                                                \
              .links = LAWS_LINKS}
#define LAWS_GROUPS                                                            \
    {                                                                          \
        LAWS_GROUP(MS_GROUP_DATA, 4, 1, 2, MS_STREAM_COMM),                    \
            LAWS_GROUP(MS_GROUP_REPLICATE, 3, 4, 1, MS_STREAM_OUTER),          \
            LAWS_GROUP(MS_GROUP_NODE, 2, 1, 2, MS_STREAM_COMM),                \
            LAWS_GROUP(MS_GROUP_ACROSS, 2, 2, 1, MS_STREAM_COMM),              \
            LAWS_GROUP(MS_GROUP_EXPERT_DATA, 3, 2, 1, MS_STREAM_COMM),         \
            LAWS_GROUP(MS_GROUP_EXPERT_REPLICATE, 2, 1, 2, MS_STREAM_OUTER),   \
            LAWS_GROUP(MS_GROUP_PIPELINE, 4, 1, 2, MS_STREAM_OUTER)            \
    }

/* ---- builder.c: columns of a graph, as ops are appended ------------------ */

typedef struct laws_builder {
    ms_graph *graph;
    ms_arena *arena;
    uint32_t n_in, n_out;
} laws_builder;

void laws_build_open(laws_builder *builder, ms_graph *graph, ms_arena *arena,
                     uint32_t storages, uint32_t ops, uint32_t units);
uint32_t laws_build_storage(laws_builder *builder, uint64_t bytes,
                            uint8_t category, bool at_start);
uint32_t laws_build_op(laws_builder *builder, uint8_t pass, uint32_t unit,
                       uint64_t ns, const uint32_t *in, uint32_t n_in,
                       const uint32_t *out, uint32_t n_out);
/* Ends local references at the last forward reader (for storages that backward
 * makes: at the last reader), unless local_end and saved_end are set already;
 * then makes the drop lists and the inputs of units. */
void laws_build_close(laws_builder *builder);

/* ---- oracle.c ------------------------------------------------------------ */

/* The framework takes time of its own beside the launch, in each pass another
 * share of it. */
void laws_framework(ms_machine *machine);

/* rows.c: a row is allocated once, freed at most once, and alive at each use;
 * an op's inputs are alive when it runs. */
void laws_check_rows(const ms_plan *plan);
/* Checks every start, end and wait, by one pass over the plan for each rank. */
void laws_check_clock(const ms_plan *plan, const ms_timeline *line,
                      const ms_machine *machine);
/* levels.c: events, levels, categories and the peak of each rank, in host
 * order. */
void laws_check_levels(const ms_plan *plan, const ms_timeline *line);
/* active.c: active and reserved bytes of each rank, in host order. */
void laws_check_active(const ms_plan *plan, const ms_timeline *line,
                       const ms_machine *machine);
/* work.c: each WORK call of a program of one rank takes its time on its stream,
 * reads those rows of its set that are there, and later readers of these rows
 * wait for it. without is the plan of the same program without the calls, and
 * is otherwise equal. */
void laws_check_work(const ms_program *program, const ms_expand_opts *opts,
                     const ms_timeline *line, const ms_plan *without);
/* The calls' part in the report: packing counts as stalls of the compute
 * stream, and work on the host's cores as theirs. */
void laws_check_work_times(const ms_timeline *line, const ms_rank_report *rank);
/* layers.c: what layers keep, run and run again sums to the report, together
 * with what the closures of checkpoints hold. */
void laws_check_layers(const ms_timeline *line, const ms_report *report,
                       ms_arena *arena);
/* The streams that each row notes are those of plan.use. */
void laws_check_streams(const ms_plan *plan);
/* Levels in the order of device time: a row covers its uses. */
void laws_check_device_levels(const ms_plan *plan, const ms_timeline *line);
/* steady.c: a step leaves what it started with, on the device, on the host and
 * on the disk. clears_grads: except .grad, which zero_grad of the training loop
 * frees before the next forward. */
void laws_check_steady(const ms_plan *plan, bool clears_grads);
/* Peaks, parts and times of the report; marks only in host order. */
void laws_check_report(const ms_timeline *line, const ms_report *report,
                       bool in_host_order);
/* With everything kept, the level follows from the graph alone. */
void laws_check_template(const ms_graph *graph, const ms_plan *plan,
                         uint32_t micro_batches);

/* Bytes of a plan's exchanges that are ops of the graph. */
uint64_t laws_exchanged(const ms_plan *plan);

/* Memory for a check; it is freed with its arena. */
void *laws_take(ms_arena *arena, size_t n, size_t size);
uint64_t laws_larger(uint64_t a, uint64_t b);

#endif
