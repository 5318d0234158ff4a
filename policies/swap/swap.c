/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Saved activations spend the time between forward and backward in host
 * memory; three published ways to choose what goes and when it comes back
 * (policies/sources.md 7). */
#include "policies/swap/swap.h"
#include "policies/share/sharedstates.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <stdio.h>
#include <string.h>

#define MOST_BYTES (INT64_C(1) << 50)
#define MOST 1000000

static const ms_param params[MS_SWAP_N_PARAMS] = {
    [MS_SWAP_SAVE_ON_CPU] =
        {.name = "save_on_cpu",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "torch's save_on_cpu with pinned memory: every save of every "
                 "node, parameters and second saves too, copied on the compute "
                 "stream"},
    [MS_SWAP_VDNN] = {.name = "vdnn",
                      .type = MS_PARAM_WORD,
                      .choice = true,
                      .words = "all|conv|dyn",
                      .help = "vDNN: inputs of all units, or of those that "
                              "convolve, leave while the unit runs; one comes "
                              "back per backward; dyn: the fastest of these "
                              "and no offload that fits the budget (no choice "
                              "of cuDNN's algorithms)"},
    [MS_SWAP_TE] = {.name = "te",
                    .type = MS_PARAM_INT,
                    .choice = true,
                    .low = 1,
                    .high = MOST,
                    .help = "Transformer Engine: the first N of L blocks "
                            "leave; L - N blocks' tensors are here at a time"},
    [MS_SWAP_TORCHTUNE] =
        {.name = "torchtune",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "torchtune's OffloadActivations: every save but of "
                 "parameters themselves leaves as it is saved, except for the "
                 "output projection's and the loss's; copies in overlap the "
                 "node before"},
    [MS_SWAP_TRL] =
        {.name = "trl",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "TRL's OffloadActivations: as torchtune, but a tensor that is "
                 "saved again stays here, too, as do views of parameters"},
    [MS_SWAP_CHECKPOINTS] =
        {.name = "checkpoints",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "what checkpoints hold leaves when its block has run, and "
                 "comes back before it is replayed; see impl"},
    [MS_SWAP_LAYERS] =
        {.name = "layers",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "weights instead of activations: they lie in host memory and "
                 "are copied in unit by unit; beside offload:optimizer or for "
                 "inference"},
    [MS_SWAP_MEGATRON] =
        {.name = "megatron",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "Megatron's fine-grained offload: what the modules named save "
                 "leaves, except for the last group's (of a stage where "
                 "its own backward comes next); a group comes back one group "
                 "ahead"},
    [MS_SWAP_CAPUCHIN] =
        {.name = "capuchin",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "Capuchin: measures a step; what is idle longest beside its "
                 "copies leaves, comes back in time, or is recomputed where "
                 "that takes less than the wait"},
    [MS_SWAP_BELADY] =
        {.name = "belady",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help = "when the budget is full the tensor used furthest from now "
                 "leaves, from its last use on, and comes back as early as "
                 "there is room"},
    [MS_SWAP_SUPERNEURONS] =
        {.name = "superneurons",
         .type = MS_PARAM_FLAG,
         .choice = true,
         .help =
             "SuperNeurons: what convolutions, linear layers and joins make "
             "stays, least recently used first out when the budget is "
             "full; all else is recomputed"},
    [MS_SWAP_AUTO] = {.name = "auto",
                      .type = MS_PARAM_FLAG,
                      .choice = true,
                      .help =
                          "per tensor keep or swap, and beside checkpoint:auto "
                          "recompute, for the least time in the budget"},
    [MS_SWAP_MIN] = {.name = "min",
                     .type = MS_PARAM_SIZE,
                     .fallback = 1024,
                     .low = 1,
                     .high = MOST_BYTES,
                     .help =
                         "the smallest tensor that moves; default 1KiB, "
                         "save_on_cpu 1 byte, te 512KiB, megatron 2MiB (256 "
                         "Ki and 1 Mi elements of 16 bits)"},
    [MS_SWAP_PREFETCH] =
        {.name = "prefetch",
         .type = MS_PARAM_INT,
         .low = 0,
         .high = MOST,
         .with = "te|checkpoints|layers|megatron",
         .help = "how many blocks (te, checkpoints), units (layers) or groups "
                 "(megatron) ahead of its backward a copy in is "
                 "issued; default te: L - N "
                 "- 1, else 1"},
    [MS_SWAP_INFLIGHT] =
        {.name = "inflight",
         .type = MS_PARAM_INT,
         .low = 1,
         .high = MOST,
         .with = "torchtune|trl|megatron",
         .help =
             "how many copies out may be under way before forward waits "
             "for the oldest; default torchtune and trl 5, megatron no limit"},
    [MS_SWAP_MODULES] =
        {.name = "modules",
         .type = MS_PARAM_WORDS,
         .words = "attn_norm|qkv_linear|core_attn|attn_proj|mlp_norm|"
                  "expert_fc1|moe_act",
         .with = "megatron",
         .help = "what these save leaves; attn_proj needs core_attn"},
    [MS_SWAP_FRACTION] = {.name = "fraction",
                          .type = MS_PARAM_INT,
                          .fallback = 100,
                          .low = 0,
                          .high = 100,
                          .with = "megatron",
                          .help = "percent of the groups, from the first, that "
                                  "leave"},
    [MS_SWAP_RECOMPUTE] =
        {.name = "recompute",
         .type = MS_PARAM_WORD,
         .words = "cost|speed|memory|none",
         .with = "superneurons",
         .help =
             "what lies between two such layers once for all of it (speed), "
             "for one unit's backward at a time (memory), or not at all; "
             "default cost: once where that is no larger than a unit's "
             "backward"},
    [MS_SWAP_PIN] = {.name = "pin",
                     .type = MS_PARAM_INT,
                     .fallback = 1,
                     .low = 0,
                     .high = 1,
                     .with = "save_on_cpu",
                     .help = "0: host memory is not pinned (torch's default): "
                             "copies are slower and the host waits for them"},
    [MS_SWAP_IMPL] =
        {.name = "impl",
         .type = MS_PARAM_WORD,
         .words = "ideal|deepspeed",
         .with = "checkpoints",
         .help = "ideal: pinned memory, copies beside the compute stream, one "
                 "block ahead (ZeRO-Infinity); deepspeed: its "
                 "cpu_checkpointing, memory that is not pinned, the host waits "
                 "for each copy, none is ahead"},
    [MS_SWAP_TO] =
        {.name = "to",
         .type = MS_PARAM_WORD,
         .words = "host|nvme|gds",
         .with = "vdnn|te|checkpoints|megatron|capuchin|belady|superneurons|"
                 "auto",
         .help = "nvme: from the host's memory, through two buffers there, on "
                 "to the disk, and back, which is read one copy ahead; gds: "
                 "to the disk without the host (GPUDirect Storage)"},
    [MS_SWAP_BUDGET] =
        {.name = "budget",
         .type = MS_PARAM_SIZE,
         .promise = true,
         .low = 1,
         .high = MOST_BYTES,
         .with = "vdnn|capuchin|belady|superneurons|auto",
         .help = "the peak (allocated) to work to; default what the device "
                 "has beside the context; of vdnn only dyn"},
};

