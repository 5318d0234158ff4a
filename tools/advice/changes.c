/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Puts changes into a job, and replays its step. */

#include "tools/advice/changes.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tools/job/allocator.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/terminal/quantity.h"

#include <string.h>

/* larger steps are replayed with one of their equal micro-batches */
#define WHOLE_OPS 50000u

/* ---- what is set already ------------------------------------------------- */

/* The value of "group.name"; "" where there is no such setting. */
static ms_label value_of(const ms_training *training, const char *key)
{
    ms_label value = {""};
    for (uint32_t row = 0; row < ms_training_n_fields; row++) {
        const char *group = ms_training_group(row);
        size_t length = strlen(group);
        if (strncmp(key, group, length) == 0 && key[length] == '.' &&
            strcmp(key + length + 1, ms_training_fields[row].name) == 0)
            ms_training_value(training, row, value.s, sizeof value.s);
    }
    return value;
}

static bool is_allocator(const struct ms_change_setting *set)
{
    return strcmp(set->key, "allocator") == 0;
}

/* Is "option:value" of PyTorch's allocator not yet among the job's options? */
static bool lacks_option(const ms_allocator *pool, const char *option)
{
    size_t length = strcspn(option, ":");
    if (pool == NULL || pool->exact || pool->heap.kind != MS_POOL_TORCH)
        return false;
    for (const char *at = pool->spec; *at != '\0'; at++)
        if (strncmp(at, option, length) == 0)
            return false;
    return true;
}

static bool changes_setting(const struct ms_change_setting *set,
                            const ms_job *job, const ms_result *now)
{
    if (set->key == NULL)
        return false;
    if (is_allocator(set))
        return lacks_option(job->allocator, set->value);
    return strcmp(value_of(&now->training, set->key).s, set->value) != 0;
}

/* ---- policies ------------------------------------------------------------ */

static bool is_named(const struct ms_spec_item *item, const char *words)
{
    size_t length = strcspn(words, ":");
    return strlen(ms_policy_family(item->policy)) == length &&
           strncmp(ms_policy_family(item->policy), words, length) == 0;
}

static bool is_share(const struct ms_spec_item *item)
{
    return ms_options_one_of("ddp|zero|fsdp", ms_policy_family(item->policy));
}

uint32_t ms_changes_replaced(const ms_change *row, const ms_spec *spec)
{
    bool shares = strcmp(row->slot, "share") == 0;
    for (uint32_t i = 0; i < spec->n; i++)
        if (shares ? is_share(&spec->items[i])
                   : is_named(&spec->items[i], row->policy))
            return i;
    return MS_NONE;
}

/* Can the row divide the states further? Only in a job whose ranks share
 * already: by a later stage of zero, or for ddp by torch's own ZeRO. */
static bool can_share(const ms_change *row, const ms_spec *spec)
{
    uint32_t at = ms_changes_replaced(row, spec);
    bool is_zero = strncmp(row->policy, "zero:", 5) == 0;
    if (at == MS_NONE)
        return false;
    const ms_policy_value *stage = ms_policy_given(spec, "zero", "stage");
    if (stage != NULL)
        return is_zero && row->policy[5] > '0' + stage->number;
    return strcmp(ms_policy_family(spec->items[at].policy), "ddp") == 0 &&
           strcmp(row->policy, "zero:3") != 0;
}

static bool changes_policy(const ms_change *row, const ms_job *job)
{
    if (strcmp(row->slot, "share") == 0)
        return can_share(row, &job->spec);
    /* What the user has written takes precedence over the table. */
    if (strcmp(row->slot, "swap") == 0 || strcmp(row->slot, "offload") == 0)
        for (uint32_t i = 0; i < job->spec.n; i++)
            if (ms_options_one_of("swap|offload|uvm",
                                  ms_policy_family(job->spec.items[i].policy)))
                return false;
    return true;
}

static bool is_when(const ms_change *row, const ms_training *training)
{
    bool none = row->words[0] == '!';
    ms_label value = value_of(training, row->when);
    return ms_options_one_of(row->words + none, value.s) != none;
}

bool ms_changes_apply_to(const ms_change *row, const ms_job *job,
                         const ms_result *now)
{
    if (row->when != NULL && !is_when(row, &now->training))
        return false;
    if (row->policy != NULL)
        return changes_policy(row, job);
    bool any = false;
    for (uint32_t i = 0; i < MS_CHANGE_SETTINGS; i++)
        any = any || changes_setting(&row->set[i], job, now);
    return any;
}

bool ms_changes_counts(const ms_change *row)
{
    return row->policy != NULL && strstr(row->policy, "%lld") != NULL;
}

/* ---- sets ---------------------------------------------------------------- */

void ms_changes_add(ms_changes *set, ms_change_use use)
{
    uint32_t i = 0;
    while (i < set->n && strcmp(set->use[i].row->slot, use.row->slot) != 0)
        i++;
    if (i == MS_CHANGES_MOST)
        return; /* the table has fewer slots than that */
    set->use[i] = use;
    set->n += i == set->n;
}

void ms_changes_drop(ms_changes *set, uint32_t i)
{
    for (set->n--; i < set->n; i++)
        set->use[i] = set->use[i + 1];
}

