/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/calls/learn.h"

#include "sim/fold/cells/rowkind.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <assert.h>
#include <string.h>

/* ---- states -------------------------------------------------------------- */

/* The number of the words that the cells have read. */
static ms_err number_state(ms_learner *learner, uint32_t n, uint32_t *state,
                           ms_fault *fault)
{
    ms_question_states *states = &learner->states;
    const uint32_t *word = learner->cells.word;
    uint32_t known = states->words.n;
    MS_TRY(ms_intern_add(&states->words, word, n, state, fault));
    if (*state < known)
        return MS_OK;
    uint8_t *packs = ms_arena_grow(learner->known, states->packs,
                                   &states->capacity, *state + 1, 1);
    if (packs == NULL)
        return ms_fail_nomem(fault);
    states->packs = packs;
    packs[*state] = false;
    /* Words of ops that a replay will run may look as if: no harm. */
    for (uint32_t i = 0; i < n; i += states->width)
        packs[*state] |= (word[i] & MS_CELLS_PACKED) != 0;
    return MS_OK;
}

static ms_err read_state(ms_learner *learner, uint32_t owner, uint32_t *state,
                         ms_fault *fault)
{
    uint32_t n;
    MS_TRY(ms_cells_read(&learner->cells, owner, &n, fault));
    return number_state(learner, n, state, fault);
}

static const uint32_t *words_of(const ms_learner *learner, uint32_t owner)
{
    return ms_intern_words(&learner->states.words, learner->now[owner]);
}

/* Is the storage anywhere? */
static bool is_somewhere(const ms_learner *learner, uint32_t storage)
{
    const ms_classes *classes = learner->classes;
    uint32_t width = learner->states.width;
    const uint32_t *word = words_of(learner, classes->owner[storage]) +
                           (size_t)classes->index[storage] * width;
    bool found = MS_CELLS_KIND(*word) > 0 || (*word & MS_CELLS_PACKED);
    for (uint32_t k = 1; k < width; k++)
        found |= word[k] > 0;
    return found;
}

/* ---- into the books ------------------------------------------------------ */

static ms_err put_state(ms_learner *learner, uint32_t owner, uint32_t base,
                        ms_fault *fault)
{
    const ms_intern *words = &learner->states.words;
    uint32_t state = learner->now[owner];
    return ms_cells_put(&learner->cells, owner, base,
                        ms_intern_words(words, state),
                        words->at[state + 1] - words->at[state], fault);
}

