/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What memsim compare puts side by side: of each model the product of the
 * policies and the grid, in the order given. */

#include "graphs/json/json.h"
#include "graphs/model.h"
#include "plots/record/record.h"
#include "policies/common/policy.h"
#include "sim/base/files.h"
#include "sim/graph.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tools/cli/commands.h"
#include "tools/cli/compare/compare.h"
#include "tools/job/allocator.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/job/settings_table.h"
#include "tools/library/runrecord.h"
#include "tools/options/numberfile.h"
#include "tools/options/options.h"
#include "tools/results/results.h"
#include "tools/terminal/quantity.h"
#include "tools/words/words.h"

#include <stdlib.h>
#include <string.h>

typedef struct maker {
    const ms_hall *hall;
    ms_points *points;
    ms_comparison *c;
    ms_fault *fault;
    uint32_t n_models;
    ms_job base; /* what all have */
    const char **policies;
    uint32_t n_policies;
    const char **allocators;
    uint32_t n_allocators;
    ms_named *named;
    uint32_t n_named;
    uint32_t needs;
    ms_quote input; /* standard input, once it was read */
} maker;

/* ---- names --------------------------------------------------------------- */

static void put_part(ms_text *name, const char *key, const char *value)
{
    ms_text_add(name, "%s", name->length > 0 ? ", " : "");
    if (key != NULL)
        ms_text_add(name, "%s=", key);
    ms_text_put(name, value, strlen(value));
}

static void put_axis(const ms_grid *grid, uint64_t point, uint32_t a,
                     ms_text *name)
{
    const char *key = grid->axes[a].key;
    const char *value = ms_grid_value(grid, point, a);
    const ms_setting *row = ms_settings_table_find(key);
    if (row != NULL && row->is_bare)
        put_part(name, NULL, value);
    else if (row != NULL && row->type == MS_SETTING_BYTES)
        put_part(name, key, ms_quantity_size(strtoull(value, NULL, 10)).s);
    else
        put_part(name, strncmp(key, "training.", 9) == 0 ? key + 9 : key,
                 value);
}

/* The points of a grid that pass the filters. */
typedef struct kept {
    const ms_grid *grid;
    const ms_named *named; /* of which variant; NULL: none is named */
    uint32_t n;
    uint64_t points[MS_VARIANTS_MOST];
} kept;

static bool varies(const kept *all, uint32_t axis)
{
    const char *first = ms_grid_value(all->grid, all->points[0], axis);
    for (uint32_t i = 1; i < all->n; i++)
        if (strcmp(ms_grid_value(all->grid, all->points[i], axis), first) != 0)
            return true;
    return false;
}

static bool is_pool(const kept *all, uint32_t axis)
{
    return strcmp(all->grid->axes[axis].key, "allocator") == 0;
}

/* Of what varies only; pool: with the allocator. */
static void put_parts(const maker *m, const kept *all, uint64_t point,
                      const char *policy, const ms_variant *variant, bool pool,
                      ms_text *name)
{
    if (all->named != NULL)
        put_part(name, NULL, all->named->name);
    if (m->n_models > 1 || m->n_models < m->hall->arguments->n_operands)
        put_part(name, NULL, variant->job.model);
    if (m->n_policies > 1)
        put_part(name, NULL, policy);
    if (m->n_allocators > 1 && pool)
        put_part(name, NULL, variant->allocator);
    for (uint32_t a = 0; a < all->grid->n_axes; a++)
        if (varies(all, a) && (pool || !is_pool(all, a)))
            put_axis(all->grid, point, a, name);
}