bool ms_changes_same(const ms_changes *a, const ms_changes *b)
{
    uint32_t i = 0;
    while (i < a->n && i < b->n && a->use[i].row == b->use[i].row &&
           a->use[i].count == b->use[i].count)
        i++;
    return i == a->n && i == b->n;
}

ms_costs ms_changes_costs(const ms_changes *set)
{
    ms_costs costs = MS_COSTS_NOTHING;
    for (uint32_t i = 0; i < set->n; i++)
        if (set->use[i].row->costs > costs)
            costs = set->use[i].row->costs;
    return costs;
}

/* ---- the job ------------------------------------------------------------- */

/* The row's policy with its count, and with dp= where --gpus does not give the
 * number of ranks. */
const char *ms_changes_policy(ms_change_use use, const ms_job *job,
                              const ms_result *now, ms_arena *arena)
{
    const char *pattern = use.row->policy, *at = strstr(pattern, "%lld");
    if (at != NULL)
        return ms_arena_format(arena, "%.*s%lld%s", (int)(at - pattern),
                               pattern, (long long)use.count, at + 4);
    if (strcmp(use.row->slot, "share") == 0 && job->gpus <= 1)
        return ms_arena_format(arena, "%s%cdp=%u", pattern,
                               strchr(pattern, ':') != NULL ? ',' : ':',
                               now->shape.data_ranks);
    return pattern;
}

static void set_stage(struct ms_spec_item *item, int64_t stage)
{
    for (uint32_t p = 0; p < item->policy->n_params; p++)
        if (strcmp(item->policy->params[p].name, "stage") == 0) {
            item->values[p].number = stage;
            item->values[p].given = true;
        }
}

static ms_err put_policy(ms_change_use use, const ms_job *job,
                         const ms_result *now, ms_arena *arena, ms_spec *spec,
                         ms_fault *fault)
{
    uint32_t at = ms_changes_replaced(use.row, spec);
    const char *words = ms_changes_policy(use, job, now, arena);
    if (words == NULL)
        return ms_fail_nomem(fault);
    if (at != MS_NONE && strcmp(use.row->slot, "share") == 0 &&
        is_named(&spec->items[at], words)) {
        set_stage(&spec->items[at], use.row->policy[5] - '0');
        return MS_OK;
    }
    for (uint32_t i = at; i != MS_NONE && i + 1 < spec->n; i++)
        spec->items[i] = spec->items[i + 1];
    spec->n -= at != MS_NONE;
    return ms_spec_parse(words, arena, spec, fault);
}

const char *ms_changes_value(const struct ms_change_setting *set,
                             const ms_job *job, ms_arena *arena)
{
    return is_allocator(set) ? ms_arena_format(arena, "%s,%s",
                                               job->allocator->spec, set->value)
                             : set->value;
}

ms_err ms_changes_job(const ms_changes *set, const ms_job *job,
                      const ms_result *now, ms_arena *arena, ms_job *changed,
                      ms_fault *fault)
{
    *changed = *job;
    for (uint32_t i = 0; i < set->n; i++) {
        const ms_change *row = set->use[i].row;
        if (row->policy != NULL)
            MS_TRY(put_policy(set->use[i], job, now, arena, &changed->spec,
                              fault));
        for (uint32_t k = 0; k < MS_CHANGE_SETTINGS; k++) {
            if (!changes_setting(&row->set[k], job, now))
                continue;
            const char *value = ms_changes_value(&row->set[k], job, arena);
            if (value == NULL)
                return ms_fail_nomem(fault);
            MS_TRY(
                ms_settings_put(changed, row->set[k].key, value, arena, fault));
        }
    }
    if (changed->usual)
        ms_defaultpool_pool(changed); /* the default pool depends on the job */
    return MS_OK;
}

/* Would the model be lowered as it was for `now`? Both have its model and its
 * device, and lowering looks at nothing else. */
static bool has_graph(const ms_result *now, const ms_result *tried)
{
    return now->graph != NULL &&
           ms_lowerings_are_same(&now->training, &now->shape, tried);
}

ms_err ms_changes_step(const ms_job *changed, bool exact, const ms_result *now,
                       ms_lowerings *kept, ms_arena *arena, ms_result *tried,
                       ms_fault *fault)
{
    ms_job job = *changed;
    *tried = *now;
    ms_jobway_settings(changed, &tried->training);
    MS_TRY(ms_resolve_training(&tried->training, &tried->model, fault));
    /* with lengths each step has a graph of its own */
    if (exact && job.lengths == NULL) {
        job.allocator = NULL;
        job.steps = 0;
        job.whole_ops = WHOLE_OPS;
    }
    job.brief = true;
    job.addresses = false;
    MS_TRY(ms_jobway_shape(&job, tried, fault));
    if (!has_graph(now, tried) && kept != NULL)
        MS_TRY(ms_lowerings_graph(kept, &job, tried, fault));
    else if (!has_graph(now, tried))
        MS_TRY(ms_jobway_graph(&job, arena, tried, fault));
    return ms_jobway_step(&job, arena, tried, fault);
}
