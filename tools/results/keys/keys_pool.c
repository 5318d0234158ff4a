/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of "pool" in memsim run --json, which is the pool of the rank
 * that the report is about. */

#include "graphs/json/json.h"
#include "policies/common/policy.h"
#include "sim/pools/steps/pooled.h"
#include "tools/job/allocator.h"
#include "tools/results/sheet.h"

#define MUST MS_KEYS_MUST
#define SKIP MS_KEYS_SKIP
#define POOLED(kind, member)                                                   \
    MS_KEYS_VIA(ms_sheet, pooled), MS_KEYS_AT(kind, ms_pooled, member)
#define RANK(kind, member)                                                     \
    MS_KEYS_VIA(ms_sheet, pooled_rank), MS_KEYS_AT(kind, ms_pooled_rank, member)

#define MOMENT(kind, member) MS_KEYS_AT(kind, struct ms_pooled_moment, member)
static const ms_key moment_rows[] = {
    MS_KEYS_COUNT("reserved_bytes", MOMENT(U64, reserved_bytes), MUST),
    MS_KEYS_COUNT("allocated_bytes", MOMENT(U64, allocated_bytes), MUST),
    MS_KEYS_COUNT("idle_bytes", MOMENT(U64, idle_bytes), MUST),
    MS_KEYS_COUNT("largest_idle_bytes", MOMENT(U64, largest_idle_bytes), MUST),
    MS_KEYS_COUNT("usable_bytes", MOMENT(U64, usable_bytes), MUST),
    MS_KEYS_COUNT("next_request_bytes", MOMENT(U64, next_bytes), MUST)};
static const ms_keys moment = MS_KEYS_OBJECT("pool_moment", moment_rows);

#define OOM(kind, member) MS_KEYS_AT(kind, ms_pooled_oom, member)
static const ms_key oom_rows[] = {
    MS_KEYS_COUNT("step", OOM(U32, step), MUST),
    MS_KEYS_COUNT("rank", OOM(U8, rank)),
    MS_KEYS_COUNT("requested_bytes", OOM(U64, requested_bytes), MUST),
    MS_KEYS_COUNT("total_bytes", OOM(U64, total_bytes)),
    MS_KEYS_COUNT_OR_NULL("allowed_bytes", OOM(U64, allowed_bytes)),
    MS_KEYS_COUNT("free_bytes", OOM(U64, free_bytes)),
    MS_KEYS_COUNT("allocated_bytes", OOM(U64, allocated_bytes)),
    MS_KEYS_COUNT("reserved_bytes", OOM(U64, reserved_bytes))};
static const ms_keys oom = MS_KEYS_OBJECT("pool_oom", oom_rows);

static bool oom_there(const void *of)
{
    const ms_sheet *sheet = of;
    return sheet->pooled->oom;
}

static ms_err oom_room(const ms_values *values, uint32_t value, void *of)
{
    (void)values;
    (void)value;
    ((ms_sheet *)of)->pooled->oom = true;
    return MS_OK;
}

/* ---- each step ----------------------------------------------------------- */

#define STEP(member) MS_KEYS_AT(U64, ms_pooled_step, member)
static const ms_key step_peak_rows[] = {
    MS_KEYS_COUNT("allocated_bytes", STEP(allocated_peak_bytes), MUST),
    MS_KEYS_COUNT("reserved_bytes", STEP(reserved_peak_bytes), MUST)};
static const ms_keys step_peak =
    MS_KEYS_OBJECT("pool_step_peak", step_peak_rows);
static const ms_key step_end_rows[] = {
    MS_KEYS_COUNT("allocated_bytes", STEP(allocated_bytes)),
    MS_KEYS_COUNT("reserved_bytes", STEP(reserved_bytes), MUST),
    MS_KEYS_COUNT("segments", STEP(segments), MUST)};
static const ms_keys step_end = MS_KEYS_OBJECT("pool_step_end", step_end_rows);
static const ms_key step_calls_rows[] = {
    MS_KEYS_COUNT("device_allocs", STEP(device_allocs), MUST),
    MS_KEYS_COUNT("device_frees", STEP(device_frees), MUST),
    MS_KEYS_COUNT("retries", STEP(retries), MUST)};
static const ms_keys step_calls =
    MS_KEYS_OBJECT("pool_step_calls", step_calls_rows);

#define KIND(member)                                                           \
    MS_KEYS_VIA(ms_sheet_step, kind), MS_KEYS_AT(SOME, ms_pooled_kind, member)
#define PART(keys)                                                             \
    .type = MS_KEY_OBJECT, .of = &(keys), MS_KEYS_VIA(ms_sheet_step, step)
static const ms_key step_rows[] = {
    MS_KEYS_COUNT_OR_NULL("batch", KIND(batch), MUST),
    MS_KEYS_COUNT_OR_NULL("sequence", KIND(sequence), MUST),
    {.name = "peak", PART(step_peak), MUST},
    {.name = "at_end", PART(step_end), MUST},
    {.name = "calls", PART(step_calls), MUST}};
static const ms_keys step =
    MS_KEYS_STRUCT("pool_step", step_rows, ms_sheet_step);