static ms_err put_all(ms_learner *learner, const ms_question *question,
                      const ms_around *around, ms_fault *fault)
{
    ms_cells *cells = &learner->cells;
    MS_TRY(ms_cells_begin(cells, fault));
    MS_TRY(ms_around_put_replay(around, cells, fault));
    for (uint32_t i = 0; i < question->n_owners; i++)
        MS_TRY(put_state(learner, question->owner[i], question->base, fault));
    if (learner->streamed)
        MS_TRY(ms_around_put(around, question, &learner->states, cells, fault));
    return ms_cells_end(cells, fault);
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
    const ms_classes *classes = learner->classes;
    uint32_t maker = graph->storage_maker[storage];
    if (maker >= graph->forward_at[graph->n_units] || /* MS_NONE is, too */
        is_somewhere(learner, storage))
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

/* Does the call, or its stage, make what it does not find? */
static bool binds(const ms_call *call, ms_bind_stage stage)
{
    return call->verb == MS_RUN ||
           (call->verb == MS_RERUN && stage == MS_BIND_RUN) ||
           (call->verb == MS_HOLD && call->hold.again);
}

static ms_err ask_more(ms_learner *learner, const ms_question *question,
                       ms_bind_stage stage, const ms_program *program,
                       const ms_call *call, ms_fault *fault)
{
    if (!binds(call, stage))
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

static bool is_here(const ms_plan *plan, uint32_t row)
{
    return plan->row[row].pool == MS_DEVICE_POOL;
}

static ms_effect effect_of_op(const ms_learner *learner, uint32_t op)
{
    const ms_plan *plan = &learner->cells.plan;
    const ms_plan_op *it = &plan->op[op];
    uint64_t taken_bytes = 0, given_bytes = 0;
    for (uint32_t r = it->alloc_at; r < it[1].alloc_at; r++)
        if (is_here(plan, r))
            taken_bytes += plan->row[r].bytes;
    for (uint32_t i = it->release_at; i < it[1].release_at; i++)
        if (is_here(plan, plan->release[i]))
            given_bytes += plan->row[plan->release[i]].bytes;
    return ms_recipe_op(learner->machine, it->ns, it->pass, taken_bytes,
                        given_bytes);
}

/* Behind what was put in come the releases of the call before its first op. */
static ms_effect sum_up(ms_learner *learner)
{
    ms_plan *plan = &learner->cells.plan;
    uint32_t first = learner->cells.first_op;
    ms_effect effect = {0};
    for (uint32_t i = 0; i < plan->op[first].release_at; i++)
        if (is_here(plan, plan->release[i]))
            effect.level_bytes -= (int64_t)plan->row[plan->release[i]].bytes;
    for (uint32_t op = first; op < plan->n_ops; op++)
        effect = ms_effect_then(effect, effect_of_op(learner, op));
    return effect;
}

static void close_plan(ms_cells *cells)
{
    ms_plan *plan = &cells->plan;
    plan->op[plan->n_ops].alloc_at = plan->n_rows;
    plan->op[plan->n_ops].release_at = cells->books.n_release;
    if (cells->books.streams)
        plan->wait_at[plan->n_ops] = cells->books.n_wait;
}

/* Did only ops run, and were only storages made, of which the question knows?
 */
static bool is_asked(const ms_learner *learner, const ms_question *question)
{
    const ms_graph *graph = learner->graph;
    const ms_cells *cells = &learner->cells;
    uint32_t backward = graph->backward_at[graph->n_units];
    for (uint32_t i = cells->first_op; i < cells->plan.n_ops; i++) {
        uint32_t op = cells->plan.op[i].of;
        if (op == MS_NONE)
            continue;
        uint32_t side = op < backward ? MS_CLASS_FORWARD : MS_CLASS_BACKWARD;
        if (op >= graph->step_first ||
            !ms_question_has(question, graph->op_unit[op] << 1 | side))
            return false;
    }
    for (uint32_t r = cells->first_row; r < cells->plan.n_rows; r++) {
        uint32_t s = cells->plan.row[r].storage;
        if (s != MS_NONE &&
            question->owner_tick[learner->classes->owner[s]] != question->tick)
            return false;
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
                ms_classes_seen(learner->classes, question->base, owner), state,
                fault));
    }
    return MS_OK;
}

static void clear(ms_learner *learner, const ms_question *question)
{
    ms_books *books = &learner->cells.books;
    for (uint32_t i = 0; i < question->n_owners; i++)
        ms_cells_clear(&learner->cells, question->owner[i]);
    for (uint32_t i = 0; i < question->n_buffers; i++) {
        books->buffer_row[question->buffer[i]] = MS_NONE;
        books->buffer_read[question->buffer[i]] = MS_NONE;
    }
    books->replays[0] = (ms_books_replay){.state = MS_NONE};
}

static ms_err take_answer(ms_learner *learner, const ms_question *question,
                          ms_answer *answer, ms_fault *fault)
{
    const ms_books_replay *replay = &learner->cells.books.replays[0];
    answer->replays = replay->open;
    answer->replay_state = replay->open && replay->state != MS_NONE;
    if (learner->streamed)
        MS_TRY(ms_span_learn(&learner->spans, &learner->cells, question,
                             &answer->span, fault));
    else
        MS_TRY(ms_recipe_note(&learner->recipes, &learner->cells,
                              &answer->recipe, fault));
    answer->effect =
        learner->streamed
            ? ms_span_effect(&learner->spans, answer->span, learner->machine)
            : sum_up(learner);
    MS_TRY(read_states(learner, question, fault));
    clear(learner, question);
    return MS_OK;
}

