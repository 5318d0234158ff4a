/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/fold.h"

#include "sim/fold/calls/renumber.h"
#include "sim/fold/classes/likeness.h"
#include "sim/fold/knowntape.h"
#include "sim/fold/pieces/atpeak.h"
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/program.h"

#include <string.h>

/* What is learnt is forgotten when it has grown to so many bytes for each
 * storage of the graph, and so many more. */
#define MOST_BYTES (UINT64_C(16) << 20)
#define MOST_BYTES_EACH 512u

struct ms_fold {
    ms_graph graph; /* prepared */
    ms_expand_opts opts;
    const ms_machine *machine;
    ms_classes classes;
    ms_choice_saved saved;
    bool graph_streams;   /* ops on several streams */
    ms_callwalk walk;     /* of programs on one stream */
    ms_pieces pieces;     /* of these, too */
    ms_callwalk streamed; /* of the others; opened for the first of them */
    ms_knowntapes tapes;  /* of these */
    bool has_walk, has_streamed;
    bool is_streamed_old; /* what it knows is of another graph's numbers */
    ms_arena keep, known, known_streamed;
    uint64_t most_bytes;
    ms_folded *folded;
    /* The micro-batch under way: its first call, what the calls before it did,
     * and the states of owners at its beginning. */
    uint32_t first;
    ms_effect before;
    uint32_t *then;
};

static const char *const sentences[MS_N_FOLD_WHYS] = {
    [MS_FOLD_WHOLE] = "nothing",
    [MS_FOLD_RANKS] = "the program has several ranks",
    [MS_FOLD_FRAMES] = "several micro-batches are under way at once",
    [MS_FOLD_HALVES] = "backward runs in halves",
    [MS_FOLD_HOOKS] = "hooks change what is saved",
    [MS_FOLD_MEMORY] =
        "ops wait for memory or evict, or it is booked by device time",
    [MS_FOLD_STREAMS] = "the graph has ops on several streams",
    [MS_FOLD_BETWEEN] = "copies outlive the calls that make them",
    [MS_FOLD_FAR] = "units read what units far from them make",
    [MS_FOLD_FAULT] = "the program cannot be run",
};

const char *ms_fold_sentence(ms_fold_why why)
{
    return sentences[why];
}

/* ---- micro-batches ------------------------------------------------------- */

/* Do the two do the same, each in its micro-batch?  Calls that differ in bytes
 * that mean nothing are walked, too. */
static bool are_alike(const ms_call *a, const ms_call *b)
{
    ms_call moved = *b;
    const void *bytes = a, *others = &moved;
    moved.micro_batch = a->micro_batch;
    return memcmp(bytes, others, sizeof moved) == 0;
}

/* How many micro-batches follow, from call at on, whose n calls are those of
 * the one that has just ended. */
static uint32_t count_alike(const ms_fold *fold, uint32_t at, uint32_t n)
{
    const ms_call *calls = fold->walk.program->calls;
    uint32_t i = at;
    while (i < fold->walk.program->n_calls &&
           are_alike(&calls[i - n], &calls[i]))
        i++;
    return (i - at) / n;
}

/* A micro-batch begins at call *at.  Where the one before it leaves what it
 * found, those that follow it and are alike do what it did. */
static void begin_micro_batch(ms_fold *fold, uint32_t *at)
{
    ms_learner *learner = &fold->walk.learner;
    size_t bytes = learner->classes->n_owners * sizeof *learner->now;
    uint32_t n = *at - fold->first, times = 0;
    if (memcmp(learner->now, fold->then, bytes) == 0)
        times = count_alike(fold, *at, n);
    else
        memcpy(fold->then, learner->now, bytes);
    fold->walk.since = ms_effect_times(fold->walk.since, (uint64_t)times + 1);
    fold->before = ms_effect_then(fold->before, fold->walk.since);
    fold->walk.since = (ms_effect){0};
    fold->folded->repeated += times * n;
    *at += times * n;
    fold->first = *at;
}

