/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/calls/callwalk.h"

#include "sim/fold/calls/renumber.h"
#include "sim/fold/cells/rowkind.h"
#include "sim/program.h"

static bool is_set(const ms_callwalk *walk, uint32_t set)
{
    return set < walk->program->n_sets;
}

static ms_err find_set(ms_callwalk *walk, uint32_t set)
{
    if (!is_set(walk, set) || walk->sets[set].id != MS_NONE)
        return MS_OK;
    return ms_learn_set(&walk->learner, walk->program, set, &walk->sets[set],
                        walk->fault);
}

/* A set, or the word for all or for nothing. */
static void ask_set(ms_callwalk *walk, uint32_t set)
{
    const ms_learner *learner = &walk->learner;
    if (!is_set(walk, set)) {
        ms_question_word(&walk->question, set);
        return;
    }
    const struct ms_named *named = &learner->named[walk->sets[set].id];
    ms_question_names(&walk->question, &walk->sets[set],
                      learner->owners + named->first, named->n);
}

/* Units [first, last] forward. */
static void ask_units(ms_callwalk *walk, uint32_t first, uint32_t last)
{
    ms_question_word(&walk->question, last - first);
    for (uint32_t u = first; u <= last; u++)
        ms_question_part(&walk->question, u, MS_CLASS_FORWARD);
}

/* With several streams answers depend on more than states; and with a replay
 * in parts under way. */
static void ask_around(ms_callwalk *walk)
{
    ms_question *question = &walk->question;
    if (walk->learner.streamed)
        ms_question_word(question, walk->learner.context);
    ms_question_word(question, (uint32_t)(walk->replay != MS_NONE) |
                                   (uint32_t)walk->replay_state << 1);
}

static void begin(ms_callwalk *walk, uint32_t base, ms_verb verb,
                  uint32_t flags)
{
    ms_question_begin(&walk->question, base);
    ms_question_word(&walk->question, (uint32_t)verb << 24 | flags);
    ask_around(walk);
}

static void ask_run(ms_callwalk *walk, const ms_call *call)
{
    bool forward = call->run.pass == MS_FORWARD;
    begin(walk, call->unit, MS_RUN, forward);
    if (forward) {
        ask_set(walk, call->run.keep);
        ask_set(walk, call->set);
    }
    ms_question_part(&walk->question, call->unit,
                     forward ? MS_CLASS_FORWARD : MS_CLASS_BACKWARD);
}

/* How far it is from unit to another: as far as that matters, and further than
 * storages of a unit's own reach, with the unit. */
static void ask_distance(ms_callwalk *walk, uint32_t unit, uint32_t distance,
                         uint32_t reach)
{
    bool near = distance < reach;
    ms_question_word(&walk->question, near ? distance : MS_NONE);
    if (near && reach > MS_CLASSES_NEAR)
        ms_question_word(&walk->question, unit);
}

/* One stage of a replay, of one unit. */
static void ask_rerun(ms_callwalk *walk, const ms_call *call,
                      ms_bind_stage stage, uint32_t unit)
{
    const ms_classes *classes = walk->learner.classes;
    begin(walk, unit, MS_RERUN,
          call->rerun.whole | (uint32_t)call->rerun.holds << 1 |
              (uint32_t)call->rerun.state << 2 | (uint32_t)stage << 3);
    if (stage == MS_BIND_WANT || stage == MS_BIND_RUN)
        ask_distance(walk, unit, call->last - unit, classes->read_behind[unit]);
    if (stage == MS_BIND_WANT)
        ask_distance(walk, unit, unit - walk->replay,
                     classes->made_before[unit]);
    ms_question_part(&walk->question, unit, MS_CLASS_FORWARD);
}

static uint32_t base_of(const ms_callwalk *walk, const ms_call *call)
{
    return is_set(walk, call->set) ? walk->sets[call->set].base : 0;
}

static void ask_references(ms_callwalk *walk, const ms_call *call)
{
    bool units = call->verb == MS_DROP_SET && call->unit != MS_NONE;
    bool again = call->verb == MS_HOLD && call->hold.again;
    begin(walk, units ? call->unit : base_of(walk, call), (ms_verb)call->verb,
          again | (uint32_t)units << 1);
    ask_set(walk, call->set);
    if (units)
        ask_units(walk, call->unit, call->last);
}

