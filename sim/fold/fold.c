/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/fold.h"

#include "sim/fold/learn.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <string.h>

/* What is learnt is forgotten when it has grown to so many bytes for each
 * storage of the graph, and so many more. */
#define MOST_BYTES (UINT64_C(16) << 20)
#define MOST_BYTES_EACH 512u

struct ms_fold {
    ms_graph graph; /* prepared */
    ms_expand_opts opts;
    ms_learner learner;
    ms_question question;
    ms_arena keep, known;
    uint64_t most_bytes;
    const ms_program *program;
    ms_question_set *sets; /* of the program */
    uint32_t sets_capacity;
    ms_folded *folded;
    ms_fault *fault;
    /* The micro-batch under way: its first call, what the calls before it did,
     * what its own did so far, and the states of owners at its beginning. */
    uint32_t first;
    ms_effect before, since;
    uint32_t *then;
};

static const char *const sentences[MS_N_FOLD_WHYS] = {
    [MS_FOLD_WHOLE] = "nothing",
    [MS_FOLD_RANKS] = "the program has several ranks",
    [MS_FOLD_FRAMES] = "several micro-batches are under way at once",
    [MS_FOLD_STREAMS] = "ops, copies or collectives run on other streams than "
                        "the compute stream",
    [MS_FOLD_MEMORY] = "ops wait for memory, or it is booked by device time",
    [MS_FOLD_PARTS] = "other calls stand between the parts of a replay",
    [MS_FOLD_SIZES] = "a storage takes over the memory of one of another size",
    [MS_FOLD_FAULT] = "the program cannot be run",
};

const char *ms_fold_sentence(ms_fold_why why)
{
    return sentences[why];
}

/* ---- one call ------------------------------------------------------------ */

static bool is_set(const ms_fold *fold, uint32_t set)
{
    return set < fold->program->n_sets;
}

static ms_err find_set(ms_fold *fold, uint32_t set)
{
    if (!is_set(fold, set) || fold->sets[set].id != MS_NONE)
        return MS_OK;
    return ms_learn_set(&fold->learner, fold->program, set, &fold->sets[set],
                        fold->fault);
}

/* A set, or the word for all or for nothing. */
static void ask_set(ms_fold *fold, uint32_t set)
{
    const ms_learner *learner = &fold->learner;
    if (!is_set(fold, set)) {
        ms_question_word(&fold->question, set);
        return;
    }
    const struct ms_named *named = &learner->named[fold->sets[set].id];
    ms_question_names(&fold->question, &fold->sets[set],
                      learner->owners + named->first, named->n);
}

/* Units [first, last] forward. */
static void ask_units(ms_fold *fold, uint32_t first, uint32_t last)
{
    ms_question_word(&fold->question, last - first);
    for (uint32_t u = first; u <= last; u++)
        ms_question_part(&fold->question, u, MS_CLASS_FORWARD);
}

static void ask_run(ms_fold *fold, const ms_call *call)
{
    bool forward = call->run.pass == MS_FORWARD;
    ms_question_begin(&fold->question, call->unit);
    ms_question_word(&fold->question, (uint32_t)MS_RUN << 8 | forward);
    if (forward) {
        ask_set(fold, call->run.keep);
        ask_set(fold, call->set);
    }
    ms_question_part(&fold->question, call->unit,
                     forward ? MS_CLASS_FORWARD : MS_CLASS_BACKWARD);
}

static void ask_rerun(ms_fold *fold, const ms_call *call)
{
    uint32_t flags = call->rerun.whole | (uint32_t)call->rerun.holds << 1 |
                     (uint32_t)call->rerun.state << 2;
    ms_question_begin(&fold->question, call->unit);
    ms_question_word(&fold->question, (uint32_t)MS_RERUN << 8 | flags);
    ask_units(fold, call->unit, call->last);
}

static void ask_references(ms_fold *fold, const ms_call *call)
{
    bool units = call->verb == MS_DROP_SET && call->unit != MS_NONE;
    bool again = call->verb == MS_HOLD && call->hold.again;
    uint32_t base = 0;
    if (is_set(fold, call->set))
        base = fold->sets[call->set].base;
    ms_question_begin(&fold->question, units ? call->unit : base);
    ms_question_word(&fold->question,
                     (uint32_t)call->verb << 8 | again | (uint32_t)units << 1);
    ask_set(fold, call->set);
    if (units)
        ask_units(fold, call->unit, call->last);
}

static void ask_state(ms_fold *fold, const ms_call *call)
{
    ms_question_begin(&fold->question, call->unit);
    ms_question_word(&fold->question, (uint32_t)MS_STATE << 8 | call->state.to);
    ms_question_part(&fold->question, call->unit, MS_CLASS_FORWARD);
}