extern const ms_policy ms_policy_swap;

/* ---- the ways ------------------------------------------------------------ */

/* pack_tensor of torchtune's and TRL's OffloadActivations. */
#define HOOKS_ALONE                                                            \
    "its hooks ask that a backward has taken all that they have packed "       \
    "before the next forward packs; a stage has several micro-batches in "     \
    "flight"
#define PLAN_ALONE                                                             \
    "it plans the moves of one rank's step, one micro-batch after the other"

static const ms_swap_way ways[] = {
    {.row = MS_SWAP_SAVE_ON_CPU,
     .memory = MS_HOSTED_PINNED,
     .stays = ms_swapcheckpoints_stays,
     .open = ms_savecpu_open,
     .around = ms_savecpu_around},
    {.row = MS_SWAP_VDNN,
     .write = ms_vdnn_write,
     .alone = "vDNN brings back the input of the unit before, which another "
              "stage may have"},
    {.row = MS_SWAP_TE,
     .stays = ms_te_stays,
     .memory = MS_HOSTED_PINNED,
     .open = ms_te_open,
     .around = ms_te_around,
     .alone = "Megatron-LM refuses Transformer Engine's offload beside a "
              "pipeline (transformer_config.py, cpu_offloading)"},
    {.row = MS_SWAP_TORCHTUNE,
     .memory = MS_HOSTED_PINNED,
     .stays = ms_swapcheckpoints_stays,
     .open = ms_torchtune_open,
     .around = ms_torchtune_around,
     .alone = HOOKS_ALONE},
    {.row = MS_SWAP_TRL,
     .memory = MS_HOSTED_PINNED,
     .stays = ms_swapcheckpoints_stays,
     .open = ms_torchtune_open_trl,
     .around = ms_torchtune_around,
     .alone = HOOKS_ALONE},
    {.row = MS_SWAP_CHECKPOINTS,
     .stays = ms_swapcheckpoints_stays,
     .open = ms_swapcheckpoints_open,
     .write = ms_swapcheckpoints_write},
    {.row = MS_SWAP_LAYERS,
     .write = ms_streamedweights_write,
     .alone = "weights are streamed in the order of a whole model's units"},
    {.row = MS_SWAP_MEGATRON,
     .memory = MS_HOSTED_KEYED,
     .open = ms_megatron_open,
     .around = ms_megatron_around},
    {.row = MS_SWAP_CAPUCHIN,
     .write = ms_swaprules_capuchin,
     .alone = PLAN_ALONE},
    {.row = MS_SWAP_BELADY, .write = ms_swaprules_belady, .alone = PLAN_ALONE},
    {.row = MS_SWAP_SUPERNEURONS,
     .write = ms_superneurons_write,
     .alone = PLAN_ALONE},
    {.row = MS_SWAP_AUTO, .write = ms_swapauto_write, .alone = PLAN_ALONE},
};

