/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/learn.h"

#include "sim/graph.h"
#include "sim/replay/inorder.h"

#include <assert.h>
#include <string.h>

/* ---- states in the books ------------------------------------------------- */

static void empty_books(ms_learner *learner)
{
    ms_books *books = &learner->books;
    memset(books->row, 0xff, books->n_cells * sizeof *books->row);
    memset(books->state, 0, books->n_cells);
    memset(books->held, 0, learner->graph->n_storages * sizeof *books->held);
    books->holds = false;
    if (books->replays != NULL)
        books->replays[0].open = false;
}

/* One op, the start, which has the rows of what is here. */
static void begin_plan(ms_learner *learner)
{
    ms_plan *plan = &learner->plan;
    plan->n_ops = plan->n_rows = plan->n_sync = plan->n_transfers = 0;
    learner->books.n_release = learner->books.n_wait = 0;
}

/* The words of an owner's state, as the books have it. */
static ms_err read_state(ms_learner *learner, uint32_t owner, uint32_t *state,
                         ms_fault *fault)
{
    const ms_classes *classes = &learner->classes;
    const ms_books *books = &learner->books;
    uint32_t first = classes->cell_at[owner];
    uint32_t n = classes->cell_at[owner + 1] - first;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = classes->cell[first + i];
        learner->word[i] = books->state[s];
        if (books->row[s] != MS_NONE)
            learner->word[i] |= MS_LEARN_HERE;
    }
    return ms_intern_add(&learner->states, learner->word, n, state, fault);
}

static uint32_t state_word(const ms_learner *learner, uint32_t storage)
{
    const ms_classes *classes = &learner->classes;
    uint32_t state = learner->now[classes->owner[storage]];
    return ms_intern_words(&learner->states, state)[classes->index[storage]];
}

static ms_err write_state(ms_learner *learner, uint32_t owner)
{
    const ms_classes *classes = &learner->classes;
    ms_books *books = &learner->books;
    uint32_t first = classes->cell_at[owner];
    uint32_t n = classes->cell_at[owner + 1] - first;
    const uint32_t *word =
        ms_intern_words(&learner->states, learner->now[owner]);
    MS_TRY(ms_books_reserve(books, 0, n, 0));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = classes->cell[first + i];
        books->state[s] = (uint8_t)word[i];
        books->row[s] =
            word[i] & MS_LEARN_HERE
                ? ms_books_take(books, s, MS_TEMPORARIES, MS_DEVICE_POOL, false)
                : MS_NONE;
    }
    return MS_OK;
}

static ms_err write_states(ms_learner *learner, const ms_question *question)
{
    ms_books *books = &learner->books;
    ms_books_at at = ms_books_at_of(books, 0, 0, 0);
    begin_plan(learner);
    MS_TRY(ms_books_reserve(books, 1, 0, 0));
    ms_books_issue(books, &at, MS_NONE, MS_START, MS_STREAM_COMPUTE, 0);
    for (uint32_t i = 0; i < question->n_owners; i++)
        MS_TRY(write_state(learner, question->owner[i]));
    return MS_OK;
}

/* ---- what else is asked -------------------------------------------------- */

static bool is_part(const ms_question *question, uint32_t unit)
{
    return ms_question_has(question, unit << 1 | MS_CLASS_FORWARD);
}

static ms_err put_left(ms_learner *learner, int32_t owner, uint32_t state,
                       ms_fault *fault)
{
    ms_left *left =
        ms_arena_grow(learner->known, learner->left, &learner->left_capacity,
                      learner->n_left + 1, sizeof *left);
    if (left == NULL)
        return ms_fail_nomem(fault);
    learner->left = left;
    left[learner->n_left++] = (ms_left){.owner = owner, .state = state};
    return MS_OK;
}

static ms_err ask_unit(ms_learner *learner, const ms_question *question,
                       uint32_t op, ms_fault *fault)
{
    uint32_t unit = learner->graph->op_unit[op];
    if (is_part(question, unit))
        return MS_OK;
    return put_left(learner, (int32_t)unit - (int32_t)question->base, 0, fault);
}

/* The storage may be made again: by its maker, and by ops that finish it in
 * place. */
static ms_err ask_makers(ms_learner *learner, const ms_question *question,
                         uint32_t storage, ms_fault *fault)
{
    const ms_graph *graph = learner->graph;
    const ms_classes *classes = &learner->classes;
    uint32_t maker = graph->storage_maker[storage];
    if (maker >= graph->forward_at[graph->n_units] || /* MS_NONE is, too */
        state_word(learner, storage) & MS_LEARN_HERE)
        return MS_OK;
    for (uint32_t op = classes->writer[storage]; op != MS_NONE;
         op = classes->writer_before[op])
        MS_TRY(ask_unit(learner, question, op, fault));
    return ask_unit(learner, question, maker, fault);
}

