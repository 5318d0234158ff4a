/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pipeline parallelism: each rank has a part of the model's layers and hands
 * what it computes to the next.  The orders are of orders.h; which layers a
 * stage has is decided here. */
#include "policies/common/policy.h"
#include "policies/common/ranknames.h"
#include "policies/schedule/normmeeting.h"
#include "policies/schedule/orders.h"
#include "policies/schedule/schedulefile.h"
#include "policies/schedule/stagecosts.h"
#include "policies/schedule/stagelayout.h"
#include "sim/graph.h"
#include "sim/shape.h"

#include <stdio.h>
#include <string.h>

enum {
    RANKS,
    SCHEDULE,
    CHUNKS,
    LAYERS,
    PER_STAGE,
    LESS,
    ACCOUNT,
    FIRST,
    LAST,
    OVERLAP,
    QUEUES,
    GROUP,
    MESSAGES,
    SIDES,
    IMPL,
    DEALLOCATE,
    OPTIMIZER,
    ORDER,
    N_PARAMS
};

enum { MEGATRON, TORCH, ZERO_BUBBLE };
enum { PAIRS, ONE };
enum { WHOLE, PARTS };

#define MOST_RANKS 1024
#define MOST_LAYERS 100000

static const ms_param params[N_PARAMS] = {
    [RANKS] = {.name = "ranks",
               .type = MS_PARAM_INT,
               .choice = true,
               .bare = true,
               .low = 1,
               .high = MOST_RANKS,
               .help = "ranks that share the layers"},
    [SCHEDULE] = {.name = "schedule",
                  .type = MS_PARAM_WORD,
                  .file = true,
                  .words = "1f1b|gpipe|interleaved|looped-bfs|zb-h1|zb-h2|zb-v|"
                           "v-half|v-min|dualpipev|dualpipe|zb-1p|zb-2p",
                  .help = "the order of their forwards and backwards; with "
                          "chunks interleaved; or a file as ./FILE, PyTorch's "
                          "CSV of schedules"},
    [CHUNKS] = {.name = "chunks",
                .type = MS_PARAM_INT,
                .fallback = 1,
                .low = 1,
                .high = MOST_RANKS,
                .help = "stages per rank; zb-v, v-half, v-min and dualpipev "
                        "have 2"},
    [LAYERS] = {.name = "layers",
                .type = MS_PARAM_NAMES,
                .help = "layers (blocks) of each stage in the model's order, "
                        "as 11/13, some may have 0; or Megatron-LM's layout, "
                        "as Et*3|(tt|)*4t||mL (m: multi-token prediction, "
                        "which is the last stage's otherwise); default: all "
                        "the same, one more on the first ones where they do "
                        "not divide; with --kernels nanotron as many as make "
                        "the stages cost the same (its build_model)"},
    [PER_STAGE] = {.name = "per_stage",
                   .type = MS_PARAM_INT,
                   .low = 1,
                   .high = MOST_LAYERS,
                   .help = "so many stages that each has at most so many "
                           "layers, those of less= counted (torchtitan's "
                           "pipeline_parallel_layers_per_stage)"},
    [LESS] = {.name = "less",
              .type = MS_PARAM_INTS,
              .low = 0,
              .high = MOST_LAYERS,
              .help = "the first and the last stage have so many layers less "
                      "than their share, for embedding and loss (torchtitan's "
                      "first_stage_less_layers, last_stage_less_layers); "
                      "with per_stage 1/1"},
    [ACCOUNT] = {.name = "account",
                 .type = MS_PARAM_WORDS,
                 .words = "embedding|loss",
                 .help = "count as a layer in an equal split (Megatron-LM's "
                         "account_for_embedding_in_pipeline_split, loss)"},
    [FIRST] = {.name = "first",
               .type = MS_PARAM_INT,
               .low = 0,
               .high = MOST_LAYERS,
               .help = "layers of the first rank, others divide the rest "
                       "(Megatron-LM's decoder_first_pipeline_num_layers)"},
    [LAST] = {.name = "last",
              .type = MS_PARAM_INT,
              .low = 0,
              .high = MOST_LAYERS,
              .help = "the same of the last rank"},
    [OVERLAP] = {.name = "overlap",
                 .type = MS_PARAM_INT,
                 .low = 0,
                 .high = 1,
                 .help = "1: messages come beside the turn before the one that "
                         "reads them; 0: when a turn is over, of interleaved a "
                         "forward and a backward, all that goes either way is "
                         "exchanged together and waited for (Megatron-LM's "
                         "batch_p2p_comm); default 0 where a rank has one "
                         "stage that goes back whole and receives when its "
                         "turn is over (gpipe, 1f1b), else 1"},
    [QUEUES] = {.name = "queues",
                .type = MS_PARAM_WORD,
                .words = "pairs|one",
                .help = "with overlap=1, which messages wait for each other: "
                        "pairs: what goes to one neighbour (isend and irecv "
                        "one by one: Megatron-LM, the zero-bubble authors); "
                        "one: all that a rank sends and receives, in the "
                        "order of the turns (batch_isend_irecv on one "
                        "communicator: PyTorch's schedule files)"},
    [GROUP] = {.name = "group",
               .type = MS_PARAM_INT,
               .low = 1,
               .high = 1048576,
               .help = "interleaved: micro-batches that go through a chunk one "
                       "after the other; default: as many as ranks"},
    [MESSAGES] =
        {.name = "messages",
         .type = MS_PARAM_WORD,
         .words = "whole|parts",
         .help = "what each of the ranks that split layers sends: whole, all "
                 "that the next stage reads (with sp that is its part of the "
                 "sequence); parts: without sp its part, and the receivers "
                 "gather them (Megatron-LM's scatter_gather_tensors_in_"
                 "pipeline before core 0.1, its default; DeepSpeed's "
                 "partitioned activations and gradients)"},
    [SIDES] = {.name = "pairs",
               .type = MS_PARAM_INT,
               .low = 0,
               .high = 1,
               .help = "1: of a forward and a backward that are one turn "
                       "(dualpipe, dualpipev, a file's OVERLAP_F_B) the "
                       "all-to-alls of experts go beside what the other one "
                       "computes; interleaved has such pairs with it "
                       "(Megatron-LM's overlap_moe_expert_parallel_comm); 0: "
                       "the two run one after the other; default 1 where there "
                       "are pairs"},
    [IMPL] = {.name = "impl",
              .type = MS_PARAM_WORD,
              .words = "megatron|torch|zb",
              .help = "whose code keeps what: megatron lets a stage's output "
                      "go when it is sent; torch (torch.distributed."
                      "pipelining) keeps it to its backward, and room for the "
                      "messages of all micro-batches; zb is megatron with the "
                      "zero-bubble authors' store for gradients of weights; "
                      "default: zb where backward has halves, else megatron"},
    [DEALLOCATE] = {.name = "deallocate",
                    .type = MS_PARAM_INT,
                    .fallback = 1,
                    .low = 0,
                    .high = 1,
                    .help = "0: a stage's output stays until its backward has "
                            "run (Megatron-LM without "
                            "deallocate_pipeline_outputs)"},
    [OPTIMIZER] =
        {.name = "optimizer",
         .type = MS_PARAM_WORD,
         .words = MS_NORM_WORDS,
         .help = "with training.clip_norm: sync: the stages meet "
                 "about the norm of all gradients before they "
                 "update; postvalidate: each updates with that of the stages "
                 "before it and is put right afterwards if need be, "
                 "so that steps follow each other at the longest "
                 "span of a rank (zero bubble, section 4)"},
    [ORDER] = MS_RANKNAMES_PARAM,
};