static void ask_state(ms_callwalk *walk, const ms_call *call)
{
    begin(walk, call->unit, MS_STATE, call->state.to);
    ms_question_part(&walk->question, call->unit, MS_CLASS_FORWARD);
}

static void ask_step(ms_callwalk *walk, const ms_call *call)
{
    uint32_t ran_due = walk->learner.cells.books.ran_due;
    begin(walk, 0, MS_STEP_SET,
          call->step.part | (uint32_t)call->step.norms << 4 |
              (uint32_t)call->step.behind << 5 | ran_due << 8);
    ask_set(walk, call->set);
    ms_question_everything(&walk->question);
}

static void ask_buffer(ms_callwalk *walk, uint32_t buffer)
{
    if (buffer != MS_NONE)
        ms_question_buffer(&walk->question, buffer);
}

static void ask_move(ms_callwalk *walk, const ms_call *call)
{
    const ms_move_call *how = &call->move;
    const ms_tape *tape = &walk->tape;
    uint32_t flags = how->to | (uint32_t)how->later << 3 |
                     (uint32_t)how->in_line << 4 | (uint32_t)how->side << 5 |
                     (uint32_t)how->adds << 6 | (uint32_t)how->pageable << 7 |
                     (uint32_t)how->straight << 8 | (uint32_t)how->ahead << 9 |
                     (uint32_t)(call->buffer != MS_NONE) << 10 |
                     (uint32_t)how->as_is << 16;
    if (how->side && tape->side != MS_NONE)
        flags |= 1u << 11 | (uint32_t)tape->side_stream << 12;
    begin(walk, base_of(walk, call), MS_MOVE, flags);
    ask_buffer(walk, call->buffer);
    ask_set(walk, call->set);
}

static void ask_gather(ms_callwalk *walk, const ms_call *call)
{
    bool limit = call->gather.limit;
    uint32_t flags = call->gather.group | (uint32_t)call->gather.ahead << 8 |
                     (uint32_t)limit << 9 |
                     (uint32_t)(limit && walk->tape.limit[1] != MS_NONE) << 10 |
                     (uint32_t)(call->buffer != MS_NONE) << 11;
    begin(walk, base_of(walk, call), MS_GATHER, flags);
    ask_buffer(walk, call->buffer);
    ask_set(walk, call->set);
}

static void ask_reduce(ms_callwalk *walk, const ms_call *call)
{
    const ms_reduce_call *how = &call->reduce;
    uint32_t flags = how->to | (uint32_t)how->group << 4 |
                     (uint32_t)how->whole << 12 | (uint32_t)how->filled << 13 |
                     (uint32_t)how->exchange << 14 |
                     (uint32_t)how->in_line << 15 |
                     (uint32_t)(call->buffer != MS_NONE) << 16;
    begin(walk, base_of(walk, call), MS_REDUCE, flags);
    ask_buffer(walk, call->buffer);
    ask_set(walk, call->set);
}

static void ask_named(ms_callwalk *walk, const ms_call *call)
{
    begin(walk, base_of(walk, call), (ms_verb)call->verb,
          call->buffer != MS_NONE);
    ask_buffer(walk, call->buffer);
    ask_set(walk, call->set);
}

static void ask_task(ms_callwalk *walk, const ms_call *call)
{
    const ms_task *task = &walk->program->tasks[call->work.task];
    begin(walk, base_of(walk, call), MS_WORK,
          task->unit | (uint32_t)task->stream << 8);
    ms_question_word(&walk->question, (uint32_t)task->amount);
    ms_question_word(&walk->question, (uint32_t)(task->amount >> 32));
    ask_set(walk, call->set);
}