static ms_err name_variant(const maker *m, const kept *all, uint64_t point,
                           const ms_job *base, ms_variant *variant)
{
    ms_arena *keep = m->hall->keep;
    ms_text name = {.arena = keep}, beside = name;
    const char *policy = ms_spec_print(&base->spec, keep);
    const ms_allocator *allocator = variant->job.allocator;
    if (policy == NULL)
        return ms_fail_nomem(m->fault);
    variant->allocator = ms_allocator_name(allocator);
    put_parts(m, all, point, policy, variant, true, &name);
    put_parts(m, all, point, policy, variant, false, &beside);
    if (name.length == 0)
        put_part(&name, NULL, policy);
    variant->name = name.bytes;
    variant->beside = beside.length > 0 ? beside.bytes : "";
    return name.failed || beside.failed ? ms_fail_nomem(m->fault) : MS_OK;
}

/* ---- from the command line ----------------------------------------------- */

static ms_err check_number(uint64_t n, ms_fault *fault)
{
    if (n <= MS_VARIANTS_MOST)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, NULL,
                   "leave some out; \"memsim sweep\" simulates any number, a "
                   "row each",
                   "\"memsim compare\" puts at most %u variants side by side",
                   MS_VARIANTS_MOST);
}

static ms_err add_points(maker *m, const kept *all, const ms_job *base)
{
    ms_comparison *c = m->c;
    ms_arena *keep = m->hall->keep;
    for (uint32_t i = 0; i < all->n; i++) {
        ms_variant *variant = &c->variants[c->n++];
        uint64_t point = all->points[i];
        *variant = (ms_variant){0};
        MS_TRY(
            ms_grid_job(all->grid, point, base, keep, &variant->job, m->fault));
        ms_defaultpool_pool(&variant->job);
        variant->policy = ms_settings_policy(&variant->job, keep);
        if (variant->policy == NULL)
            return ms_fail_nomem(m->fault);
        MS_TRY(name_variant(m, all, point, base, variant));
    }
    return MS_OK;
}

static ms_err add_grid(maker *m, const ms_named *named, const ms_job *base)
{
    const ms_arguments *arguments = m->hall->arguments;
    ms_arena *keep = m->hall->keep;
    ms_grid grid;
    ms_filters filters;
    kept all = {.grid = &grid, .named = named};
    MS_TRY(ms_grid_read(arguments, base, keep, &grid, m->fault));
    if (named != NULL)
        MS_TRY(ms_variants_named_check(named, &grid, m->n_allocators > 0,
                                       m->fault));
    MS_TRY(ms_filter_read(arguments, &grid, base, keep, &filters, m->fault));
    for (uint64_t point = 0; point < grid.n_points; point++) {
        if (!ms_filter_holds(&filters, &grid, point))
            continue;
        MS_TRY(check_number((uint64_t)m->c->n + all.n + 1, m->fault));
        all.points[all.n++] = point;
    }
    return add_points(m, &all, base);
}

static ms_err add_named(maker *m, const ms_named *named, const ms_job *job)
{
    ms_arena *keep = m->hall->keep;
    ms_job base = *job;
    if (named != NULL)
        MS_TRY(ms_variants_named_put(named, keep, &base, m->fault));
    for (uint32_t a = 0; a < m->n_allocators; a++) {
        MS_TRY(ms_settings_put(&base, "allocator", m->allocators[a], keep,
                               m->fault));
        MS_TRY(add_grid(m, named, &base));
    }
    return m->n_allocators > 0 ? MS_OK : add_grid(m, named, &base);
}

static ms_err add_policy(maker *m, const char *model, const char *policy)
{
    ms_job base = m->base;
    base.model = model;
    if (policy != NULL)
        MS_TRY(
            ms_numberfile_parse(policy, m->hall->keep, &base.spec, m->fault));
    for (uint32_t i = 0; i < m->n_named; i++)
        MS_TRY(add_named(m, &m->named[i], &base));
    return m->n_named > 0 ? MS_OK : add_named(m, NULL, &base);
}

/* A word that is no model ends the command, as one that is no option does. */
static ms_err add_model(maker *m, const char *name)
{
    ms_model model;
    ms_job job = m->base;
    job.model = name;
    MS_TRY(ms_points_model(m->points, &job, &model, m->fault));
    for (uint32_t p = 0; p < m->n_policies; p++)
        MS_TRY(add_policy(m, name, m->policies[p]));
    return m->n_policies > 0 ? MS_OK : add_policy(m, name, NULL);
}

