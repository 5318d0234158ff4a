/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/advice/evenout.h"
#include "policies/common/policy.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "tools/advice/changes.h"

#include <string.h>

#define MOST_MOVES 4u /* of one way */
#define LEAST_GAIN 200u
/* Larger steps are told from few micro-batches (sim/repeat/rounds.h). */
#define MOST_OPS 200000u

typedef struct outcome {
    uint64_t peak_bytes, step_ns;
    uint16_t fullest, emptiest, busiest, idlest; /* ranks */
} outcome;

typedef struct search {
    const ms_job *job;
    const ms_result *result;
    ms_arena *arena;
    uint32_t n_stages;
    const ms_stage *stages;
    const uint32_t *layers; /* as they are */
    bool by_rounds;
    outcome now;
    ms_fault *fault;
} search;

/* Of a way: what was chosen so far. */
typedef struct choice {
    ms_spec spec;
    uint32_t *layers;
    outcome out;
    uint32_t moves;
    uint32_t from, to; /* stages of the first move */
} choice;

uint32_t ms_evenout_layers(const ms_graph *graph, const ms_stage *stage)
{
    uint32_t n = 0, before = MS_NONE;
    for (uint32_t u = stage->first; u <= stage->last; u++) {
        uint32_t block = graph->n_blocks > 0 ? graph->unit_block[u] : u;
        bool counts =
            block != MS_NONE && block != before &&
            (graph->n_blocks == 0 || !ms_graph_predicts(graph, block));
        n += counts;
        before = block;
    }
    return n;
}

bool ms_evenout_predicts(const ms_graph *graph, const ms_stage *stage)
{
    for (uint32_t u = stage->first; u <= stage->last; u++)
        if (ms_graph_predicts(graph, graph->unit_block[u]))
            return true;
    return false;
}

/* ---- a step of other policies -------------------------------------------- */

static uint64_t busy_of(const ms_rank_report *rank)
{
    return ms_times_idle(rank).busy_ns;
}

static void look(const ms_rank_report *ranks, uint16_t n, outcome *out)
{
    *out = (outcome){.step_ns = ranks[0].time.step_ns};
    for (uint16_t r = 1; r < n; r++) {
        uint64_t bytes = ranks[r].peak.allocated_bytes;
        uint64_t busy_ns = busy_of(&ranks[r]);
        if (bytes > ranks[out->fullest].peak.allocated_bytes)
            out->fullest = r;
        if (bytes < ranks[out->emptiest].peak.allocated_bytes)
            out->emptiest = r;
        if (busy_ns > busy_of(&ranks[out->busiest]))
            out->busiest = r;
        if (busy_ns < busy_of(&ranks[out->idlest]))
            out->idlest = r;
    }
    out->peak_bytes = ranks[out->fullest].peak.allocated_bytes;
}

static ms_err replay(const search *it, const ms_job *other, ms_arena *scratch,
                     outcome *out, bool *done, ms_fault *fault)
{
    ms_result tried = *it->result;
    ms_rank_report *ranks = NULL;
    if (it->by_rounds) {
        ms_job bare = *other;
        bare.allocator = NULL;
        MS_TRY(ms_pipelinerounds_step(&bare, scratch, &tried, &ranks, fault));
    } else {
        MS_TRY(ms_changes_step(other, true, it->result, NULL, scratch, &tried,
                               fault));
        ranks = tried.report->ranks;
    }
    *done = ranks != NULL;
    if (*done)
        look(ranks, it->result->report->n_ranks, out);
    return MS_OK;
}

/* *done is false for what is refused, or cannot be told from few. */
static ms_err attempt(const search *it, const ms_spec *spec, outcome *out,
                      bool *done)
{
    ms_arena scratch = {.limit_bytes = it->arena->limit_bytes};
    ms_fault own = {.caret = -1};
    ms_job other = *it->job;
    other.spec = *spec;
    *done = false;
    ms_err err = replay(it, &other, &scratch, out, done, &own);
    ms_arena_free(&scratch);
    *done = *done && err == MS_OK;
    return ms_fail_but_refusal(err, &own, it->fault);
}

/* ---- layers that move ---------------------------------------------------- */

static struct ms_spec_item *pipeline_of(ms_spec *spec)
{
    for (uint32_t i = 0; i < spec->n; i++)
        if (strcmp(ms_policy_family(spec->items[i].policy), "pipeline") == 0)
            return &spec->items[i];
    return NULL;
}