static void ask_step(ms_fold *fold, const ms_call *call)
{
    ms_question_begin(&fold->question, 0);
    ms_question_word(&fold->question,
                     (uint32_t)MS_STEP_SET << 8 | call->step.part);
    ms_question_everything(&fold->question);
}

/* *asked: the call does something. */
static ms_err ask_call(ms_fold *fold, const ms_call *call, bool *asked)
{
    *asked = true;
    switch ((ms_verb)call->verb) {
    case MS_RUN:
        MS_TRY(find_set(fold, call->run.keep));
        MS_TRY(find_set(fold, call->set));
        ask_run(fold, call);
        return MS_OK;
    case MS_RERUN:
        if (call->rerun.part)
            fold->folded->why = MS_FOLD_PARTS;
        else
            ask_rerun(fold, call);
        return MS_OK;
    case MS_HOLD:
    case MS_DROP_SET:
        MS_TRY(find_set(fold, call->set));
        ask_references(fold, call);
        return MS_OK;
    case MS_STATE:
        ask_state(fold, call);
        return MS_OK;
    case MS_STEP_SET:
        if (call->set != MS_ALL)
            fold->folded->why = MS_FOLD_STREAMS;
        else
            ask_step(fold, call);
        return MS_OK;
    case MS_MARK:
        *asked = false;
        return MS_OK;
    default:
        fold->folded->why = MS_FOLD_STREAMS;
        return MS_OK;
    }
}

static void ask_further(ms_fold *fold, const ms_answer *answer)
{
    ms_question *question = &fold->question;
    const ms_left *left = fold->learner.left + answer->first;
    if (answer->n == 0)
        ms_question_everything(question);
    for (uint32_t i = 0; i < answer->n; i++)
        ms_question_part(question, question->base + (uint32_t)left[i].owner,
                         MS_CLASS_FORWARD);
}

/* The answer that has no further question, or one with a reason. */
static ms_err find_answer(ms_fold *fold, const ms_call *call,
                          const ms_answer **answer)
{
    ms_learner *learner = &fold->learner;
    ms_question *question = &fold->question;
    for (;;) {
        uint32_t id = ms_intern_find(&learner->questions, question->word,
                                     question->n_words);
        if (id == MS_NONE) {
            MS_TRY(ms_learn_call(learner, question, fold->program, call, &id,
                                 fold->fault));
            fold->folded->learnt++;
        }
        *answer = &learner->answer[id];
        if (!(*answer)->asks)
            return MS_OK;
        ask_further(fold, *answer);
    }
}

static ms_err fold_call(ms_fold *fold, const ms_call *call)
{
    ms_learner *learner = &fold->learner;
    const ms_answer *answer;
    bool asked;
    MS_TRY(ask_call(fold, call, &asked));
    if (!asked || fold->folded->why != MS_FOLD_WHOLE)
        return MS_OK;
    MS_TRY(find_answer(fold, call, &answer));
    fold->folded->why = (ms_fold_why)answer->why;
    fold->since = ms_effect_then(fold->since, answer->effect);
    for (uint32_t i = 0; i < answer->n; i++) {
        const ms_left *left = &learner->left[answer->first + i];
        learner->now[ms_classes_owner(&learner->classes, fold->question.base,
                                      left->owner)] = left->state;
    }
    return MS_OK;
}

/* ---- micro-batches ------------------------------------------------------- */

/* Do the two do the same, each in its micro-batch? */
static bool are_alike(const ms_call *a, const ms_call *b)
{
    ms_call moved = *b;
    moved.micro_batch = a->micro_batch;
    return memcmp(a, &moved, sizeof moved) == 0;
}

/* How many micro-batches follow, from call at on, whose n calls are those of
 * the one that has just ended. */
static uint32_t count_alike(const ms_fold *fold, uint32_t at, uint32_t n)
{
    const ms_call *calls = fold->program->calls;
    uint32_t i = at;
    while (i < fold->program->n_calls && are_alike(&calls[i - n], &calls[i]))
        i++;
    return (i - at) / n;
}

/* A micro-batch begins at call *at.  Where the one before it leaves what it
 * found, those that follow it and are alike do what it did. */
static void begin_micro_batch(ms_fold *fold, uint32_t *at)
{
    ms_learner *learner = &fold->learner;
    size_t bytes = learner->classes.n_owners * sizeof *learner->now;
    uint32_t n = *at - fold->first, times = 0;
    if (memcmp(learner->now, fold->then, bytes) == 0)
        times = count_alike(fold, *at, n);
    else
        memcpy(fold->then, learner->now, bytes);
    fold->since = ms_effect_times(fold->since, (uint64_t)times + 1);
    fold->before = ms_effect_then(fold->before, fold->since);
    fold->since = (ms_effect){0};
    fold->folded->repeated += times * n;
    *at += times * n;
    fold->first = *at;
}