static ms_err fold_calls(ms_fold *fold)
{
    const ms_program *program = fold->walk.program;
    const ms_call *calls = program->calls;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        if (i > 0 && calls[i].micro_batch != calls[i - 1].micro_batch)
            begin_micro_batch(fold, &i);
        if (i == program->n_calls)
            break;
        MS_TRY(ms_callwalk_call(&fold->walk, &calls[i]));
        if (fold->walk.why != MS_FOLD_WHOLE)
            return MS_OK;
    }
    fold->before = ms_effect_then(fold->before, fold->walk.since);
    return MS_OK;
}

/* ---- one program --------------------------------------------------------- */

/* Does a call write what a micro-batch has made to the disk, by way of the two
 * buffers that outlive the call? */
static bool is_staged(const ms_graph *graph, const ms_program *program,
                      const ms_call *call)
{
    return call->verb == MS_MOVE && call->move.to == MS_NVME &&
           !call->move.straight && ms_books_names_made(graph, program, call);
}

ms_fold_why ms_fold_bar(const ms_graph *graph, const ms_machine *machine,
                        const ms_program *program)
{
    if (program->n_ranks > 1 || program->n_stages > 0)
        return MS_FOLD_RANKS;
    if (program->n_frames > 1)
        return MS_FOLD_FRAMES;
    if (program->hooks.used)
        return MS_FOLD_HOOKS;
    if (machine->book_device || machine->wall ||
        machine->paging.page_bytes > 0 || program->online != NULL)
        return MS_FOLD_MEMORY;
    for (uint32_t i = 0; i < program->n_calls; i++)
        if (is_staged(graph, program, &program->calls[i]))
            return MS_FOLD_BETWEEN;
    return MS_FOLD_WHOLE;
}

static ms_err forget_streamed(ms_fold *fold, ms_fault *fault)
{
    ms_knowntape_forget(&fold->tapes);
    return ms_learn_forget(&fold->streamed.learner, fault);
}

/* Forgets what was learnt when it has grown too large. */
static ms_err keep_small(ms_fold *fold, ms_fault *fault)
{
    if (fold->known.used_bytes > fold->most_bytes) {
        MS_TRY(ms_learn_forget(&fold->walk.learner, fault));
        MS_TRY(ms_pieces_forget(&fold->pieces, fault));
    }
    return fold->known_streamed.used_bytes > fold->most_bytes
               ? forget_streamed(fold, fault)
               : MS_OK;
}

static void begin_states(ms_callwalk *walk)
{
    ms_learner *learner = &walk->learner;
    memcpy(learner->now, learner->start,
           learner->classes->n_owners * sizeof *learner->now);
}

/* On one stream. */
static ms_err fold_plain(ms_fold *fold, const ms_program *program,
                         ms_folded *folded, ms_fault *fault)
{
    const ms_learner *learner = &fold->walk.learner;
    fold->folded = folded;
    MS_TRY(ms_callwalk_begin(&fold->walk, program, fault));
    begin_states(&fold->walk);
    memcpy(fold->then, learner->start,
           learner->classes->n_owners * sizeof *learner->start);
    fold->before = (ms_effect){0};
    fold->first = 0;
    MS_TRY(fold_calls(fold));
    folded->why = fold->walk.why;
    folded->learnt = fold->walk.learnt;
    return MS_OK;
}

/* The effect of all calls, as peak and time. */
static void tell(const ms_fold *fold, const ms_effect *all, ms_folded *folded)
{
    if (folded->why != MS_FOLD_WHOLE)
        return;
    folded->peak_bytes =
        fold->walk.learner.start_bytes + (uint64_t)all->most_bytes;
    folded->active_bytes = folded->peak_bytes;
    folded->step_ns = ms_effect_later(all->device_ns, all->behind_ns);
    folded->recompute_ns = all->recompute_ns;
}

/* What it knows is of this graph. */
static ms_err open_streamed(ms_fold *fold, const ms_program *program,
                            ms_fault *fault)
{
    if (fold->is_streamed_old) {
        fold->is_streamed_old = false;
        return forget_streamed(fold, fault);
    }
    if (fold->has_streamed)
        return MS_OK;
    MS_TRY(ms_callwalk_open(&fold->streamed, &fold->classes, &fold->opts,
                            fold->machine, program, &fold->keep,
                            &fold->known_streamed, fault));
    fold->has_streamed = true;
    return MS_OK;
}