/* "A;B": allocators have commas. */
static ms_err add_allocators(maker *m, const char *list)
{
    for (bool more = true; more;) {
        size_t length = strcspn(list, ";");
        const char *spec = ms_arena_text(m->hall->keep, list, length);
        if (spec == NULL)
            return ms_fail_nomem(m->fault);
        if (m->n_allocators == MS_VARIANTS_MOST)
            return check_number(MS_VARIANTS_MOST + 1, m->fault);
        m->allocators[m->n_allocators++] = spec;
        more = list[length] == ';' && list[length + 1] != '\0';
        list += length + 1;
    }
    return MS_OK;
}

/* Of one option or the other; a grid says it for itself. */
static ms_err read_allocators(maker *m)
{
    const ms_arguments *arguments = m->hall->arguments;
    const ms_option *before = NULL;
    m->allocators =
        ms_arena_take(m->hall->keep, MS_VARIANTS_MOST, sizeof *m->allocators);
    if (m->allocators == NULL)
        return ms_fail_nomem(m->fault);
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        const ms_given *given = &arguments->given[i];
        ms_option_id id = given->option->id;
        bool grid = id == MS_OPTION_GRID &&
                    strncmp(given->value, "allocator=", 10) == 0;
        if (id != MS_OPTION_ALLOCATOR && id != MS_OPTION_ALLOCATORS && !grid)
            continue;
        if (before != NULL && before->id != id)
            return ms_fail(m->fault, MS_EUSAGE, NULL,
                           "leave one of the two "
                           "out",
                           "options \"--%s\" and \"--%s\" both say what the "
                           "pools are",
                           before->name, given->option->name);
        before = given->option;
        if (!grid)
            MS_TRY(add_allocators(m, given->value));
    }
    return MS_OK;
}

static ms_err read_named(maker *m)
{
    const ms_arguments *arguments = m->hall->arguments;
    ms_arena *keep = m->hall->keep;
    m->named = ms_arena_take(keep, arguments->n_given + 1, sizeof *m->named);
    if (m->named == NULL)
        return ms_fail_nomem(m->fault);
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        ms_named *named = &m->named[m->n_named];
        if (arguments->given[i].option->id != MS_OPTION_VARIANT)
            continue;
        MS_TRY(ms_variants_named_read(arguments->given[i].value, keep, named,
                                      m->fault));
        for (uint32_t j = 0; j < m->n_named; j++)
            if (strcmp(m->named[j].name, named->name) == 0)
                return ms_fail(m->fault, MS_EUSAGE, "--variant",
                               "give each a name of its own",
                               "two variants are called \"%.60s\"",
                               named->name);
        m->n_named++;
    }
    return MS_OK;
}

static ms_err read_words(maker *m)
{
    const ms_arguments *arguments = m->hall->arguments;
    ms_arena *keep = m->hall->keep;
    m->c->variants = ms_arena_grow(keep, NULL, &m->c->capacity,
                                   MS_VARIANTS_MOST, sizeof *m->c->variants);
    m->policies =
        ms_arena_take(keep, arguments->n_given + 1, sizeof *m->policies);
    if (m->c->variants == NULL || m->policies == NULL)
        return ms_fail_nomem(m->fault);
    for (uint32_t i = 0; i < arguments->n_given; i++)
        if (arguments->given[i].option->id == MS_OPTION_POLICY)
            m->policies[m->n_policies++] = arguments->given[i].value;
    MS_TRY(read_allocators(m));
    MS_TRY(read_named(m));
    /* Each variant is checked when it is lowered. */
    return ms_settings_open(arguments, keep, &m->base, m->fault);
}