static ms_err expand_call(ms_learner *learner, const ms_around *around,
                          const ms_program *program, const ms_call *call)
{
    ms_books *books = &learner->cells.books;
    ms_books_at at = ms_books_at_of(books, 0, 0, 0);
    if (around->stage == MS_N_BIND_STAGES)
        return ms_expand_call(books, &at, program, call);
    MS_TRY(ms_bind_step(books, &at, call, around->stage, around->unit));
    if (around->stage == MS_BIND_END)
        ms_cells_end_unit(&learner->cells, around->unit);
    return MS_OK;
}

static ms_err expand_it(ms_learner *learner, const ms_question *question,
                        const ms_around *around, const ms_program *program,
                        const ms_call *call, ms_answer *answer, ms_fault *fault)
{
    ms_cells *cells = &learner->cells;
    cells->fault = (ms_fault){0};
    cells->wants = around->stage == MS_BIND_WANT;
    MS_TRY(put_all(learner, question, around, fault));
    ms_err err = expand_call(learner, around, program, call);
    if (err != MS_OK && !ms_fail_is_refusal(err))
        return ms_fail_nomem(fault);
    if (ms_books_reserve(&cells->books, 0, 0, 0) != MS_OK)
        return ms_fail_nomem(fault);
    close_plan(cells);
    if (!question->whole && (err != MS_OK || !is_asked(learner, question)))
        answer->asks = true;
    else if (err != MS_OK)
        answer->why = MS_FOLD_FAULT;
    else if (cells->books.n_asked > 0 || cells->books.disk_buffers != NULL)
        answer->why = MS_FOLD_BETWEEN;
    if (!answer->asks && answer->why == MS_FOLD_WHOLE)
        return take_answer(learner, question, answer, fault);
    ms_cells_empty(cells);
    return MS_OK;
}

ms_err ms_learn_call(ms_learner *learner, const ms_question *question,
                     const ms_around *around, const ms_program *program,
                     const ms_call *call, uint32_t *id, ms_fault *fault)
{
    ms_answer answer = {.first = learner->n_left,
                        .recipe = MS_NONE,
                        .numbers = learner->numbers};
    MS_TRY(ask_more(learner, question, around->stage, program, call, fault));
    answer.asks = learner->n_left > answer.first;
    if (!answer.asks)
        MS_TRY(expand_it(learner, question, around, program, call, &answer,
                         fault));
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
    const ms_classes *classes = learner->classes;
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
    learner->states.packs = NULL;
    learner->states.capacity = 0;
    learner->n_left = learner->n_owners = 0;
    learner->answers_capacity = learner->left_capacity = 0;
    learner->named_capacity = learner->owners_capacity = 0;
    ms_span_open(&learner->spans, learner->known);
    ms_recipe_open(&learner->recipes, learner->known);
    MS_TRY(ms_intern_open(&learner->kinds, learner->known, fault));
    MS_TRY(ms_rowkind_begin(&learner->cells, fault));
    MS_TRY(ms_intern_open(&learner->states.words, learner->known, fault));
    MS_TRY(ms_intern_open(&learner->questions, learner->known, fault));
    MS_TRY(ms_intern_open(&learner->contexts, learner->known, fault));
    return ms_intern_open(&learner->sets, learner->known, fault);
}

static ms_err put_far(ms_learner *learner, const ms_row *row, ms_fault *fault)
{
    ms_row *far =
        ms_arena_grow(learner->keep, learner->far, &learner->far_capacity,
                      learner->n_far + 1, sizeof *far);
    if (far == NULL)
        return ms_fail_nomem(fault);
    learner->far = far;
    far[learner->n_far++] = *row;
    return MS_OK;
}

ms_err ms_learn_start(ms_learner *learner, ms_fault *fault)
{
    ms_cells *cells = &learner->cells;
    const ms_plan *plan = &cells->plan;
    ms_cells_empty(cells);
    cells->plan.n_ops = cells->plan.n_rows = 0;
    cells->books.n_release = cells->books.n_wait = 0;
    if (ms_start_rank(&cells->books, 0) != MS_OK)
        return ms_fail_nomem(fault);
    learner->start_bytes = 0;
    learner->n_far = 0;
    for (uint32_t r = 0; r < plan->n_rows; r++)
        if (is_here(plan, r))
            learner->start_bytes += plan->row[r].bytes;
        else
            MS_TRY(put_far(learner, &plan->row[r], fault));
    return MS_OK;
}

