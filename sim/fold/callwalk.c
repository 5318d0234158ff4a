/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/callwalk.h"

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

static void ask_run(ms_callwalk *walk, const ms_call *call)
{
    bool forward = call->run.pass == MS_FORWARD;
    ms_question_begin(&walk->question, call->unit);
    ms_question_word(&walk->question, (uint32_t)MS_RUN << 8 | forward);
    if (forward) {
        ask_set(walk, call->run.keep);
        ask_set(walk, call->set);
    }
    ms_question_part(&walk->question, call->unit,
                     forward ? MS_CLASS_FORWARD : MS_CLASS_BACKWARD);
}

static void ask_rerun(ms_callwalk *walk, const ms_call *call)
{
    uint32_t flags = call->rerun.whole | (uint32_t)call->rerun.holds << 1 |
                     (uint32_t)call->rerun.state << 2;
    ms_question_begin(&walk->question, call->unit);
    ms_question_word(&walk->question, (uint32_t)MS_RERUN << 8 | flags);
    ask_units(walk, call->unit, call->last);
}

static void ask_references(ms_callwalk *walk, const ms_call *call)
{
    bool units = call->verb == MS_DROP_SET && call->unit != MS_NONE;
    bool again = call->verb == MS_HOLD && call->hold.again;
    uint32_t base = 0;
    if (is_set(walk, call->set))
        base = walk->sets[call->set].base;
    ms_question_begin(&walk->question, units ? call->unit : base);
    ms_question_word(&walk->question,
                     (uint32_t)call->verb << 8 | again | (uint32_t)units << 1);
    ask_set(walk, call->set);
    if (units)
        ask_units(walk, call->unit, call->last);
}

static void ask_state(ms_callwalk *walk, const ms_call *call)
{
    ms_question_begin(&walk->question, call->unit);
    ms_question_word(&walk->question, (uint32_t)MS_STATE << 8 | call->state.to);
    ms_question_part(&walk->question, call->unit, MS_CLASS_FORWARD);
}

static void ask_step(ms_callwalk *walk, const ms_call *call)
{
    ms_question_begin(&walk->question, 0);
    ms_question_word(&walk->question,
                     (uint32_t)MS_STEP_SET << 8 | call->step.part);
    ms_question_everything(&walk->question);
}

/* *asked: the call does something. */
static ms_err ask_call(ms_callwalk *walk, const ms_call *call, bool *asked)
{
    *asked = true;
    switch ((ms_verb)call->verb) {
    case MS_RUN:
        MS_TRY(find_set(walk, call->run.keep));
        MS_TRY(find_set(walk, call->set));
        ask_run(walk, call);
        return MS_OK;
    case MS_RERUN:
        if (call->rerun.part)
            walk->why = MS_FOLD_PARTS;
        else
            ask_rerun(walk, call);
        return MS_OK;
    case MS_HOLD:
    case MS_DROP_SET:
        MS_TRY(find_set(walk, call->set));
        ask_references(walk, call);
        return MS_OK;
    case MS_STATE:
        ask_state(walk, call);
        return MS_OK;
    case MS_STEP_SET:
        if (call->set != MS_ALL)
            walk->why = MS_FOLD_STREAMS;
        else
            ask_step(walk, call);
        return MS_OK;
    case MS_MARK:
        *asked = false;
        return MS_OK;
    default:
        walk->why = MS_FOLD_STREAMS;
        return MS_OK;
    }
}

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

/* The answer that has no further question, or one with a reason. */
static ms_err find_answer(ms_callwalk *walk, const ms_call *call,
                          const ms_answer **answer)
{
    ms_learner *learner = &walk->learner;
    ms_question *question = &walk->question;
    for (;;) {
        uint32_t id = ms_intern_find(&learner->questions, question->word,
                                     question->n_words);
        if (id == MS_NONE) {
            MS_TRY(ms_learn_call(learner, question, walk->program, call, &id,
                                 walk->fault));
            walk->learnt++;
        }
        *answer = &learner->answer[id];
        if (!(*answer)->asks)
            return MS_OK;
        ask_further(walk, *answer);
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

ms_err ms_callwalk_call(ms_callwalk *walk, const ms_call *call)
{
    ms_learner *learner = &walk->learner;
    const ms_answer *answer;
    bool asked;
    MS_TRY(ask_call(walk, call, &asked));
    if (!asked || walk->why != MS_FOLD_WHOLE)
        return MS_OK;
    MS_TRY(find_answer(walk, call, &answer));
    walk->why = (ms_fold_why)answer->why;
    if (!walk->all)
        watch(walk);
    walk->since = ms_effect_then(walk->since, answer->effect);
    for (uint32_t i = 0; i < answer->n; i++) {
        const ms_left *left = &learner->left[answer->first + i];
        learner->now[ms_classes_owner(&learner->classes, walk->question.base,
                                      left->owner)] = left->state;
    }
    return MS_OK;
}

ms_err ms_callwalk_begin(ms_callwalk *walk, const ms_program *program,
                         ms_fault *fault)
{
    ms_question_set *sets =
        ms_arena_grow(walk->learner.keep, walk->sets, &walk->sets_capacity,
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
    return MS_OK;
}