/* Call by call. */
static ms_err walk_streamed(ms_fold *fold, const ms_program *program,
                            ms_fault *fault)
{
    ms_callwalk *walk = &fold->streamed;
    MS_TRY(ms_callwalk_begin(walk, program, fault));
    begin_states(walk);
    walk->notes = true;
    walk->n_steps = 0;
    for (uint32_t i = 0; i < program->n_calls && walk->why == MS_FOLD_WHOLE;
         i++)
        MS_TRY(ms_callwalk_call(walk, &program->calls[i]));
    return walk->why == MS_FOLD_WHOLE && ms_fold_turns(fold)
               ? ms_knowntape_see(&fold->tapes, walk, fault)
               : MS_OK;
}

/* The numbers of a tape that is known, which lends the walk's memory. */
static ms_err run_known(ms_fold *fold, ms_knowntape *known,
                        const ms_program *program, ms_folded *folded,
                        ms_fault *fault)
{
    ms_learner *learner = &fold->streamed.learner;
    ms_tape *lender = &fold->streamed.tape;
    ms_effect effect = ms_knowntape_tell(known, learner, program);
    folded->peak_bytes = learner->start_bytes + (uint64_t)effect.most_bytes;
    ms_arena_reset(&lender->arena);
    known->tape.arena = lender->arena;
    ms_err err = ms_taperun(&known->tape, fold->machine, learner->start_bytes,
                            folded, fault);
    lender->arena = known->tape.arena;
    return err;
}

static ms_err fold_streamed(ms_fold *fold, const ms_program *program,
                            ms_folded *folded, ms_fault *fault)
{
    ms_callwalk *walk = &fold->streamed;
    MS_TRY(open_streamed(fold, program, fault));
    MS_TRY(ms_learn_turn(&walk->learner, program, fault));
    ms_knowntape *known =
        ms_knowntape_find(&fold->tapes, program, walk->learner.context);
    folded->streamed = true;
    if (known != NULL && known->n_steps > 0)
        return run_known(fold, known, program, folded, fault);
    MS_TRY(walk_streamed(fold, program, fault));
    folded->why = walk->why;
    folded->learnt = walk->learnt;
    if (walk->why != MS_FOLD_WHOLE)
        return MS_OK;
    folded->peak_bytes =
        walk->learner.start_bytes + (uint64_t)walk->since.most_bytes;
    return ms_taperun(&walk->tape, fold->machine, walk->learner.start_bytes,
                      folded, fault);
}

ms_err ms_fold_program(ms_fold *fold, const ms_program *program,
                       ms_folded *folded, ms_fault *fault)
{
    *folded =
        (ms_folded){.why = ms_fold_bar(&fold->graph, fold->machine, program),
                    .calls = program->n_calls};
    if (folded->why != MS_FOLD_WHOLE)
        return MS_OK;
    MS_TRY(keep_small(fold, fault));
    if (ms_books_ask(&fold->graph, fold->graph_streams, program).streams)
        return fold_streamed(fold, program, folded, fault);
    MS_TRY(fold_plain(fold, program, folded, fault));
    tell(fold, &fold->before, folded);
    return MS_OK;
}

ms_err ms_fold_choose(ms_fold *fold, const ms_fold_choice *choice,
                      ms_folded *folded, ms_fault *fault)
{
    static const ms_program alone = {.n_frames = 1, .n_ranks = 1};
    *folded =
        (ms_folded){.why = ms_fold_bar(&fold->graph, fold->machine, &alone)};
    if (folded->why == MS_FOLD_WHOLE && !fold->has_walk)
        folded->why = MS_FOLD_STREAMS;
    if (folded->why != MS_FOLD_WHOLE)
        return MS_OK;
    MS_TRY(keep_small(fold, fault));
    MS_TRY(ms_pieces_fold(&fold->pieces, choice, fault));
    folded->why = fold->pieces.why;
    folded->learnt = fold->pieces.learnt;
    folded->repeated = fold->pieces.repeated;
    tell(fold, &fold->pieces.effect, folded);
    return MS_OK;
}

bool ms_fold_read(const ms_fold *fold, const ms_keep *keep,
                  ms_fold_stretch *stretches, ms_fold_choice *choice)
{
    return ms_choice_read(&fold->graph, &fold->saved, keep, stretches, choice);
}