/* *asked: the call does something that is learnt. */
static ms_err ask_call(ms_callwalk *walk, const ms_call *call, bool *asked)
{
    *asked = true;
    MS_TRY(find_set(walk, call->set));
    switch ((ms_verb)call->verb) {
    case MS_RUN:
        MS_TRY(find_set(walk, call->run.keep));
        if (call->run.half)
            walk->why = MS_FOLD_HALVES;
        else
            ask_run(walk, call);
        return MS_OK;
    case MS_HOLD:
    case MS_DROP_SET:
        ask_references(walk, call);
        return MS_OK;
    case MS_STATE:
        ask_state(walk, call);
        return MS_OK;
    case MS_STEP_SET:
        ask_step(walk, call);
        return MS_OK;
    case MS_MOVE:
        ask_move(walk, call);
        return MS_OK;
    case MS_GATHER:
        ask_gather(walk, call);
        return MS_OK;
    case MS_REDUCE:
        ask_reduce(walk, call);
        return MS_OK;
    case MS_WAIT:
    case MS_TAKE:
    case MS_GIVE:
        ask_named(walk, call);
        return MS_OK;
    case MS_WORK:
        ask_task(walk, call);
        return MS_OK;
    case MS_MARK:
        *asked = false;
        return MS_OK;
    case MS_SYNC: /* without other streams, no tape tells of it */
        walk->why = MS_FOLD_BETWEEN;
        return MS_OK;
    case MS_RERUN: /* stage by stage */
    case MS_SEND_SET:
    case MS_RECV_SET:
    case MS_N_VERBS:
        break;
    }
    walk->why = MS_FOLD_RANKS;
    return MS_OK;
}

/* ---- answers ------------------------------------------------------------- */

static void ask_further(ms_callwalk *walk, const ms_answer *answer)
{
    ms_question *question = &walk->question;
    const ms_left *left = walk->learner.left + answer->first;
    if (answer->n == 0)
        ms_question_everything(question);
    for (uint32_t i = 0; i < answer->n; i++)
        ms_question_part(question, question->base + (uint32_t)left[i].owner,
                         MS_CLASS_FORWARD);
}

/* The number of the answer that has no further question, or of one with a
 * reason. */
static ms_err find_answer(ms_callwalk *walk, const ms_call *call,
                          ms_bind_stage stage, uint32_t unit, uint32_t *number)
{
    ms_learner *learner = &walk->learner;
    ms_question *question = &walk->question;
    const ms_around around = {
        .replay = walk->replay,
        .replay_state = walk->replay_state,
        .side = call->verb == MS_MOVE && call->move.side &&
                walk->tape.side != MS_NONE,
        .side_stream = walk->tape.side_stream,
        .limit = call->verb == MS_GATHER && call->gather.limit &&
                 walk->tape.limit[1] != MS_NONE,
        .tape = learner->streamed ? &walk->tape : NULL,
        .stage = stage,
        .unit = unit};
    for (;;) {
        if (learner->streamed)
            ms_question_close(question, &learner->states, &walk->tape);
        uint32_t id = ms_intern_find(&learner->questions, question->word,
                                     question->n_words);
        if (id == MS_NONE) {
            MS_TRY(ms_learn_call(learner, question, &around, walk->program,
                                 call, &id, walk->fault));
            walk->learnt++;
        }
        *number = id;
        if (!learner->answer[id].asks)
            return MS_OK;
        ask_further(walk, &learner->answer[id]);
    }
}

/* Notes owners outside of those that the caller has set up. */
static void watch(ms_callwalk *walk)
{
    const ms_question *question = &walk->question;
    for (uint32_t i = 0; i < question->n_owners; i++)
        walk->strayed |= question->owner[i] < question->classes->shared &&
                         (question->owner[i] < walk->low ||
                          question->owner[i] >= walk->high);
}

/* ---- calls --------------------------------------------------------------- */

/* The last writer of what is there of a storage: of its copy on the host, else
 * of the first that an op would find (ms_move_sync). */
static uint32_t last_writer(const ms_callwalk *walk, uint32_t storage)
{
    const ms_learner *learner = &walk->learner;
    const ms_cells *cells = &learner->cells;
    const ms_classes *classes = learner->classes;
    uint32_t state = learner->now[classes->owner[storage]];
    const uint32_t *word = ms_intern_words(&learner->states.words, state) +
                           (size_t)classes->index[storage] * cells->n_columns;
    uint32_t first = MS_NONE;
    for (uint32_t k = 0; k < cells->n_columns; k++) {
        uint32_t kind = k == 0 ? MS_CELLS_KIND(*word) : word[k];
        if (kind == 0 ||
            (first != MS_NONE && cells->column[k] != MS_CELLS_HOST))
            continue;
        first = ms_rowkind_is_at_start(cells, kind)
                    ? 0
                    : walk->tape.ready[cells->column[k]][storage];
    }
    return first;
}