static ms_order order_of(const ms_policy_value *values)
{
    if (values[SCHEDULE].given || values[CHUNKS].number == 1)
        return (ms_order)values[SCHEDULE].number;
    return MS_ORDER_INTERLEAVED;
}

/* One rank has no pipeline: Megatron-LM runs one micro-batch after the other
 * then (megatron/core/pipeline_parallel/schedules.py,
 * get_forward_backward_func). */
static bool is_alone(const ms_policy_value *values)
{
    return values[RANKS].number == 1 && values[CHUNKS].number == 1 &&
           values[SCHEDULE].text == NULL;
}

/* ---- shape --------------------------------------------------------------- */

static ms_err shape(const ms_policy_context *context, ms_shape *shape,
                    ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    MS_TRY(ms_ranknames_read("pipeline:order", &values[ORDER], shape, fault));
    MS_TRY(
        ms_stagelayout_empties(&values[LAYERS], &shape->empty_stages, fault));
    shape->splits_backward =
        !is_alone(values) && ms_orders_splits(order_of(values));
    if (values[SCHEDULE].text != NULL)
        MS_TRY(ms_schedulefile_splits(values[SCHEDULE].text,
                                      &shape->splits_backward, fault));
    return ms_policy_share_layers("pipeline", (uint32_t)values[RANKS].number,
                                  shape, fault);
}