bool ms_fold_categories(ms_fold *fold, uint64_t by_category[MS_N_CATEGORIES])
{
    return ms_atpeak_find(&fold->pieces, by_category);
}

/* ---- opening ------------------------------------------------------------- */

static ms_err open_walk(ms_fold *fold, ms_fault *fault)
{
    static const ms_program empty = {.n_frames = 1, .n_ranks = 1};
    if (ms_books_ask(&fold->graph, fold->graph_streams, &empty).streams)
        return MS_OK;
    MS_TRY(ms_callwalk_open(&fold->walk, &fold->classes, &fold->opts,
                            fold->machine, &empty, &fold->keep, &fold->known,
                            fault));
    fold->then =
        ms_arena_take(&fold->keep, fold->classes.n_owners, sizeof *fold->then);
    if (fold->then == NULL)
        return ms_fail_nomem(fault);
    fold->has_walk = true;
    return ms_pieces_open(&fold->pieces, &fold->walk, &fold->keep, &fold->known,
                          fault);
}

static ms_err open_fold(ms_fold *fold, const ms_graph *graph, ms_fault *fault)
{
    fold->graph = *graph;
    if (graph->storage_refs == NULL)
        MS_TRY(ms_prepare_graph(&fold->graph, &fold->keep, fault));
    fold->graph_streams = ms_books_graph_streams(&fold->graph);
    MS_TRY(ms_classes_open(&fold->classes, &fold->graph, &fold->keep, fault));
    MS_TRY(ms_choice_open(&fold->saved, &fold->graph, &fold->keep, fault));
    return open_walk(fold, fault);
}

ms_err ms_fold_open(const ms_graph *graph, const ms_expand_opts *opts,
                    const ms_machine *machine, ms_arena *arena, ms_fold **fold,
                    ms_fault *fault)
{
    uint64_t limit_bytes = arena->limit_bytes;
    ms_fold *it = ms_arena_take(arena, 1, sizeof *it);
    if (it == NULL)
        return ms_fail_nomem(fault);
    it->opts = *opts;
    it->opts.uses = false;
    it->machine = machine;
    it->keep.limit_bytes = it->known.limit_bytes = limit_bytes;
    it->known_streamed.limit_bytes = it->tapes.arena.limit_bytes = limit_bytes;
    it->most_bytes = MOST_BYTES + (uint64_t)graph->n_storages * MOST_BYTES_EACH;
    ms_err err = open_fold(it, graph, fault);
    if (err != MS_OK)
        ms_fold_close(it);
    else
        *fold = it;
    return err;
}

void ms_fold_close(ms_fold *fold)
{
    ms_pieces_close(&fold->pieces);
    ms_callwalk_close(&fold->walk);
    ms_callwalk_close(&fold->streamed);
    ms_arena_free(&fold->tapes.arena);
    ms_arena_free(&fold->keep);
    ms_arena_free(&fold->known);
    ms_arena_free(&fold->known_streamed);
}

bool ms_fold_turns(const ms_fold *fold)
{
    return ms_likeness_is_plain(&fold->graph);
}

bool ms_fold_alike(const ms_graph *a, const ms_graph *b)
{
    return ms_likeness_is_plain(a) && ms_likeness_is_plain(b) &&
           ms_likeness_graphs(a, b);
}

/* What does not fit, or finds no room, is learnt anew. */
bool ms_fold_turn(ms_fold *fold, const ms_graph *graph)
{
    bool turns =
        ms_fold_alike(&fold->graph, graph) &&
        ms_likeness_units(&fold->classes, graph) &&
        (!fold->has_walk || ms_renumber_fits(&fold->walk.learner, graph));
    if (!turns)
        return false;
    fold->is_streamed_old |=
        fold->has_streamed && !ms_renumber_fits(&fold->streamed.learner, graph);
    fold->graph = *graph;
    if (fold->has_walk)
        ms_renumber_turn(&fold->walk.learner);
    if (fold->has_streamed && !fold->is_streamed_old)
        fold->is_streamed_old = !ms_renumber_turn(&fold->streamed.learner);
    return true;
}

uint64_t ms_fold_bytes(const ms_fold *fold)
{
    return fold->keep.used_bytes + fold->known.used_bytes +
           fold->known_streamed.used_bytes + fold->tapes.arena.used_bytes;
}
