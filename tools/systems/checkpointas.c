/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/program.h"
#include "tools/systems/systems.h"

#include <string.h>

/* ---- what was chosen ----------------------------------------------------- */

/* A parameter of the policy, if it is given. */
static const ms_policy_value *value_of(const struct ms_spec_item *item,
                                       const char *name, const ms_param **param)
{
    for (uint32_t i = 0; i < item->policy->n_params; i++)
        if (strcmp(item->policy->params[i].name, name) == 0) {
            *param = &item->policy->params[i];
            return item->values[i].given ? &item->values[i] : NULL;
        }
    return NULL;
}

/* "core_attn mlp" for the bits of a parameter of WORDS. */
static const char *list_words(const ms_param *param, uint64_t bits,
                              ms_arena *arena)
{
    ms_text text = {.arena = arena};
    const char *at = param->words;
    for (uint32_t i = 0; *at != '\0'; i++) {
        size_t length = strcspn(at, "|");
        if (bits >> i & 1) {
            ms_text_add(&text, "%s", text.length > 0 ? " " : "");
            ms_text_put(&text, at, length);
        }
        at += length + (at[length] == '|');
    }
    return text.failed ? NULL : text.bytes;
}

static ms_err read_parts(const struct ms_spec_item *item, ms_arena *arena,
                         ms_checkpointas *choice, ms_fault *fault)
{
    const ms_param *param = NULL;
    const ms_policy_value *value;
    if ((value = value_of(item, "save", &param)) != NULL)
        choice->save = value->text;
    if ((value = value_of(item, "recompute", &param)) != NULL)
        choice->redo = value->text;
    choice->sac = value_of(item, "sac", &param) != NULL;
    choice->selective = value_of(item, "selective", &param) != NULL;
    if ((value = value_of(item, "variant", &param)) != NULL)
        choice->reentrant = value->number == 0;
    if ((value = value_of(item, "early_stop", &param)) != NULL)
        choice->to_the_end = value->number == 0;
    if ((value = value_of(item, "modules", &param)) != NULL) {
        choice->modules = list_words(param, (uint64_t)value->number, arena);
        if (choice->modules == NULL)
            return ms_fail_nomem(fault);
    }
    return MS_OK;
}

/* A choice by micro-batch, or of several ranks, is none of one function. */
static ms_err check_one(const struct ms_spec_item *item,
                        const ms_result *result, ms_fault *fault)
{
    const ms_param *param;
    const char *name = value_of(item, "partial", &param) != NULL ? "partial"
                       : value_of(item, "micro_batches", &param) != NULL
                           ? "micro_batches"
                           : NULL;
    if (name != NULL)
        return ms_fail(fault, MS_EUSAGE, "--dump checkpoints",
                       "leave it out: what is written is for all micro-batches",
                       "checkpoint:%s chooses by micro-batch, which none of "
                       "these systems' settings do",
                       name);
    if (result->program->n_ranks == 1)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "--dump checkpoints",
                   "leave pipeline out: stages take the settings of the model",
                   "the plan is of %u ranks, and settings are of one model",
                   (unsigned)result->program->n_ranks);
}

static ms_err read_item(const ms_job *job, const ms_result *result,
                        ms_arena *arena, ms_checkpointas *choice,
                        ms_fault *fault)
{
    for (uint32_t i = 0; i < job->spec.n; i++) {
        ms_spec alone = {.n = 1};
        alone.items[0] = job->spec.items[i];
        if (strcmp(alone.items[0].policy->name, "checkpoint") != 0)
            continue;
        choice->policy = ms_spec_print(&alone, arena);
        if (choice->policy == NULL)
            return ms_fail_nomem(fault);
        MS_TRY(check_one(&job->spec.items[i], result, fault));
        return read_parts(&job->spec.items[i], arena, choice, fault);
    }
    return ms_fail(fault, MS_EUSAGE, "--dump checkpoints",
                   "add -p checkpoint:full, for example",
                   "no policy chooses checkpoints");
}

/* ---- blocks -------------------------------------------------------------- */

static ms_err find_single(ms_arena *arena, ms_checkpointas *choice,
                          ms_fault *fault)
{
    const ms_sweeps *sweeps = &choice->sweeps;
    uint8_t *single = ms_arena_take(arena, sweeps->n_columns, 1);
    if (single == NULL)
        return ms_fail_nomem(fault);
    choice->all_single = true;
    for (uint32_t i = 0, c = 0; i < choice->tree.n; i++) {
        const ms_plantree *piece = &choice->tree.pieces[i];
        bool one = piece->again && piece->first == piece->last &&
                   sweeps->is_block[piece->first];
        choice->all_single &= !piece->again || one;
        for (; c <= piece->last; c++)
            if (sweeps->is_block[c])
                single[choice->n_blocks++] = one;
    }
    choice->is_single = single;
    return MS_OK;
}

/* ---- which system -------------------------------------------------------- */

static const struct {
    const char *name;
    ms_err (*write)(const ms_checkpointas *choice, ms_text *text,
                    ms_fault *fault);
} systems[] = {{"torch", ms_astorch_write},
               {"torchtitan", ms_astorchtitan_write},
               {"megatron", ms_asmegatron_write}};

ms_err ms_checkpointas_write(const ms_job *job, const ms_result *result,
                             const char *system, ms_arena *arena, ms_text *text,
                             ms_fault *fault)
{
    ms_checkpointas choice = {.model = result->model.name};
    MS_TRY(read_item(job, result, arena, &choice, fault));
    MS_TRY(ms_sweeps_find(result, arena, &choice.sweeps, fault));
    MS_TRY(ms_plantree_find(&choice.sweeps, arena, &choice.tree, fault));
    MS_TRY(find_single(arena, &choice, fault));
    size_t i = 0;
    while (strcmp(systems[i].name, system) != 0)
        i++;
    return systems[i].write(&choice, text, fault);
}