/* The pipeline with these layers, whatever said before which ones; false: it
 * has no such parameter, or what said it says more than that. */
static bool set_layers(ms_spec *spec, const char *layers)
{
    static const char *const others[] = {"less", "account", "first", "last"};
    struct ms_spec_item *item = pipeline_of(spec);
    bool found = false;
    for (uint32_t p = 0; item != NULL && p < item->policy->n_params; p++) {
        const char *name = item->policy->params[p].name;
        ms_policy_value *value = &item->values[p];
        if (strcmp(name, "per_stage") == 0 && value->given)
            return false;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (strcmp(name, others[i]) == 0)
                value->given = false;
        if (strcmp(name, "layers") != 0)
            continue;
        value->given = found = true;
        value->text = layers;
    }
    return found;
}

static const char *print_list(const uint32_t *list, uint32_t n, ms_arena *arena)
{
    ms_text text = {.arena = arena};
    for (uint32_t k = 0; k < n; k++)
        ms_text_add(&text, "%s%u", k > 0 ? "/" : "", list[k]);
    return text.failed ? NULL : text.bytes;
}

/* A stage of the rank that may give a layer, or take one; MS_NONE: none. */
static uint32_t stage_of(const search *it, const uint32_t *layers,
                         uint16_t rank, bool gives)
{
    uint32_t found = MS_NONE;
    for (uint32_t k = 0; k < it->n_stages; k++)
        if (it->stages[k].rank == rank && (!gives || layers[k] > 1) &&
            (found == MS_NONE ||
             (gives ? layers[k] > layers[found] : layers[k] < layers[found])))
            found = k;
    return found;
}

static bool pays(uint64_t before, uint64_t after)
{
    return after < before - before / LEAST_GAIN;
}

/* One more move, by memory or by time; *more: it paid. */
static ms_err move(const search *it, bool by_time, choice *best, bool *more)
{
    choice next = *best;
    const outcome *now = &best->out;
    uint32_t from =
        stage_of(it, best->layers, by_time ? now->busiest : now->fullest, true);
    uint32_t to = stage_of(it, best->layers,
                           by_time ? now->idlest : now->emptiest, false);
    *more = false;
    if (from == MS_NONE || to == MS_NONE || from == to)
        return MS_OK;
    next.layers = ms_arena_take(it->arena, it->n_stages, sizeof *next.layers);
    if (next.layers == NULL)
        return ms_fail_nomem(it->fault);
    memcpy(next.layers, best->layers, it->n_stages * sizeof *next.layers);
    next.layers[from]--;
    next.layers[to]++;
    const char *list = print_list(next.layers, it->n_stages, it->arena);
    if (list == NULL)
        return ms_fail_nomem(it->fault);
    if (!set_layers(&next.spec, list))
        return MS_OK;
    MS_TRY(attempt(it, &next.spec, &next.out, more));
    *more = *more && (by_time ? pays(now->step_ns, next.out.step_ns)
                              : pays(now->peak_bytes, next.out.peak_bytes));
    if (!*more)
        return MS_OK;
    if (next.moves++ == 0) {
        next.from = from;
        next.to = to;
    }
    *best = next;
    return MS_OK;
}

static ms_err add_way(const search *it, const choice *chosen, const char *words,
                      ms_evenout *even)
{
    const char *policy = ms_spec_print(&chosen->spec, it->arena);
    if (policy == NULL || words == NULL)
        return ms_fail_nomem(it->fault);
    for (uint32_t i = 0; i < even->n; i++)
        if (strcmp(even->ways[i].policy, policy) == 0)
            return MS_OK;
    even->ways[even->n++] = (ms_evenout_way){
        policy, words, chosen->out.peak_bytes, chosen->out.step_ns};
    return MS_OK;
}

/* Numbers of layers leave multi-token prediction to the last stage. */
static bool is_free(const search *it)
{
    for (uint32_t k = 0; k + 1 < it->n_stages; k++)
        if (ms_evenout_predicts(it->result->graph, &it->stages[k]))
            return false;
    return true;
}

static ms_err try_moves(const search *it, bool by_time, ms_evenout *even)
{
    choice best = {.spec = it->job->spec,
                   .layers = (uint32_t *)it->layers,
                   .out = it->now};
    bool more = is_free(it);
    while (more && best.moves < MOST_MOVES)
        MS_TRY(move(it, by_time, &best, &more));
    if (best.moves == 0)
        return MS_OK;
    return add_way(
        it, &best,
        best.moves == 1
            ? ms_arena_format(it->arena, "a layer from stage %u to stage %u",
                              best.from, best.to)
            : ms_arena_format(it->arena, "layers %s",
                              print_list(best.layers, it->n_stages, it->arena)),
        even);
}