/* ---- stages -------------------------------------------------------------- */

static ms_stagelayout layout_of(const ms_policy_value *values)
{
    return (ms_stagelayout){&values[LAYERS], &values[PER_STAGE],
                            &values[LESS],   &values[ACCOUNT],
                            &values[FIRST],  &values[LAST]};
}

/* The stages' ranks are there. */
static ms_err make_stages(const ms_policy_context *context, ms_stage *stages,
                          ms_schedule *schedule, ms_fault *fault)
{
    const ms_stagelayout layout = layout_of(context->values);
    schedule->stages = stages;
    return ms_stagelayout_divide(context, &layout, schedule->n_ranks,
                                 schedule->n_stages, stages, fault);
}

/* A layout says itself how many stages a rank has, where chunks= does not. */
static ms_err settle_chunks(const ms_policy_context *context,
                            ms_policy_value *values, ms_fault *fault)
{
    const ms_stagelayout layout = layout_of(context->values);
    uint32_t n, ranks;
    memcpy(values, context->values, N_PARAMS * sizeof *values);
    MS_TRY(ms_stagelayout_count(context, &layout, &n, fault));
    ranks = (uint32_t)values[RANKS].number;
    if (n == 0 ||
        (values[CHUNKS].given && n == ranks * (uint32_t)values[CHUNKS].number))
        return MS_OK;
    if (values[CHUNKS].given || n % ranks != 0)
        return ms_fail(fault, MS_EUSAGE, "pipeline",
                       "change the ranks or chunks, or the layout",
                       "%u stages are not as many on each of %u ranks%s", n,
                       ranks, values[CHUNKS].given ? " as chunks= says" : "");
    values[CHUNKS].number = n / ranks;
    values[CHUNKS].given = n > ranks;
    return MS_OK;
}

/* ---- schedule ------------------------------------------------------------ */

/* With one stage a rank, that goes back whole, frameworks receive when a turn
 * is over: what comes is for the turn that is next.  Without overlap others
 * exchange when a turn is over all that goes either way, and wait for it. */
static uint8_t receives(const ms_policy_value *values,
                        const ms_schedule *schedule)
{
    bool simple = schedule->n_stages == schedule->n_ranks &&
                  schedule->rank_of == NULL && !ms_schedule_splits(schedule);
    for (uint32_t i = 0; i < schedule->turn_at[schedule->n_ranks]; i++)
        simple &= !schedule->turns[i].pairs;
    bool early = values[OVERLAP].given ? values[OVERLAP].number : !simple;
    bool one = values[QUEUES].given && values[QUEUES].number == ONE;
    if (!early)
        return simple ? MS_RECEIVE_NEXT : MS_RECEIVE_TOGETHER;
    return one ? MS_RECEIVE_IN_LINE : MS_RECEIVE_AHEAD;
}