static ms_key_list step_list(const void *of)
{
    const ms_sheet *sheet = of;
    return (ms_key_list){sheet->steps, sheet->pooled->setup.steps,
                         sizeof *sheet->steps};
}

/* Allocates as many kinds as steps: a reader does not need to know which
 * steps are alike, only whether all of them are. */
static ms_err step_room(const ms_values *values, uint32_t value, void *of)
{
    ms_sheet *sheet = of;
    ms_pooled *pooled = sheet->pooled;
    uint32_t n = values->json->nodes[value].value.n;
    uint16_t rank = sheet->report->told;
    if (n == 0 || n > MS_ALLOCATOR_MOST_STEPS)
        return ms_json_fail(values->json, value, values->fault, NULL,
                            "there are 1 to %u steps, not %u",
                            MS_ALLOCATOR_MOST_STEPS, n);
    ms_pooled_kind *kinds = ms_arena_take(values->arena, n, sizeof *kinds);
    pooled->n_ranks = rank + 1u; /* the ranks behind it are not in the file */
    pooled->steps = ms_arena_take(values->arena, (size_t)n * pooled->n_ranks,
                                  sizeof *pooled->steps);
    sheet->steps = ms_arena_take(values->arena, n, sizeof *sheet->steps);
    if (kinds == NULL || pooled->steps == NULL || sheet->steps == NULL)
        return ms_fail_nomem(values->fault);
    for (uint32_t i = 0; i < n; i++)
        sheet->steps[i] = (ms_sheet_step){
            &kinds[i], &pooled->steps[(size_t)i * pooled->n_ranks + rank]};
    pooled->kinds = kinds;
    pooled->setup.steps = n;
    return MS_OK;
}

/* ---- the pool ------------------------------------------------------------ */

/* Members that only some kinds of pools have. */
static bool is_heap(const void *of)
{
    uint8_t kind = ((const ms_sheet *)of)->pooled->setup.heap.kind;
    return kind > MS_POOL_TORCH && kind < MS_POOL_N_TYPES;
}

static bool is_moving(const void *of)
{
    const ms_sheet *sheet = of;
    return sheet->pooled->setup.heap.kind == MS_POOL_CONTIGUOUS;
}

static const ms_key pool_rows[] = {
    {.name = "version",
     .type = MS_KEY_TEXT,
     .null = true,
     MS_KEYS_AT(TEXT, ms_sheet, pool_version),
     SKIP,
     .help = "PyTorch's, of torch"},
    {.name = "kind",
     .type = MS_KEY_WORD,
     .words = "torch|bfc|buddy|contiguous|arena",
     MS_KEYS_AT(TEXT, ms_sheet, pool_kind),
     SKIP},
    MS_KEYS_COUNT("steps", POOLED(U32, setup.steps), SKIP),
    MS_KEYS_COUNT("allocated_peak_bytes", RANK(U64, allocated_peak_bytes),
                  MUST),
    MS_KEYS_COUNT("segments", RANK(U64, segments), MUST),
    MS_KEYS_COUNT("device_allocs", RANK(U64, device_allocs), MUST),
    MS_KEYS_COUNT("device_frees", RANK(U64, device_frees), MUST),
    MS_KEYS_COUNT("retries", RANK(U64, retries), MUST),
    MS_KEYS_COUNT("requests", RANK(U64, requests), MUST),
    {.name = "reserved_most_bytes",
     .type = MS_KEY_COUNT,
     RANK(U64, reserved_most_bytes),
     MUST,
     .help = "the highest of all steps"},
    {.name = "by_step",
     .type = MS_KEY_OBJECTS,
     .of = &step,
     .list = step_list,
     .room = step_room,
     MUST,
     .help = "each step's own peaks, what is held at its end, its calls to the "
             "device"},
    {.name = "touched_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     RANK(U64, told.touched_bytes),
     .there = is_heap,
     SKIP,
     .help =
         "of bfc, buddy and contiguous: reserved, up to the highest address "
         "that was ever handed out in each segment"},
    {.name = "moves",
     .type = MS_KEY_COUNT,
     .null = true,
     RANK(U64, told.moves),
     .there = is_moving,
     SKIP,
     .help = "of contiguous: blocks that the step moves to defragment"},
    MS_KEYS_COUNT_OR_NULL("moved_bytes", RANK(U64, told.moved_bytes),
                          .there = is_moving, SKIP),
    {.name = "at_peak",
     .type = MS_KEY_OBJECT,
     .of = &moment,
     RANK(NOT, at_peak),
     MUST,
     .help = "when most was allocated: idle (reserved, not active), of it the "
             "largest block and what could serve the next request"},
    {.name = "oom",
     .type = MS_KEY_OBJECT,
     .null = true,
     .of = &oom,
     POOLED(NOT, lack),
     .there = oom_there,
     .room = oom_room,
     .help =
         "what the pool's message says; step 0 is construction; the rest is "
         "then of a device with memory enough"}};
const ms_keys ms_keys_pool = MS_KEYS_OBJECT("pool", pool_rows);