/* Options of a simulation cannot change saved results. */
static ms_err check_options(const maker *m)
{
    const ms_arguments *arguments = m->hall->arguments;
    for (uint32_t i = 0; i < arguments->n_given && m->n_models == 0; i++) {
        const ms_option *option = arguments->given[i].option;
        if (ms_settings_shapes(option->id) || option->id == MS_OPTION_GRID ||
            option->id == MS_OPTION_FILTER || option->id == MS_OPTION_VARIANT)
            return ms_fail(m->fault, MS_EUSAGE, NULL,
                           "leave it out, or name a model to simulate beside "
                           "the results",
                           "option \"--%s\" shapes what is simulated, and "
                           "these are saved results",
                           option->name);
    }
    return MS_OK;
}

static ms_err read_input(maker *m, bool *is_result)
{
    MS_TRY(ms_points_input(m->points, &m->input, m->fault));
    return ms_results_ours_text(&m->input, is_result, m->fault);
}

static ms_err look_at(maker *m, const char *operand, bool *is_result)
{
    return strcmp(operand, "-") == 0
               ? read_input(m, is_result)
               : ms_results_ours(operand, is_result, m->fault);
}

static ms_err add_results(maker *m, const char *operand)
{
    ms_quote text = m->input;
    char *bytes;
    if (strcmp(operand, "-") != 0) {
        text = (ms_quote){.name = operand};
        MS_TRY(ms_files_read(operand, MS_JSON_MAX_BYTES, m->hall->keep, &bytes,
                             &text.length, m->fault));
        text.bytes = bytes;
    }
    MS_TRY(ms_variants_read_text(&text, m->hall->keep, m->c, m->fault));
    return check_number(m->c->n, m->fault);
}

static ms_err read_operands(maker *m)
{
    const ms_arguments *arguments = m->hall->arguments;
    ms_arena *keep = m->hall->keep;
    uint32_t n = arguments->n_operands;
    bool *is_result = ms_arena_take(keep, n, sizeof *is_result);
    if (is_result == NULL)
        return ms_fail_nomem(m->fault);
    for (uint32_t i = 0; i < n; i++) {
        MS_TRY(look_at(m, arguments->operands[i], &is_result[i]));
        m->n_models += !is_result[i];
    }
    MS_TRY(check_options(m));
    for (uint32_t i = 0; i < n; i++) {
        const char *operand = arguments->operands[i];
        if (is_result[i])
            MS_TRY(add_results(m, operand));
        else
            MS_TRY(add_model(m, operand));
    }
    return ms_variants_read_names(keep, m->c, m->fault);
}

/* ---- simulated ----------------------------------------------------------- */

static ms_err set_words(ms_variant *variant, ms_arena *arena, ms_fault *fault)
{
    const ms_result *result = &variant->result;
    ms_text setup = {.arena = arena}, device = setup;
    ms_setupwords_put(result, "x", &setup);
    ms_devicewords_device(&variant->job, result->report, &device);
    variant->gpus = ms_shape_ranks(&result->shape);
    variant->work = (double)result->training.batch * result->shape.data_ranks;
    if (result->report->tokens_per_second >= 0.0)
        variant->work *= (double)result->training.sequence;
    variant->setup = setup.bytes;
    variant->device = device.bytes;
    return setup.failed || device.failed ? ms_fail_nomem(fault) : MS_OK;
}

static ms_err set_record(const maker *m, ms_variant *variant)
{
    const ms_result *result = &variant->result;
    if (m->needs & MS_VARIANTS_TIMELINE)
        return ms_runrecord_of(&variant->job, result, variant->policy,
                               m->hall->keep, &variant->record, m->fault);
    variant->record = (ms_record){.model = result->model.name,
                                  .device = variant->job.device->name,
                                  .policy = variant->policy,
                                  .parameters = result->graph->parameters,
                                  .report = *result->report};
    return MS_OK;
}