/* Megatron-LM's host waits for the device behind each batch of messages
 * (p2p_communication.py, batch_p2p_sync); nanotron's, whose graphs have costs,
 * does not. */
static void settle_messages(const ms_policy_context *context,
                            ms_schedule *schedule)
{
    const ms_policy_value *values = context->values;
    schedule->receives = receives(values, schedule);
    schedule->waits = schedule->receives == MS_RECEIVE_NEXT &&
                      context->graph->unit_cost == NULL &&
                      (!values[IMPL].given || values[IMPL].number == MEGATRON);
}

static ms_err check_queues(const ms_policy_value *values,
                           const ms_schedule *schedule, ms_fault *fault)
{
    if (!values[QUEUES].given || (schedule->receives != MS_RECEIVE_NEXT &&
                                  schedule->receives != MS_RECEIVE_TOGETHER))
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "pipeline:queues",
                   "add overlap=1, or leave queues= out",
                   "messages that are exchanged when a turn is over do not "
                   "wait for each other");
}

/* The receivers gather when a turn is over: those that did so have no messages
 * beside turns. */
static ms_err write_parts(const ms_policy_context *context,
                          ms_schedule *schedule, ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    schedule->parts =
        values[MESSAGES].given && values[MESSAGES].number == PARTS;
    if (!schedule->parts)
        return MS_OK;
    if (context->shape->tensor_ranks < 2 || context->shape->by_sequence)
        return ms_fail(fault, MS_EUSAGE, "pipeline:messages",
                       context->shape->by_sequence ? "leave messages= out"
                                                   : "add tensor:T",
                       context->shape->by_sequence
                           ? "with sp each rank has its part already"
                           : "no ranks split layers, which could send a part "
                             "each");
    if (schedule->receives == MS_RECEIVE_AHEAD ||
        schedule->receives == MS_RECEIVE_IN_LINE)
        return ms_fail(fault, MS_EUSAGE, "pipeline:messages",
                       "add overlap=0, or leave messages= out",
                       "parts are gathered when a turn is over, not beside it");
    if (values[IMPL].given && values[IMPL].number == TORCH)
        return ms_fail(fault, MS_EUSAGE, "pipeline:messages",
                       "leave impl=torch out, or messages=",
                       "torch.distributed.pipelining sends all that a stage "
                       "makes");
    return MS_OK;
}

static bool exchanges(const ms_graph *graph)
{
    uint32_t op = 0;
    while (op < graph->step_first && !ms_graph_exchanges(graph, op))
        op++;
    return op < graph->step_first;
}

static bool has_pairs(const ms_schedule *schedule)
{
    uint32_t i = 0, n = schedule->turn_at[schedule->n_ranks];
    while (i < n && !schedule->turns[i].pairs)
        i++;
    return i < n;
}

/* Turns that pair run side by side, where they may and have a reason to. */
static ms_err write_sides(const ms_policy_context *context,
                          ms_schedule *schedule, ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    bool asked = values[SIDES].given && values[SIDES].number != 0;
    bool may = exchanges(context->graph);
    if (asked && !may)
        return ms_fail(fault, MS_EUSAGE, "pipeline:pairs",
                       "add expert:E, or leave pairs= out",
                       "no ranks divide experts, whose all-to-alls could go "
                       "beside what else is computed");
    if (asked && values[SCHEDULE].text == NULL &&
        order_of(values) == MS_ORDER_INTERLEAVED)
        ms_orders_pair(schedule);
    bool pairs = has_pairs(schedule);
    schedule->sides = pairs && may && (asked || !values[SIDES].given);
    if (pairs || !asked)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "pipeline:pairs",
                   "take schedule=interleaved (with so many micro-batches that "
                   "some run forward while others go back), dualpipe, "
                   "dualpipev, or leave pairs= out",
                   "no forward of this schedule is one turn with a backward");
}