/* The same, and its states. */
static ms_err read_start(ms_learner *learner, ms_fault *fault)
{
    MS_TRY(ms_learn_start(learner, fault));
    for (uint32_t owner = 0; owner < learner->classes->n_owners; owner++)
        MS_TRY(read_state(learner, owner, &learner->start[owner], fault));
    ms_cells_empty(&learner->cells);
    return MS_OK;
}

ms_err ms_learn_forget(ms_learner *learner, ms_fault *fault)
{
    ms_arena_reset(learner->known);
    MS_TRY(forget(learner, fault));
    return read_start(learner, fault);
}

/* What answers depend on besides the graph and the machine: which columns the
 * books have, and the program's groups. */
static ms_err find_context(ms_learner *learner, const ms_program *program,
                           ms_fault *fault)
{
    const ms_cells *cells = &learner->cells;
    size_t bytes = program->n_groups * sizeof *program->groups;
    uint32_t n = 1 + (uint32_t)(bytes / sizeof(uint32_t));
    uint32_t *word = ms_arena_grow(learner->keep, learner->word,
                                   &learner->word_capacity, n, sizeof *word);
    if (word == NULL)
        return ms_fail_nomem(fault);
    learner->word = word;
    word[0] = (uint32_t)(program->n_buffers > 0) << MS_N_CELLS_COLUMNS |
              (uint32_t)cells->books.streams << (MS_N_CELLS_COLUMNS + 1);
    for (uint32_t k = 0; k < cells->n_columns; k++)
        word[0] |= 1u << cells->column[k];
    if (bytes > 0)
        memcpy(word + 1, program->groups, bytes);
    return ms_intern_add(&learner->contexts, word, n, &learner->context, fault);
}

ms_err ms_learn_turn(ms_learner *learner, const ms_program *program,
                     ms_fault *fault)
{
    ms_cells *cells = &learner->cells;
    if (!learner->streamed)
        return MS_OK;
    if (!ms_cells_suit(cells, program)) {
        MS_TRY(ms_cells_open(cells, learner->graph, learner->classes,
                             learner->opts, program, fault));
        learner->states.width = cells->n_columns;
        MS_TRY(read_start(learner, fault));
    }
    cells->plan.buffers = program->buffers;
    cells->books.groups = learner->opts->groups;
    cells->books.n_groups = MS_N_GROUP_ROLES;
    if (program->n_groups > 0) {
        cells->books.groups = program->groups;
        cells->books.n_groups = program->n_groups;
    }
    return find_context(learner, program, fault);
}

static ms_err take_columns(ms_learner *learner, ms_fault *fault)
{
    uint32_t owners = learner->classes->n_owners;
    learner->start =
        ms_arena_take(learner->keep, owners, sizeof *learner->start);
    learner->now = ms_arena_take(learner->keep, owners, sizeof *learner->now);
    if (learner->start == NULL || learner->now == NULL)
        return ms_fail_nomem(fault);
    return MS_OK;
}

ms_err ms_learn_open(ms_learner *learner, const ms_classes *classes,
                     const ms_expand_opts *opts, const ms_machine *machine,
                     const ms_program *program, ms_arena *keep, ms_arena *known,
                     ms_fault *fault)
{
    *learner = (ms_learner){.graph = classes->graph,
                            .machine = machine,
                            .opts = opts,
                            .classes = classes,
                            .keep = keep,
                            .known = known};
    learner->cells.kinds = &learner->kinds;
    MS_TRY(ms_cells_open(&learner->cells, classes->graph, classes, opts,
                         program, fault));
    learner->streamed = learner->cells.books.streams;
    learner->states.width = learner->cells.n_columns;
    MS_TRY(take_columns(learner, fault));
    return ms_learn_forget(learner, fault);
}

void ms_learn_close(ms_learner *learner)
{
    ms_cells_close(&learner->cells);
}
