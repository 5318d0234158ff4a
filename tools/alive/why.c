/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds what keeps a row alive. The plan says which ops read a row and after
 * which op the host drops it. */

#include "sim/graph.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "tools/alive/alive.h"
#include "tools/job/result.h"

#include <string.h>

/* `kind` says what stands between the two texts: the op and the layer of the
 * fate, or the instant at which the training loop's variables end. */
static const struct {
    const char *before, *after;
    enum { NOTHING, READER, END, UNTIL } kind;
} rows[MS_N_WHYS] = {
    [MS_WHY_PARAMETER] = {"parameter: there the whole step", "", NOTHING},
    [MS_WHY_BUFFER] = {"buffer of the model: there the whole step", "",
                       NOTHING},
    [MS_WHY_STATE] = {"optimizer state: there the whole step", "", NOTHING},
    [MS_WHY_INPUT] = {"input of the step: the training loop holds it", "",
                      NOTHING},
    [MS_WHY_LIBRARY] = {"workspace that a library keeps once taken", "",
                        NOTHING},
    [MS_WHY_WORKSPACE] = {"workspace of the op at work", "", NOTHING},
    [MS_WHY_GRAD] = {".grad: there until zero_grad", "", NOTHING},
    [MS_WHY_GRAD_STEP] = {".grad: read in the optimizer step by ", "", READER},
    [MS_WHY_GRAD_MORE] = {".grad: read next by ", "", READER},
    [MS_WHY_SAVED] = {"saved for ", "", READER},
    [MS_WHY_SAVED_AGAIN] = {"saved for ", ", which is recomputed", READER},
    [MS_WHY_SAVED_UNREAD] = {"saved by autograd until after ", "", END},
    [MS_WHY_HELD] = {"input of a checkpoint, held for ", "", READER},
    [MS_WHY_HELD_UNREAD] = {"input of a checkpoint, held until after ", "",
                            END},
    [MS_WHY_OUTPUT] = {"output: the training loop holds it until after ", "",
                       UNTIL},
    [MS_WHY_LOSS] = {"loss: the training loop holds it until after ", "",
                     UNTIL},
    [MS_WHY_READ_NOW] = {"read by the op at work, ", "", READER},
    [MS_WHY_READ] = {"read next by ", "", READER},
    [MS_WHY_MADE] = {"made and freed by the op at work", "", NOTHING},
    [MS_WHY_VARIABLE] = {"a variable names it until after ", "", END},
    [MS_WHY_KEPT] = {"held to the end of the step", "", NOTHING},
    [MS_WHY_NOT_MADE] = {"not made in this run", "", NOTHING},
    [MS_WHY_NOT_YET] = {"not made yet", "", NOTHING},
    [MS_WHY_FREED] = {"freed after ", "", END},
    [MS_WHY_FREED_AGAIN] = {"freed after ", ", made again later", END},
};

bool ms_why_lasts(uint8_t why)
{
    return why <= MS_WHY_GRAD_MORE;
}

bool ms_why_reads(uint8_t why)
{
    return rows[why].kind == READER;
}

void ms_why_words(uint8_t why, const char *op, const char *layer,
                  const char *until, ms_text *text)
{
    ms_text_add(text, "%s", rows[why].before);
    if (rows[why].kind == UNTIL)
        ms_text_add(text, "%s", until);
    if (rows[why].kind == READER || rows[why].kind == END)
        ms_text_add(text, "%s%s%s", op, layer != NULL ? " of " : "",
                    layer != NULL ? layer : "");
    ms_text_add(text, "%s", rows[why].after);
}

/* By plan row, plan ops or MS_NONE: the first reader from now on, the first
 * reader that is not a forward, and the op after which the host drops it. By
 * storage: does a checkpoint hold it? */
typedef struct readers {
    const ms_result *result;
    const ms_instant *instant;
    uint32_t *next, *next_back, *end;
    uint8_t *held;
} readers;

static uint8_t pass_of(const readers *r, uint32_t op)
{
    return r->result->plan->op[op].pass;
}

ms_err ms_why_ends(const ms_plan *plan, ms_arena *arena, uint32_t **ends,
                   ms_fault *fault)
{
    *ends = ms_arena_take_raw(arena, plan->n_rows, sizeof **ends);
    if (*ends == NULL)
        return ms_fail_nomem(fault);
    memset(*ends, 0xff, plan->n_rows * sizeof **ends);
    for (uint32_t op = 0; op < plan->n_ops; op++)
        for (uint32_t i = plan->op[op].release_at;
             i < plan->op[op + 1].release_at; i++)
            (*ends)[plan->release[i]] = op;
    return MS_OK;
}

static ms_err take_columns(readers *r, ms_arena *arena, ms_fault *fault)
{
    size_t n = r->result->plan->n_rows;
    r->next = ms_arena_take_raw(arena, n, sizeof *r->next);
    r->next_back = ms_arena_take_raw(arena, n, sizeof *r->next_back);
    r->held = ms_arena_take(arena, r->result->graph->n_storages, 1);
    if (r->next == NULL || r->next_back == NULL || r->held == NULL)
        return ms_fail_nomem(fault);
    memset(r->next, 0xff, n * sizeof *r->next);
    memset(r->next_back, 0xff, n * sizeof *r->next_back);
    return ms_why_ends(r->result->plan, arena, &r->end, fault);
}