static ms_err sync_set(ms_callwalk *walk, const ms_call *call)
{
    const ms_program *program = walk->program;
    uint32_t until = MS_NONE, first = 0, end = 0;
    if (is_set(walk, call->set)) {
        first = program->set_at[call->set];
        end = program->set_at[call->set + 1];
    }
    for (uint32_t i = first; i < end; i++) {
        uint32_t op = last_writer(walk, program->set_item[i]);
        if (op != MS_NONE && (until == MS_NONE || op > until))
            until = op;
    }
    return until != MS_NONE || first == end
               ? ms_tape_sync(&walk->tape, until, walk->fault)
               : MS_OK;
}

/* The host's waits name ops by when they were, which no answer knows. */
static ms_err sync(ms_callwalk *walk, const ms_call *call)
{
    const ms_tape *tape = &walk->tape;
    if (call->sync.compute)
        return ms_tape_sync(&walk->tape, tape->compute, walk->fault);
    if (call->buffer == MS_NONE)
        return sync_set(walk, call);
    const ms_tape_buffer *buffer = &tape->buffer[call->buffer];
    return buffer->kind > 0
               ? ms_tape_sync(&walk->tape, buffer->ready, walk->fault)
               : MS_OK;
}

/* A MOVE to SHARD lets go, before it does anything else. */
static void let_go(ms_callwalk *walk, const ms_call *call)
{
    ms_tape *tape = &walk->tape;
    if (call->verb != MS_MOVE || call->move.to != MS_SHARD ||
        !is_set(walk, call->set))
        return;
    tape->limit[1] = tape->limit[0];
    tape->limit[0] = tape->compute;
}

static ms_err take_answer(ms_callwalk *walk, const ms_call *call,
                          const ms_answer *answer)
{
    ms_learner *learner = &walk->learner;
    walk->since = ms_effect_then(walk->since, answer->effect);
    if (learner->streamed) {
        let_go(walk, call);
        MS_TRY(ms_tape_put(&walk->tape, &learner->spans, answer->span,
                           &walk->question, call->micro_batch, walk->fault));
    }
    if (walk->replay == MS_NONE || !answer->replays)
        walk->replay = answer->replays ? call->unit : MS_NONE;
    walk->replay_state = answer->replay_state;
    if (call->verb == MS_STEP_SET && is_set(walk, call->set))
        learner->cells.books.ran_due = true;
    for (uint32_t i = 0; i < answer->n; i++) {
        const ms_left *left = &learner->left[answer->first + i];
        learner->now[ms_classes_owner(learner->classes, walk->question.base,
                                      left->owner)] = left->state;
    }
    return MS_OK;
}

static ms_err note_step(ms_callwalk *walk, uint32_t number)
{
    if (!walk->notes)
        return MS_OK;
    uint32_t *steps =
        ms_arena_grow(walk->learner.keep, walk->steps, &walk->steps_capacity,
                      walk->n_steps + 1, sizeof *steps);
    if (steps == NULL)
        return ms_fail_nomem(walk->fault);
    walk->steps = steps;
    steps[walk->n_steps++] = number;
    return MS_OK;
}

/* What has been asked is answered; of a RERUN it is a stage of a unit. */
static ms_err answer(ms_callwalk *walk, const ms_call *call,
                     ms_bind_stage stage, uint32_t unit)
{
    uint32_t number;
    MS_TRY(find_answer(walk, call, stage, unit, &number));
    const ms_answer *found = ms_renumber_answer(&walk->learner, number);
    walk->why = (ms_fold_why)found->why;
    if (!walk->all)
        watch(walk);
    if (walk->why != MS_FOLD_WHOLE)
        return MS_OK;
    MS_TRY(note_step(walk, number));
    return take_answer(walk, call, found);
}

/* ---- replays of units ---------------------------------------------------- */

ms_err ms_callwalk_stage(ms_callwalk *walk, const ms_call *call,
                         ms_bind_stage stage, uint32_t unit)
{
    if (walk->why != MS_FOLD_WHOLE)
        return MS_OK;
    ask_rerun(walk, call, stage, unit);
    return answer(walk, call, stage, unit);
}