static ms_err fold_calls(ms_fold *fold)
{
    const ms_program *program = fold->program;
    const ms_call *calls = program->calls;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        if (i > 0 && calls[i].micro_batch != calls[i - 1].micro_batch)
            begin_micro_batch(fold, &i);
        if (i == program->n_calls)
            break;
        MS_TRY(fold_call(fold, &calls[i]));
        if (fold->folded->why != MS_FOLD_WHOLE)
            return MS_OK;
    }
    fold->before = ms_effect_then(fold->before, fold->since);
    return MS_OK;
}

/* ---- one program --------------------------------------------------------- */

/* What stands in the way of any call. */
static ms_fold_why why_of(const ms_fold *fold, const ms_program *program)
{
    if (fold->learner.why != MS_FOLD_WHOLE)
        return (ms_fold_why)fold->learner.why;
    if (program->n_ranks > 1)
        return MS_FOLD_RANKS;
    if (program->n_frames > 1)
        return MS_FOLD_FRAMES;
    bool moves =
        program->hooks.used || program->n_buffers > 0 || program->n_tasks > 0;
    return moves ? MS_FOLD_STREAMS : MS_FOLD_WHOLE;
}

static ms_err begin_program(ms_fold *fold, const ms_program *program)
{
    ms_learner *learner = &fold->learner;
    size_t bytes = learner->classes.n_owners * sizeof *learner->now;
    if (fold->known.used_bytes > fold->most_bytes)
        MS_TRY(ms_learn_forget(learner, fold->fault));
    ms_question_set *sets =
        ms_arena_grow(&fold->keep, fold->sets, &fold->sets_capacity,
                      program->n_sets + 1, sizeof *sets);
    if (sets == NULL)
        return ms_fail_nomem(fold->fault);
    fold->sets = sets;
    for (uint32_t i = 0; i < program->n_sets; i++)
        sets[i].id = MS_NONE;
    memcpy(learner->now, learner->start, bytes);
    memcpy(fold->then, learner->start, bytes);
    fold->program = program;
    fold->before = fold->since = (ms_effect){0};
    fold->first = 0;
    return MS_OK;
}

ms_err ms_fold_program(ms_fold *fold, const ms_program *program,
                       ms_folded *folded, ms_fault *fault)
{
    *folded =
        (ms_folded){.why = why_of(fold, program), .calls = program->n_calls};
    if (folded->why != MS_FOLD_WHOLE)
        return MS_OK;
    fold->folded = folded;
    fold->fault = fault;
    MS_TRY(begin_program(fold, program));
    MS_TRY(fold_calls(fold));
    const ms_effect *all = &fold->before;
    if (folded->why != MS_FOLD_WHOLE)
        return MS_OK;
    folded->peak_bytes = fold->learner.start_bytes + (uint64_t)all->most_bytes;
    folded->step_ns = ms_effect_later(all->device_ns, all->behind_ns);
    return MS_OK;
}

/* ---- opening ------------------------------------------------------------- */

static ms_err open_fold(ms_fold *fold, const ms_graph *graph,
                        const ms_machine *machine, ms_fault *fault)
{
    ms_learner *learner = &fold->learner;
    fold->graph = *graph;
    if (graph->storage_refs == NULL)
        MS_TRY(ms_prepare_graph(&fold->graph, &fold->keep, fault));
    MS_TRY(ms_learn_open(learner, &fold->graph, &fold->opts, machine,
                         &fold->keep, &fold->known, fault));
    if (learner->why != MS_FOLD_WHOLE)
        return MS_OK;
    fold->then = ms_arena_take(&fold->keep, learner->classes.n_owners,
                               sizeof *fold->then);
    if (fold->then == NULL)
        return ms_fail_nomem(fault);
    return ms_question_open(&fold->question, &learner->classes, learner->now,
                            &fold->keep, fault);
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
    it->keep.limit_bytes = it->known.limit_bytes = limit_bytes;
    it->most_bytes = MOST_BYTES + (uint64_t)graph->n_storages * MOST_BYTES_EACH;
    ms_err err = open_fold(it, graph, machine, fault);
    if (err != MS_OK)
        ms_fold_close(it);
    else
        *fold = it;
    return err;
}

void ms_fold_close(ms_fold *fold)
{
    ms_arena_free(&fold->keep);
    ms_arena_free(&fold->known);
}

uint64_t ms_fold_bytes(const ms_fold *fold)
{
    return fold->keep.used_bytes + fold->known.used_bytes;
}