static ms_err ask_inputs(ms_learner *learner, const ms_question *question,
                         uint32_t part, ms_fault *fault)
{
    const ms_graph *graph = learner->graph;
    uint32_t first, end;
    ms_classes_ops(graph, part >> 1, (ms_class_side)(part & 1u), &first, &end);
    for (uint32_t i = graph->in_at[first]; i < graph->in_at[end]; i++)
        MS_TRY(ask_makers(learner, question, graph->in[i], fault));
    return MS_OK;
}

/* Does the call make what it does not find? */
static bool binds(const ms_call *call)
{
    return call->verb == MS_RUN || call->verb == MS_RERUN ||
           (call->verb == MS_HOLD && call->hold.again);
}

static ms_err ask_more(ms_learner *learner, const ms_question *question,
                       const ms_program *program, const ms_call *call,
                       ms_fault *fault)
{
    if (!binds(call))
        return MS_OK;
    for (uint32_t i = 0; i < question->n_parts; i++)
        MS_TRY(ask_inputs(learner, question, question->part[i], fault));
    if (call->verb != MS_HOLD || call->set >= program->n_sets)
        return MS_OK;
    for (uint32_t i = program->set_at[call->set];
         i < program->set_at[call->set + 1]; i++)
        MS_TRY(ask_makers(learner, question, program->set_item[i], fault));
    return MS_OK;
}

/* ---- what the call did --------------------------------------------------- */

static ms_effect effect_of_op(const ms_learner *learner, uint32_t op)
{
    const ms_plan *plan = &learner->plan;
    const ms_plan_op *it = &plan->op[op];
    uint64_t host_ns = ms_inorder_issue_ns(learner->machine, it);
    ms_effect effect = {.device_ns = it->ns,
                        .behind_ns = host_ns + it->ns,
                        .host_ns = host_ns,
                        .recompute_ns = it->pass == MS_RECOMPUTE ? it->ns : 0,
                        .runs = true};
    for (uint32_t r = it->alloc_at; r < it[1].alloc_at; r++)
        effect.most_bytes += (int64_t)plan->row[r].bytes;
    effect.level_bytes = effect.most_bytes;
    for (uint32_t i = it->release_at; i < it[1].release_at; i++)
        effect.level_bytes -= (int64_t)plan->row[plan->release[i]].bytes;
    return effect;
}

/* Op 0 is the start with its n_here rows; behind it come the releases of the
 * call before its first op. */
static ms_effect sum_up(ms_learner *learner, uint32_t n_here)
{
    ms_plan *plan = &learner->plan;
    plan->op[plan->n_ops].alloc_at = plan->n_rows;
    plan->op[plan->n_ops].release_at = learner->books.n_release;
    assert(plan->op[1].alloc_at == n_here);
    (void)n_here;
    ms_effect effect = effect_of_op(learner, 0);
    effect = (ms_effect){.level_bytes = effect.level_bytes - effect.most_bytes};
    for (uint32_t op = 1; op < plan->n_ops; op++)
        effect = ms_effect_then(effect, effect_of_op(learner, op));
    return effect;
}

/* Did only ops run of which the question knows? */
static bool is_asked(const ms_learner *learner, const ms_question *question)
{
    const ms_graph *graph = learner->graph;
    uint32_t backward = graph->backward_at[graph->n_units];
    for (uint32_t i = 1; i < learner->plan.n_ops; i++) {
        uint32_t op = learner->plan.op[i].of;
        if (op == MS_NONE)
            continue;
        uint32_t side = op < backward ? MS_CLASS_FORWARD : MS_CLASS_BACKWARD;
        if (op >= graph->step_first ||
            !ms_question_has(question, graph->op_unit[op] << 1 | side))
            return false;
    }
    return true;
}

/* Has each row the size of its storage?  A .grad may take over a buffer. */
static bool are_own_sizes(const ms_learner *learner,
                          const ms_question *question)
{
    const ms_classes *classes = &learner->classes;
    for (uint32_t i = 0; i < question->n_owners; i++) {
        uint32_t owner = question->owner[i];
        for (uint32_t k = classes->cell_at[owner];
             k < classes->cell_at[owner + 1]; k++) {
            uint32_t s = classes->cell[k], row = learner->books.row[s];
            if (row != MS_NONE && learner->plan.row[row].bytes !=
                                      learner->graph->storage_bytes[s])
                return false;
        }
    }
    return true;
}

static ms_err read_states(ms_learner *learner, const ms_question *question,
                          ms_fault *fault)
{
    for (uint32_t i = 0; i < question->n_owners; i++) {
        uint32_t owner = question->owner[i], state;
        MS_TRY(read_state(learner, owner, &state, fault));
        if (state != learner->now[owner])
            MS_TRY(put_left(
                learner,
                ms_classes_seen(&learner->classes, question->base, owner),
                state, fault));
    }
    return MS_OK;
}