static ms_err open_replay(ms_callwalk *walk, const ms_call *call)
{
    if (call->rerun.state && walk->learner.graph->unit_state != NULL)
        MS_TRY(ms_callwalk_stage(walk, call, MS_BIND_OPEN, call->unit));
    walk->replay = call->unit;
    for (uint32_t u = call->last + 1; !call->rerun.whole && u-- > call->unit;)
        MS_TRY(ms_callwalk_stage(walk, call, MS_BIND_WANT, u));
    return MS_OK;
}

static ms_err close_replay(ms_callwalk *walk, const ms_call *call)
{
    uint32_t first = walk->replay;
    if (walk->replay_state)
        MS_TRY(ms_callwalk_stage(walk, call, MS_BIND_STATE, first));
    for (uint32_t u = first; u <= call->last; u++)
        MS_TRY(ms_callwalk_stage(walk, call, MS_BIND_END, u));
    walk->replay = MS_NONE;
    walk->replay_state = false;
    return MS_OK;
}

/* The stages of a RERUN (sim/expand/books.h), each unit by itself: so segments
 * of many equal units are learnt by the unit. */
static ms_err rerun(ms_callwalk *walk, const ms_call *call)
{
    uint32_t last = call->rerun.part ? call->unit : call->last;
    if (walk->replay == MS_NONE)
        MS_TRY(open_replay(walk, call));
    for (uint32_t u = call->unit; u <= last; u++)
        MS_TRY(ms_callwalk_stage(walk, call, MS_BIND_RUN, u));
    return last == call->last ? close_replay(walk, call) : MS_OK;
}

ms_err ms_callwalk_call(ms_callwalk *walk, const ms_call *call)
{
    bool asked;
    if (call->verb == MS_RERUN)
        return rerun(walk, call);
    if (call->verb == MS_SYNC && walk->learner.streamed)
        return find_set(walk, call->set) == MS_OK ? sync(walk, call)
                                                  : MS_ENOMEM;
    MS_TRY(ask_call(walk, call, &asked));
    if (!asked || walk->why != MS_FOLD_WHOLE)
        return MS_OK;
    return answer(walk, call, MS_N_BIND_STAGES, call->unit);
}

static ms_err begin_tape(ms_callwalk *walk, const ms_program *program,
                         ms_fault *fault)
{
    ms_learner *learner = &walk->learner;
    MS_TRY(ms_question_room(&walk->question, program->n_buffers, fault));
    return ms_tape_begin(&walk->tape, &learner->cells, learner->far,
                         learner->n_far, program, fault);
}

ms_err ms_callwalk_begin(ms_callwalk *walk, const ms_program *program,
                         ms_fault *fault)
{
    ms_learner *learner = &walk->learner;
    ms_question_set *sets =
        ms_arena_grow(learner->keep, walk->sets, &walk->sets_capacity,
                      program->n_sets + 1, sizeof *sets);
    if (sets == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < program->n_sets; i++)
        sets[i].id = MS_NONE;
    walk->sets = sets;
    walk->program = program;
    walk->fault = fault;
    walk->why = MS_FOLD_WHOLE;
    walk->since = (ms_effect){0};
    walk->learnt = 0;
    walk->all = true;
    walk->notes = false;
    walk->replay = MS_NONE;
    walk->replay_state = false;
    MS_TRY(ms_learn_turn(learner, program, fault));
    learner->cells.books.ran_due = false;
    return learner->streamed ? begin_tape(walk, program, fault) : MS_OK;
}

ms_err ms_callwalk_open(ms_callwalk *walk, const ms_classes *classes,
                        const ms_expand_opts *opts, const ms_machine *machine,
                        const ms_program *program, ms_arena *keep,
                        ms_arena *known, ms_fault *fault)
{
    *walk = (ms_callwalk){0};
    MS_TRY(ms_learn_open(&walk->learner, classes, opts, machine, program, keep,
                         known, fault));
    return ms_question_open(&walk->question, classes, walk->learner.now, keep,
                            fault);
}

void ms_callwalk_close(ms_callwalk *walk)
{
    ms_learn_close(&walk->learner);
    ms_tape_close(&walk->tape);
}