static const ms_swap_way *way_of(const ms_policy_value *values)
{
    size_t i = 0;
    while (!values[ways[i].row].given)
        i++;
    return &ways[i];
}

/* ---- one beside another -------------------------------------------------- */

static bool is_swap(const struct ms_spec_item *item)
{
    return item->policy == &ms_policy_swap &&
           !item->values[MS_SWAP_LAYERS].given;
}

static bool packs_all(const ms_policy_value *values)
{
    return values[MS_SWAP_SAVE_ON_CPU].given ||
           values[MS_SWAP_TORCHTUNE].given || values[MS_SWAP_TRL].given;
}

/* Two swaps of activations can share the work; hooks cannot, as they take every
 * save, even one that another swap moves. */
static ms_err count_swaps(const ms_policy_context *context, uint32_t *n,
                          ms_fault *fault)
{
    const ms_spec *spec = context->spec;
    bool packs = false, te = false, megatron = false, decides = false;
    *n = 0;
    for (uint32_t i = 0; spec != NULL && i < spec->n; i++) {
        const ms_policy_value *values = spec->items[i].values;
        if (!is_swap(&spec->items[i]))
            continue;
        packs |= packs_all(values);
        te |= values[MS_SWAP_TE].given;
        megatron |= values[MS_SWAP_MEGATRON].given;
        decides |= values[MS_SWAP_SUPERNEURONS].given;
        ++*n;
    }
    if (te && megatron)
        return ms_fail(fault, MS_EUSAGE, "swap", "leave one of the two out",
                       "Megatron refuses its fine-grained offload beside "
                       "Transformer Engine's");
    if (*n > 1 && decides)
        return ms_fail(fault, MS_EUSAGE, "swap:superneurons",
                       "leave one of the two out",
                       "it says of every saved tensor whether it stays, leaves "
                       "or is made again: nothing is left for another swap");
    if (*n < 2 || !packs || context->values[MS_SWAP_LAYERS].given)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "swap", "leave one of the two out",
                   "hooks on saved tensors (save_on_cpu, torchtune, trl) take "
                   "every save: nothing is left for another swap");
}

/* Storages that the program's own moves take away are left to those moves.
 * Returns whether there are any. */
static bool mark_taken(const ms_swap *w, uint8_t *stays)
{
    const ms_program *from = w->from;
    bool some = false;
    for (uint32_t i = 0; i < from->n_calls; i++) {
        const ms_call *call = &from->calls[i];
        bool out = call->verb == MS_MOVE &&
                   (call->move.to == MS_HOST || call->move.to == MS_NVME);
        if (!out || call->set >= from->n_sets)
            continue;
        for (uint32_t k = from->set_at[call->set];
             k < from->set_at[call->set + 1]; k++) {
            stays[from->set_item[k]] = 1;
            some |= from->set_item[k] >= w->context->graph->n_persistent;
        }
    }
    return some;
}

static uint8_t memory_of(const ms_policy_value *values);

/* Notes whose memory on the host they are in that this swap moves; *n: how many
 * storages. */
static ms_err mark_memory(ms_swap *w, const ms_program *made, uint32_t *n)
{
    uint32_t storages = w->context->graph->n_storages;
    uint8_t *in = ms_arena_take(w->arena, storages, 1);
    *n = 0;
    if (in == NULL)
        return ms_fail_nomem(w->fault);
    if (made->saved_in != NULL)
        memcpy(in, made->saved_in, storages);
    for (uint32_t i = 0; i < made->n_calls; i++) {
        const ms_call *call = &made->calls[i];
        bool out = call->verb == MS_MOVE &&
                   (call->move.to == MS_HOST || call->move.to == MS_NVME);
        if (!out || call->set < w->from->n_sets || call->set >= made->n_sets)
            continue;
        for (uint32_t k = made->set_at[call->set];
             k < made->set_at[call->set + 1]; k++, ++*n)
            in[made->set_item[k]] = memory_of(w->values);
    }
    w->program->saved_in = in;
    return MS_OK;
}

/* ---- the way ------------------------------------------------------------- */