static void clear_states(ms_learner *learner, const ms_question *question)
{
    const ms_classes *classes = &learner->classes;
    for (uint32_t i = 0; i < question->n_owners; i++) {
        uint32_t owner = question->owner[i];
        for (uint32_t k = classes->cell_at[owner];
             k < classes->cell_at[owner + 1]; k++) {
            learner->books.row[classes->cell[k]] = MS_NONE;
            learner->books.state[classes->cell[k]] = 0;
        }
    }
}

static ms_err expand_it(ms_learner *learner, const ms_question *question,
                        const ms_program *program, const ms_call *call,
                        ms_answer *answer, ms_fault *fault)
{
    ms_books_at at = ms_books_at_of(&learner->books, 0, 0, 0);
    learner->fault = (ms_fault){0};
    MS_TRY(write_states(learner, question));
    uint32_t n_here = learner->plan.n_rows;
    ms_err err = ms_expand_call(&learner->books, &at, program, call);
    if (err != MS_OK && !ms_fail_is_refusal(err))
        return ms_fail_nomem(fault);
    if (err == MS_OK && !are_own_sizes(learner, question))
        answer->why = MS_FOLD_SIZES;
    else if (!question->whole && (err != MS_OK || !is_asked(learner, question)))
        answer->asks = true;
    else if (err != MS_OK)
        answer->why = MS_FOLD_FAULT;
    if (answer->asks || answer->why != MS_FOLD_WHOLE) {
        empty_books(learner);
        return MS_OK;
    }
    answer->effect = sum_up(learner, n_here);
    MS_TRY(read_states(learner, question, fault));
    clear_states(learner, question);
    return MS_OK;
}

ms_err ms_learn_call(ms_learner *learner, const ms_question *question,
                     const ms_program *program, const ms_call *call,
                     uint32_t *id, ms_fault *fault)
{
    ms_answer answer = {.first = learner->n_left};
    MS_TRY(ask_more(learner, question, program, call, fault));
    answer.asks = learner->n_left > answer.first;
    if (!answer.asks)
        MS_TRY(expand_it(learner, question, program, call, &answer, fault));
    answer.n = learner->n_left - answer.first;
    MS_TRY(ms_intern_add(&learner->questions, question->word, question->n_words,
                         id, fault));
    ms_answer *answers =
        ms_arena_grow(learner->known, learner->answer,
                      &learner->answers_capacity, *id + 1, sizeof *answers);
    if (answers == NULL)
        return ms_fail_nomem(fault);
    learner->answer = answers;
    answers[*id] = answer;
    return MS_OK;
}

/* ---- sets ---------------------------------------------------------------- */

static ms_err put_owner(ms_learner *learner, uint32_t first, int32_t owner,
                        ms_fault *fault)
{
    for (uint32_t i = first; i < learner->n_owners; i++)
        if (learner->owners[i] == owner)
            return MS_OK;
    int32_t *owners = ms_arena_grow(learner->known, learner->owners,
                                    &learner->owners_capacity,
                                    learner->n_owners + 1, sizeof *owners);
    if (owners == NULL)
        return ms_fail_nomem(fault);
    learner->owners = owners;
    owners[learner->n_owners++] = owner;
    return MS_OK;
}

/* A set that is new: whose storages it names. */
static ms_err note_named(ms_learner *learner, uint32_t id, uint32_t n,
                         ms_fault *fault)
{
    struct ms_named *named =
        ms_arena_grow(learner->known, learner->named, &learner->named_capacity,
                      id + 1, sizeof *named);
    if (named == NULL)
        return ms_fail_nomem(fault);
    learner->named = named;
    named[id].first = learner->n_owners;
    for (uint32_t i = 0; i < n; i++)
        MS_TRY(put_owner(learner, named[id].first,
                         (int32_t)learner->word[2 * (size_t)i], fault));
    named[id].n = learner->n_owners - named[id].first;
    return MS_OK;
}

ms_err ms_learn_set(ms_learner *learner, const ms_program *program,
                    uint32_t set, ms_question_set *of, ms_fault *fault)
{
    const ms_classes *classes = &learner->classes;
    uint32_t first = program->set_at[set];
    uint32_t n = program->set_at[set + 1] - first, known = learner->sets.n;
    uint32_t *word =
        ms_arena_grow(learner->keep, learner->word, &learner->word_capacity,
                      2 * n + 1, sizeof *word);
    if (word == NULL)
        return ms_fail_nomem(fault);
    learner->word = word;
    of->base = 0;
    for (uint32_t i = n; i-- > 0;) {
        uint32_t owner = classes->owner[program->set_item[first + i]];
        if (owner < classes->shared)
            of->base = owner;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = program->set_item[first + i];
        word[2 * (size_t)i] =
            (uint32_t)ms_classes_seen(classes, of->base, classes->owner[s]);
        word[2 * (size_t)i + 1] = classes->index[s];
    }
    MS_TRY(ms_intern_add(&learner->sets, word, 2 * n, &of->id, fault));
    return of->id == known ? note_named(learner, known, n, fault) : MS_OK;
}