static ms_err check_keeps(const ms_policy_value *values, bool splits,
                          ms_fault *fault)
{
    const ms_policy_value *impl = &values[IMPL];
    bool torch = impl->given && impl->number == TORCH;
    if (impl->given && impl->number == MEGATRON && splits)
        return ms_fail(fault, MS_EUSAGE, "pipeline:impl",
                       "type impl=zb (the zero-bubble authors' Megatron-LM), "
                       "or impl=torch",
                       "Megatron-LM runs no half of backward apart, as this "
                       "schedule does");
    if (torch && values[DEALLOCATE].given && values[DEALLOCATE].number == 1)
        return ms_fail(fault, MS_EUSAGE, "pipeline:deallocate",
                       "leave deallocate out, or take another impl",
                       "torch.distributed.pipelining keeps a stage's output "
                       "until its backward");
    return MS_OK;
}

/* pytorch/pytorch@88fa1e7170, torch/distributed/pipelining/stage.py:
 * args_recv_info and grad_recv_info have a buffer for each micro-batch from the
 * first step on, whose .grad lasts until the next step begins; fwd_cache has
 * the output until backward_one_chunk.  _backward.py@060ca5d783,
 * stage_backward_input: the graph is retained until all inputs' gradients are
 * there; a first stage has none. */
static ms_err write_keeps(const ms_policy_context *context,
                          ms_schedule *schedule, ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    bool splits = ms_schedule_splits(schedule);
    bool torch = values[IMPL].given && values[IMPL].number == TORCH;
    MS_TRY(check_keeps(values, splits, fault));
    schedule->keeps = (ms_schedule_keeps){
        .inputs = torch ? MS_INPUTS_GO : context->graph->stage_inputs,
        .outputs = torch || values[DEALLOCATE].number == 0,
        .messages = torch,
        .graphs = torch};
    return MS_OK;
}

/* A file says its ranks, chunks and micro-batches itself. */
static ms_err check_file(const ms_policy_value *values, uint32_t micro_batches,
                         const ms_schedule *schedule, ms_fault *fault)
{
    uint32_t ranks = schedule->n_ranks, n = schedule->n_stages;
    char hint[64];
    if (ranks != (uint32_t)values[RANKS].number) {
        snprintf(hint, sizeof hint, "write pipeline:%u", ranks);
        return ms_fail(fault, MS_EUSAGE, schedule->name, hint,
                       "a schedule of %u ranks; the pipeline has %u", ranks,
                       (unsigned)values[RANKS].number);
    }
    if (n % ranks != 0 ||
        (values[CHUNKS].given && n != ranks * values[CHUNKS].number))
        return ms_fail(fault, MS_EUSAGE, schedule->name,
                       "each rank has as many chunks",
                       "%u stages do not divide into %s chunks on %u ranks", n,
                       values[CHUNKS].given ? "that many" : "whole", ranks);
    if (schedule->n_micro_batches == micro_batches)
        return MS_OK;
    snprintf(hint, sizeof hint, "add microbatch:%u", schedule->n_micro_batches);
    return ms_fail(fault, MS_EUSAGE, schedule->name, hint,
                   "a schedule of %u micro-batches; the step has %u",
                   schedule->n_micro_batches, micro_batches);
}

static ms_err read_schedule(const ms_policy_context *context,
                            uint32_t micro_batches, ms_schedule *schedule,
                            ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    MS_TRY(ms_schedulefile_read(values[SCHEDULE].text, context->arena, schedule,
                                fault));
    MS_TRY(check_file(values, micro_batches, schedule, fault));
    uint32_t n = schedule->n_stages;
    ms_stage *stages = ms_arena_take(context->arena, n, sizeof *stages);
    if (stages == NULL)
        return ms_fail_nomem(fault);
    memcpy(stages, schedule->stages, n * sizeof *stages);
    MS_TRY(make_stages(context, stages, schedule, fault));
    settle_messages(context, schedule);
    return MS_OK;
}