/* ---- stages that recompute ----------------------------------------------- */

static bool saves(const ms_spec *spec)
{
    bool any = false;
    for (uint32_t i = 0; i < spec->n; i++)
        any |=
            spec->items[i].policy->saves || spec->items[i].policy->keep != NULL;
    return any;
}

/* All stages of the fullest rank recompute, too. */
static ms_err recompute(const search *it, choice *best, bool *more)
{
    choice next = *best;
    ms_spec own = {0};
    *more = false;
    next.layers = ms_arena_take(it->arena, it->n_stages, sizeof *next.layers);
    if (next.layers == NULL)
        return ms_fail_nomem(it->fault);
    memcpy(next.layers, best->layers, it->n_stages * sizeof *next.layers);
    for (uint32_t k = 0; k < it->n_stages; k++)
        if (it->stages[k].rank == best->out.fullest)
            next.layers[k] = it->layers[k];
    if (memcmp(next.layers, best->layers, it->n_stages * sizeof(uint32_t)) == 0)
        return MS_OK;
    const char *list = print_list(next.layers, it->n_stages, it->arena);
    const char *text =
        list == NULL ? NULL
                     : ms_arena_format(it->arena, "checkpoint:first=%s", list);
    if (text == NULL)
        return ms_fail_nomem(it->fault);
    next.spec = it->job->spec;
    MS_TRY(ms_spec_parse(text, it->arena, &own, it->fault));
    MS_TRY(ms_spec_join(&own, &next.spec, it->fault));
    MS_TRY(attempt(it, &next.spec, &next.out, more));
    *more = *more && pays(best->out.peak_bytes, next.out.peak_bytes);
    if (!*more)
        return MS_OK;
    if (next.moves++ == 0)
        next.from = best->out.fullest;
    *best = next;
    return MS_OK;
}

static ms_err try_recompute(const search *it, ms_evenout *even)
{
    choice best = {.spec = it->job->spec, .out = it->now};
    uint64_t usable = ms_capacity_usable(it->result->report);
    bool more = !saves(&it->job->spec);
    best.layers = ms_arena_take(it->arena, it->n_stages, sizeof *best.layers);
    if (best.layers == NULL)
        return ms_fail_nomem(it->fault);
    while (more && best.moves < MOST_MOVES &&
           (best.moves == 0 || best.out.peak_bytes > usable))
        MS_TRY(recompute(it, &best, &more));
    if (best.moves == 0)
        return MS_OK;
    return add_way(
        it, &best,
        best.moves == 1
            ? ms_arena_format(it->arena, "rank %u recomputes", best.from)
            : ms_arena_format(it->arena, "the %u fullest ranks recompute",
                              best.moves),
        even);
}

/* ---- all of it ----------------------------------------------------------- */

static ms_err begin(search *it, bool *ready)
{
    const ms_program *program = it->result->program;
    uint32_t *layers =
        ms_arena_take(it->arena, program->n_stages, sizeof *layers);
    if (layers == NULL)
        return ms_fail_nomem(it->fault);
    for (uint32_t k = 0; k < program->n_stages; k++)
        layers[k] = ms_evenout_layers(it->result->graph, &program->stages[k]);
    it->n_stages = program->n_stages;
    it->stages = program->stages;
    it->layers = layers;
    return attempt(it, &it->job->spec, &it->now, ready);
}

ms_err ms_evenout_find(const ms_job *job, const ms_result *result,
                       ms_arena *arena, ms_evenout *even, ms_fault *fault)
{
    search it = {.job = job,
                 .result = result,
                 .arena = arena,
                 .by_rounds = result->plan->n_ops > MOST_OPS,
                 .fault = fault};
    ms_spec spec = job->spec;
    bool ready;
    *even = (ms_evenout){0};
    if (job->program != NULL || job->wall || result->report->n_ranks < 2 ||
        result->program->n_stages < 2 || pipeline_of(&spec) == NULL)
        return MS_OK;
    MS_TRY(begin(&it, &ready));
    if (!ready)
        return MS_OK;
    even->peak_bytes = it.now.peak_bytes;
    even->step_ns = it.now.step_ns;
    MS_TRY(try_moves(&it, false, even));
    MS_TRY(try_moves(&it, true, even));
    return try_recompute(&it, even);
}