static void find_uses(readers *r)
{
    const ms_plan *plan = r->result->plan;
    for (uint32_t op = r->instant->now; op < plan->n_ops; op++) {
        bool forward =
            pass_of(r, op) == MS_FORWARD || pass_of(r, op) == MS_LOSS;
        for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++) {
            uint32_t row = plan->use[i];
            if (plan->row[row].op == op)
                continue; /* it makes the row, and does not read it */
            if (r->next[row] == MS_NONE)
                r->next[row] = op;
            if (r->next_back[row] == MS_NONE && !forward)
                r->next_back[row] = op;
        }
    }
}

static void find_held(readers *r)
{
    const ms_program *program = r->result->program;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        bool holds = call->verb == MS_HOLD ||
                     (call->verb == MS_RUN && call->run.pass == MS_FORWARD);
        if (!holds || call->set == MS_ALL || call->set == MS_NOTHING)
            continue;
        for (uint32_t k = program->set_at[call->set];
             k < program->set_at[call->set + 1]; k++)
            r->held[program->set_item[k]] = 1;
    }
}

/* ---- the reasons --------------------------------------------------------- */

static ms_fate fate(ms_why why, uint32_t reader)
{
    return (ms_fate){.why = (uint8_t)why, .reader = reader};
}

/* The reason of a row that outlives the step, or MS_N_WHYS. */
static ms_why lasting(const readers *r, uint32_t row)
{
    const ms_row *it = &r->result->plan->row[row];
    bool start = pass_of(r, it->op) == MS_START;
    switch ((ms_category)it->category) {
    case MS_PARAMETERS:
        return r->result->graph->storage_buffer[it->storage] ? MS_WHY_BUFFER
                                                             : MS_WHY_PARAMETER;
    case MS_OPTIMIZER_STATE:
        /* in a first step it is made by the step */
        return start ? MS_WHY_STATE : MS_N_WHYS;
    case MS_INPUTS:
        return start ? MS_WHY_INPUT : MS_N_WHYS;
    case MS_WORKSPACE:
        return start ? MS_WHY_LIBRARY : MS_N_WHYS;
    case MS_GRADIENTS:
        if (r->end[row] != MS_NONE)
            return MS_N_WHYS;
        if (r->next[row] == MS_NONE)
            return MS_WHY_GRAD;
        return pass_of(r, r->next[row]) == MS_STEP ? MS_WHY_GRAD_STEP
                                                   : MS_WHY_GRAD_MORE;
    default:
        return MS_N_WHYS;
    }
}

static ms_fate saved(const readers *r, uint32_t row)
{
    uint32_t reader = r->next_back[row];
    if (reader == MS_NONE)
        return fate(MS_WHY_SAVED_UNREAD, r->end[row]);
    return fate(pass_of(r, reader) == MS_RECOMPUTE ? MS_WHY_SAVED_AGAIN
                                                   : MS_WHY_SAVED,
                reader);
}

/* Is it the input of a checkpoint, as the first run of the segment made it? */
static bool is_held(const readers *r, uint32_t row)
{
    const ms_row *it = &r->result->plan->row[row];
    uint8_t pass = pass_of(r, it->op);
    return (pass == MS_FORWARD || pass == MS_LOSS) && r->held[it->storage];
}

/* The reason of a row that nothing reads any more. */
static ms_fate unread(const readers *r, uint32_t row)
{
    const ms_graph *graph = r->result->graph;
    const ms_row *it = &r->result->plan->row[row];
    uint32_t end = r->end[row];
    if (it->op == r->instant->now && end == it->op)
        return fate(it->category == MS_WORKSPACE ? MS_WHY_WORKSPACE
                                                 : MS_WHY_MADE,
                    MS_NONE);
    if (is_held(r, row) && end != MS_NONE)
        return fate(MS_WHY_HELD_UNREAD, end);
    for (uint32_t i = 0; i < graph->n_kept; i++)
        if (graph->kept[i] == it->storage)
            return fate(i + 1 == graph->n_kept ? MS_WHY_LOSS : MS_WHY_OUTPUT,
                        MS_NONE);
    return end == MS_NONE ? fate(MS_WHY_KEPT, MS_NONE)
                          : fate(MS_WHY_VARIABLE, end);
}

static ms_fate fate_of(const readers *r, uint32_t row)
{
    ms_why why = lasting(r, row);
    if (why != MS_N_WHYS)
        return fate(why, ms_why_reads((uint8_t)why) ? r->next[row] : MS_NONE);
    uint32_t back = r->next_back[row];
    bool stays = r->result->plan->row[row].saved;
    if (back != MS_NONE && is_held(r, row) &&
        (!stays || pass_of(r, back) == MS_RECOMPUTE))
        return fate(MS_WHY_HELD, back);
    if (stays)
        return saved(r, row);
    if (r->next[row] == MS_NONE)
        return unread(r, row);
    return fate(r->next[row] == r->instant->now &&
                        r->instant->now == r->instant->op
                    ? MS_WHY_READ_NOW
                    : MS_WHY_READ,
                r->next[row]);
}

ms_err ms_why_find(const ms_result *result, const ms_instant *instant,
                   const uint32_t *alive, uint32_t n, ms_arena *arena,
                   ms_fate **fates, ms_fault *fault)
{
    readers r = {.result = result, .instant = instant};
    MS_TRY(take_columns(&r, arena, fault));
    *fates = ms_arena_take_raw(arena, n, sizeof **fates);
    if (*fates == NULL)
        return ms_fail_nomem(fault);
    find_uses(&r);
    find_held(&r);
    for (uint32_t i = 0; i < n; i++)
        (*fates)[i] = fate_of(&r, alive[i]);
    return MS_OK;
}