static ms_err write_order(const ms_policy_context *context,
                          uint32_t micro_batches, ms_schedule *schedule,
                          ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    ms_order order = order_of(values);
    uint32_t chunks =
        values[CHUNKS].given ? (uint32_t)values[CHUNKS].number : 0;
    ms_orders_size size = {(uint32_t)values[RANKS].number,
                           ms_orders_chunks(order, chunks), micro_batches,
                           (uint32_t)values[GROUP].number};
    uint32_t n = size.ranks * size.chunks;
    ms_stage *stages = ms_arena_take(context->arena, n, sizeof *stages);
    *schedule = (ms_schedule){
        .n_stages = n,
        .n_ranks = (uint16_t)size.ranks,
        .n_micro_batches = micro_batches,
        .turn_at = ms_arena_take(context->arena, size.ranks + 1u,
                                 sizeof *schedule->turn_at),
        .turns = ms_arena_take_raw(context->arena, ms_orders_room(&size),
                                   sizeof *schedule->turns)};
    if (!stages || !schedule->turn_at || !schedule->turns)
        return ms_fail_nomem(fault);
    for (uint32_t k = 0; k < n; k++)
        stages[k].rank = ms_orders_rank(order, &size, k);
    MS_TRY(make_stages(context, stages, schedule, fault));
    if (ms_orders_plans(order)) {
        ms_orders_costs costs;
        MS_TRY(ms_stagecosts_find(context, stages, n, &costs, fault));
        MS_TRY(ms_orders_plan(order, &size, &costs, context->arena, schedule,
                              fault));
    } else {
        MS_TRY(ms_orders_write(order, &size, context->arena, schedule, fault));
    }
    settle_messages(context, schedule);
    return MS_OK;
}

static ms_err write_alone(const ms_policy_context *context,
                          uint32_t micro_batches, ms_schedule *schedule,
                          ms_fault *fault)
{
    ms_stage whole = {0};
    ms_schedule one = {.n_stages = 1, .n_ranks = 1};
    MS_TRY(make_stages(context, &whole, &one, fault));
    return ms_schedule_default(context->graph, micro_batches, context->arena,
                               schedule, fault);
}

static ms_err write_turns(const ms_policy_context *context,
                          uint32_t micro_batches, ms_schedule *schedule,
                          ms_fault *fault)
{
    const ms_policy_value *values = context->values;
    bool interleaved = values[SCHEDULE].text == NULL &&
                       order_of(values) == MS_ORDER_INTERLEAVED;
    if (values[GROUP].given && !interleaved)
        return ms_fail(fault, MS_EUSAGE, "pipeline:group",
                       "add schedule=interleaved, or leave group= out",
                       "only an interleaved schedule has groups");
    if (is_alone(values))
        return write_alone(context, micro_batches, schedule, fault);
    if (values[SCHEDULE].text != NULL)
        MS_TRY(read_schedule(context, micro_batches, schedule, fault));
    else
        MS_TRY(write_order(context, micro_batches, schedule, fault));
    MS_TRY(write_parts(context, schedule, fault));
    MS_TRY(write_sides(context, schedule, fault));
    MS_TRY(check_queues(values, schedule, fault));
    return write_keeps(context, schedule, fault);
}

static ms_err write_schedule(const ms_policy_context *context,
                             uint32_t micro_batches, ms_schedule *schedule,
                             ms_fault *fault)
{
    ms_policy_context own = *context;
    ms_policy_value values[N_PARAMS];
    MS_TRY(settle_chunks(context, values, fault));
    own.values = values;
    return write_turns(&own, micro_batches, schedule, fault);
}

const ms_policy ms_policy_pipeline = {
    .name = "pipeline",
    .summary = "ranks share the layers and hand on what they compute",
    .example = "pipeline:4,schedule=1f1b",
    .params = params,
    .n_params = N_PARAMS,
    .shape = shape,
    .schedule = write_schedule,
};