/* ---- opening ------------------------------------------------------------- */

static ms_err forget(ms_learner *learner, ms_fault *fault)
{
    learner->answer = NULL;
    learner->left = NULL;
    learner->named = NULL;
    learner->owners = NULL;
    learner->n_left = learner->n_owners = 0;
    learner->answers_capacity = learner->left_capacity = 0;
    learner->named_capacity = learner->owners_capacity = 0;
    MS_TRY(ms_intern_open(&learner->states, learner->known, fault));
    MS_TRY(ms_intern_open(&learner->questions, learner->known, fault));
    return ms_intern_open(&learner->sets, learner->known, fault);
}

/* Books what exists before the step, and reads its states and bytes. */
static ms_err read_start(ms_learner *learner, ms_fault *fault)
{
    const ms_plan *plan = &learner->plan;
    empty_books(learner);
    begin_plan(learner);
    if (ms_start_rank(&learner->books, 0) != MS_OK)
        return ms_fail_nomem(fault);
    learner->start_bytes = 0;
    for (uint32_t r = 0; r < plan->n_rows; r++)
        learner->start_bytes += plan->row[r].bytes;
    for (uint32_t owner = 0; owner < learner->classes.n_owners; owner++)
        MS_TRY(read_state(learner, owner, &learner->start[owner], fault));
    empty_books(learner);
    return MS_OK;
}

ms_err ms_learn_forget(ms_learner *learner, ms_fault *fault)
{
    ms_arena_reset(learner->known);
    MS_TRY(forget(learner, fault));
    return read_start(learner, fault);
}

static ms_err open_books(ms_learner *learner, const ms_expand_opts *opts,
                         ms_fault *fault)
{
    /* One set, so that there are columns for what sets keep and hold. */
    static const ms_program program = {
        .n_frames = 1, .n_ranks = 1, .n_sets = 1};
    learner->plan = (ms_plan){.graph = learner->graph, .n_ranks = 1};
    learner->books = (ms_books){.graph = learner->graph,
                                .opts = opts,
                                .arena = learner->keep,
                                .plan = &learner->plan,
                                .fault = &learner->fault};
    if (ms_books_open(&learner->books, &program) != MS_OK)
        return ms_fail_nomem(fault);
    return MS_OK;
}

static ms_err take_columns(ms_learner *learner, ms_fault *fault)
{
    const ms_classes *classes = &learner->classes;
    uint32_t owners = classes->n_owners, most = 1;
    for (uint32_t owner = 0; owner < owners; owner++)
        if (classes->cell_at[owner + 1] - classes->cell_at[owner] > most)
            most = classes->cell_at[owner + 1] - classes->cell_at[owner];
    learner->word = ms_arena_grow(learner->keep, NULL, &learner->word_capacity,
                                  most, sizeof *learner->word);
    learner->start =
        ms_arena_take(learner->keep, owners, sizeof *learner->start);
    learner->now = ms_arena_take(learner->keep, owners, sizeof *learner->now);
    if (learner->word == NULL || learner->start == NULL || learner->now == NULL)
        return ms_fail_nomem(fault);
    return MS_OK;
}

static uint8_t find_why(const ms_learner *learner)
{
    const ms_machine *machine = learner->machine;
    const ms_graph *graph = learner->graph;
    if (machine->book_device || machine->wall || machine->paging.page_bytes > 0)
        return MS_FOLD_MEMORY;
    return learner->books.streams || graph->storage_pool != NULL ||
                   graph->storage_shard_bytes != NULL
               ? MS_FOLD_STREAMS
               : MS_FOLD_WHOLE;
}

ms_err ms_learn_open(ms_learner *learner, const ms_graph *graph,
                     const ms_expand_opts *opts, const ms_machine *machine,
                     ms_arena *keep, ms_arena *known, ms_fault *fault)
{
    *learner = (ms_learner){
        .graph = graph, .machine = machine, .keep = keep, .known = known};
    MS_TRY(open_books(learner, opts, fault));
    learner->why = find_why(learner);
    if (learner->why != MS_FOLD_WHOLE)
        return MS_OK;
    MS_TRY(ms_classes_open(&learner->classes, graph, keep, fault));
    MS_TRY(take_columns(learner, fault));
    return ms_learn_forget(learner, fault);
}