/* Finds what the program keeps and may leave. */
static ms_err find_saved(ms_swap *w, const ms_swap_way *way, bool *taken)
{
    const ms_graph *graph = w->context->graph;
    uint8_t *stays = ms_arena_take(w->arena, graph->n_storages, 1);
    w->replayed = ms_arena_take(w->arena, graph->n_storages, 1);
    if (stays == NULL || w->replayed == NULL)
        return ms_fail_nomem(w->fault);
    ms_saved_replayed(graph, w->from, w->replayed);
    if (way->stays != NULL)
        way->stays(w, stays);
    *taken = mark_taken(w, stays);
    return ms_saved_find_others(graph, w->from, w->min_bytes, stays,
                                w->replayed, w->arena, w->program, &w->saved,
                                w->fault);
}

static bool measures(const ms_policy_value *values);

/* The second of two swaps must find something that it can move. */
static ms_err close_second(ms_swap *w, const ms_swap_way *way, bool taken)
{
    char where[48];
    uint32_t n;
    MS_TRY(mark_memory(w, w->program, &n));
    if (n > 0 || !taken || measures(w->values))
        return MS_OK;
    snprintf(where, sizeof where, "swap:%s", params[way->row].name);
    return ms_fail(w->fault, MS_EUSAGE, where,
                   "write it first, or leave one of the two out",
                   "the swap before it takes all that this one would move");
}

static ms_err place(const ms_policy_context *context, ms_program *program,
                    ms_fault *fault)
{
    const ms_swap_way *way = way_of(context->values);
    const ms_policy_value *min = &context->values[MS_SWAP_MIN];
    ms_program made;
    uint32_t n_swaps;
    bool taken = false;
    ms_swap w = {.context = context,
                 .from = program,
                 .program = &made,
                 .arena = context->arena,
                 .fault = fault,
                 .values = context->values};
    MS_TRY(count_swaps(context, &n_swaps, fault));
    MS_TRY(ms_program_fork(program, w.arena, &made, fault));
    w.min_bytes = way->row == MS_SWAP_SAVE_ON_CPU && !min->given
                      ? 1
                      : (uint64_t)min->number;
    MS_TRY(find_saved(&w, way, &taken));
    if (way->open != NULL)
        MS_TRY(way->open(&w));
    MS_TRY(way->write != NULL ? way->write(&w)
                              : ms_swapcalls_walk(&w, way->around));
    MS_TRY(ms_swapdisk_ahead(&w));
    if (n_swaps > 1 && way->row != MS_SWAP_LAYERS)
        MS_TRY(close_second(&w, way, taken));
    *program = made;
    return MS_OK;
}

/* Whose memory the copies are in: buffers to the disk are the swap's own. */
static uint8_t memory_of(const ms_policy_value *values)
{
    bool pageable =
        values[MS_SWAP_SAVE_ON_CPU].given && !values[MS_SWAP_PIN].number;
    if (pageable)
        return MS_HOSTED_PAGEABLE;
    return values[MS_SWAP_TO].number == MS_SWAP_TO_HOST
               ? (uint8_t)way_of(values)->memory
               : MS_HOSTED_OWN;
}

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    uint8_t memory = memory_of(context->values);
    if (context->values[MS_SWAP_TO].number == MS_SWAP_TO_HOST)
        MS_TRY(ms_sharedstates_two_memories("swap", shape, fault));
    if (memory != MS_HOSTED_OWN)
        shape->saves = memory;
    if (!context->values[MS_SWAP_LAYERS].given)
        return MS_OK;
    return ms_streamedweights_shape(context, shape, fault);
}

static bool measures(const ms_policy_value *values)
{
    bool fastest = values[MS_SWAP_VDNN].given &&
                   values[MS_SWAP_VDNN].number == MS_SWAP_VDNN_DYN;
    return fastest || values[MS_SWAP_CAPUCHIN].given ||
           values[MS_SWAP_BELADY].given || values[MS_SWAP_SUPERNEURONS].given ||
           values[MS_SWAP_AUTO].given;
}

static bool serves_ranks(const ms_policy_value *values)
{
    return way_of(values)->alone == NULL;
}

static const char *refuses_ranks(const ms_policy_value *values)
{
    return way_of(values)->alone;
}

const ms_policy ms_policy_swap = {
    .name = "swap",
    .summary = "saved activations, or weights, wait in host memory",
    .example = "swap:te=4",
    .params = params,
    .n_params = MS_SWAP_N_PARAMS,
    .repeats = true,
    .saves = true,
    .shape = shape,
    .place = place,
    .serves_ranks = serves_ranks,
    .refuses_ranks = refuses_ranks,
    .serves_instead = "take swap:megatron, checkpoints or save_on_cpu",
    .measures = measures,
};