static ms_err set_json(ms_variant *variant, ms_arena *arena, ms_fault *fault)
{
    ms_text text = {.arena = arena};
    MS_TRY(ms_runrecord_json(&variant->job, &variant->result, variant->policy,
                             &text, fault));
    variant->json = text.bytes;
    variant->json_length = text.length;
    return text.failed ? ms_fail_nomem(fault) : MS_OK;
}

static ms_err set_refusal(ms_variant *variant, ms_arena *arena, ms_fault *fault)
{
    const ms_fault *own = &variant->fault;
    bool told = strstr(variant->policy, own->where) != NULL;
    variant->refused = ms_arena_format(arena, "%s%s%s", told ? "" : own->where,
                                       told ? "" : ": ", own->what);
    return variant->refused == NULL ? ms_fail_nomem(fault) : MS_OK;
}

/* A refusal of the job is a result of the comparison; a failure of this
 * machine, or a lack of host memory, ends it. */
static ms_err simulate(const maker *m, ms_variant *variant)
{
    ms_arena *keep = m->hall->keep;
    variant->fault = (ms_fault){.caret = -1};
    ms_err err = ms_points_step(m->points, &variant->seat, &variant->job,
                                &variant->result, &variant->fault);
    if (err == MS_EUSAGE || err == MS_EINPUT || err == MS_EINFEASIBLE)
        return set_refusal(variant, keep, m->fault);
    if (err != MS_OK) {
        if (m->fault->err == MS_OK)
            *m->fault = variant->fault;
        return err;
    }
    ms_defaultpool_settle(&variant->result, &variant->job);
    if (variant->job.allocator == NULL)
        variant->allocator = "exact";
    MS_TRY(set_record(m, variant));
    MS_TRY(set_words(variant, keep, m->fault));
    return m->needs & MS_VARIANTS_JSON ? set_json(variant, keep, m->fault)
                                       : MS_OK;
}

const char *ms_variants_status(const ms_variant *variant)
{
    if (variant->refused == NULL)
        return ms_names_status[variant->record.report.status];
    return variant->fault.err == MS_EINFEASIBLE ? ms_names_status[MS_INFEASIBLE]
                                                : "refused";
}

ms_err ms_variants_base(ms_comparison *c, ms_fault *fault)
{
    for (c->base = 0; c->base < c->n; c->base++)
        if (c->variants[c->base].refused == NULL)
            return MS_OK;
    *fault = c->variants[0].fault;
    return fault->err;
}

/* ---- all of it ----------------------------------------------------------- */

ms_err ms_variants_read(const ms_hall *hall, ms_points *points,
                        ms_comparison *comparison, ms_fault *fault)
{
    maker m = {.hall = hall, .points = points, .c = comparison, .fault = fault};
    MS_TRY(read_words(&m));
    MS_TRY(read_operands(&m));
    return ms_variants_named_label(hall->arguments, comparison, fault);
}

ms_err ms_variants_fill(const ms_hall *hall, ms_points *points, uint32_t needs,
                        ms_comparison *comparison, ms_fault *fault)
{
    const maker m = {.hall = hall,
                     .points = points,
                     .c = comparison,
                     .fault = fault,
                     .needs = needs};
    for (uint32_t i = 0; i < comparison->n; i++) {
        if (comparison->variants[i].file != NULL)
            continue;
        ms_job *job = &comparison->variants[i].job;
        job->uses = (needs & MS_VARIANTS_TENSORS) != 0;
        job->addresses = (needs & MS_VARIANTS_ADDRESSES) != 0 ||
                         ((needs & MS_VARIANTS_JSON) != 0 && !job->usual);
        MS_TRY(simulate(&m, &comparison->variants[i]));
    }
    MS_TRY(ms_variants_named_differ(comparison, hall->keep, fault));
    return ms_variants_base(comparison, fault);
}

void ms_variants_close(ms_points *points, ms_comparison *comparison)
{
    for (uint32_t i = 0; i < comparison->n; i++)
        ms_points_leave(points, &comparison->variants[i].seat);
}
