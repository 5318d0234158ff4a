/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim alloc --allocator arena: one buffer for all, planned ahead. */

#include "tools/alloc_arena.h"

#include <stdlib.h>
#include <string.h>

#define WHERE "--allocator"

const char *ms_alloc_arena_order(uint32_t order)
{
    return order == MS_ALLOC_BEST    ? "best"
           : order == MS_ALLOC_EXACT ? "exact"
                                     : ms_placement_rows[order].name;
}

/* ---- "arena,order=exact,capacity=1MiB" ----------------------------------- */

static ms_err read_steps(const char *value, uint64_t *steps, ms_fault *fault)
{
    char *end = NULL;
    if (*value >= '0' && *value <= '9' && strlen(value) < 16)
        *steps = strtoull(value, &end, 10);
    if (end == NULL || *end != '\0' || *steps == 0)
        return ms_fail(fault, MS_EUSAGE, WHERE, NULL,
                       "steps: expected a number over 0, not \"%.80s\"", value);
    return MS_OK;
}

static ms_err read_order(const char *value, uint32_t *order, ms_fault *fault)
{
    for (*order = 0; *order < MS_ALLOC_N_ORDERS; ++*order)
        if (strcmp(value, ms_alloc_arena_order(*order)) == 0)
            return MS_OK;
    return ms_fail(fault, MS_EUSAGE, WHERE, "\"memsim help traces\" has them",
                   "unknown order \"%.80s\"", value);
}

static ms_err read_part(ms_alloc_plan *plan, const char *part, ms_fault *fault)
{
    const char *value = strchr(part, '=');
    size_t key = value != NULL ? (size_t)(value - part) : 0;
    if (key == 5 && memcmp(part, "order", key) == 0)
        return read_order(value + 1, &plan->order, fault);
    if (key == 5 && memcmp(part, "steps", key) == 0)
        return read_steps(value + 1, &plan->most_steps, fault);
    if (key != 8 || memcmp(part, "capacity", key) != 0)
        return ms_fail(fault, MS_EUSAGE, WHERE, NULL,
                       "arena has order=, capacity= and steps=, not \"%.80s\"",
                       part);
    MS_TRY(ms_size_bytes(value + 1, "capacity", &plan->capacity_bytes, fault));
    return plan->capacity_bytes > 0 &&
                   plan->capacity_bytes <= MS_PLACEMENT_MOST_BYTES
               ? MS_OK
               : ms_fail(fault, MS_EUSAGE, WHERE, NULL,
                         "capacity: expected 1 to 2^62 bytes");
}

static ms_err read_spec(ms_alloc_plan *plan, const char *spec, ms_arena *arena,
                        ms_fault *fault)
{
    size_t length = strcspn(spec, ",");
    *plan = (ms_alloc_plan){.spec = spec};
    if (length != 5 || memcmp(spec, "arena", length) != 0)
        return ms_fail(fault, MS_EUSAGE, WHERE, "run it once for each",
                       "arena plans ahead: it cannot stand beside \"%.80s\"",
                       spec);
    while (spec[length] == ',') {
        const char *from = spec + length + 1;
        size_t n = strcspn(from, ",");
        char *part = ms_arena_text(arena, from, n);
        if (part == NULL)
            return ms_fail_nomem(fault);
        MS_TRY(read_part(plan, part, fault));
        length += n + 1;
    }
    if (plan->order != MS_ALLOC_EXACT &&
        (plan->capacity_bytes > 0 || plan->most_steps > 0))
        return ms_fail(fault, MS_EUSAGE, WHERE, NULL,
                       "capacity and steps are for order=exact");
    if (plan->most_steps == 0)
        plan->most_steps = MS_ALLOC_MOST_STEPS;
    return MS_OK;
}

bool ms_alloc_arena_asked(const ms_arguments *arguments)
{
    const char *spec = NULL;
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        if (arguments->given[i].option->id != MS_OPTION_ALLOCATOR)
            continue;
        spec = arguments->given[i].value;
        if (strncmp(spec, "arena", 5) == 0 && strchr(",", spec[5]) != NULL)
            return true;
    }
    return false;
}

/* ---- plans --------------------------------------------------------------- */

/* The lowest plan of the rules in [from, to). */
static ms_err place_rules(ms_alloc_arena *run, ms_alloc_plan *plan,
                          uint32_t from, uint32_t to, const ms_hall *hall,
                          ms_fault *fault)
{
    for (uint32_t rule = from; rule < to; rule++) {
        uint64_t height, *offsets = ms_arena_take(hall->keep, run->list.n + 1,
                                                  sizeof *offsets);
        if (offsets == NULL)
            return ms_fail_nomem(fault);
        ms_arena_reset(hall->trial);
        MS_TRY(ms_placement_greedy(run->list.buffers, run->list.n,
                                   (ms_placement_rule)rule, hall->trial,
                                   offsets, &height, fault));
        if (plan->offsets != NULL && height >= plan->height)
            continue;
        plan->rule = rule;
        plan->height = height;
        plan->offsets = offsets;
    }
    plan->proven = plan->height == run->bound_bytes;
    return MS_OK;
}

/* A plan of the search within the capacity replaces what there is. */
static ms_err search(ms_alloc_arena *run, ms_alloc_plan *plan,
                     uint64_t capacity, uint64_t steps, const ms_hall *hall,
                     ms_placeexact_answer *answer, ms_fault *fault)
{
    ms_placeexact_result result;
    uint64_t *offsets =
        ms_arena_take(hall->keep, run->list.n + 1, sizeof *offsets);
    if (offsets == NULL)
        return ms_fail_nomem(fault);
    ms_arena_reset(hall->trial);
    MS_TRY(ms_placeexact_search(run->list.buffers, run->list.n, capacity, steps,
                                hall->trial, offsets, &result, fault));
    plan->n_steps += result.n_steps;
    *answer = result.answer;
    if (result.answer != MS_PLACEEXACT_FOUND)
        return MS_OK;
    plan->rule = MS_PLACEMENT_N_RULES;
    plan->offsets = offsets;
    plan->height = 0;
    for (uint32_t i = 0; i < run->list.n; i++)
        if (offsets[i] + run->list.buffers[i].bytes > plan->height)
            plan->height = offsets[i] + run->list.buffers[i].bytes;
    return MS_OK;
}

/* From the bound up, halving what is between it and the best greedy plan; each
 * search has an equal part of the steps. */
static ms_err search_lowest(ms_alloc_arena *run, ms_alloc_plan *plan,
                            const ms_hall *hall, ms_fault *fault)
{
    uint64_t low = run->bound_bytes, piece = plan->most_steps / 16 + 1;
    bool proven = true;
    MS_TRY(place_rules(run, plan, 0, MS_PLACEMENT_N_RULES, hall, fault));
    for (uint64_t at = low;
         low < plan->height && plan->n_steps < plan->most_steps;
         at = low + (plan->height - low) / 2) {
        uint64_t left = plan->most_steps - plan->n_steps;
        ms_placeexact_answer answer;
        MS_TRY(search(run, plan, at, left < piece ? left : piece, hall, &answer,
                      fault));
        if (answer != MS_PLACEEXACT_FOUND)
            low = at + 1;
        proven &= answer != MS_PLACEEXACT_UNKNOWN;
    }
    plan->proven = proven && low >= plan->height;
    return MS_OK;
}

static ms_err place(ms_alloc_arena *run, ms_alloc_plan *plan,
                    const ms_hall *hall, ms_fault *fault)
{
    ms_placeexact_answer answer;
    if (plan->order == MS_ALLOC_BEST)
        return place_rules(run, plan, 0, MS_PLACEMENT_N_RULES, hall, fault);
    if (plan->order != MS_ALLOC_EXACT)
        return place_rules(run, plan, plan->order, plan->order + 1, hall,
                           fault);
    if (plan->capacity_bytes == 0)
        return search_lowest(run, plan, hall, fault);
    MS_TRY(search(run, plan, plan->capacity_bytes, plan->most_steps, hall,
                  &answer, fault));
    plan->proven =
        answer == MS_PLACEEXACT_NONE ||
        (answer == MS_PLACEEXACT_FOUND && plan->height == run->bound_bytes);
    return MS_OK;
}

/* ---- the command --------------------------------------------------------- */

static ms_err read_plans(const ms_arguments *arguments, ms_alloc_arena *run,
                         ms_arena *arena, ms_fault *fault)
{
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        if (arguments->given[i].option->id != MS_OPTION_ALLOCATOR)
            continue;
        if (run->n_plans == MS_ALLOC_MOST_POOLS)
            return ms_fail(fault, MS_EUSAGE, WHERE, NULL,
                           "more than %u allocators", MS_ALLOC_MOST_POOLS);
        MS_TRY(read_spec(&run->plans[run->n_plans++], arguments->given[i].value,
                         arena, fault));
    }
    return MS_OK;
}

/* What a static plan has no use for, too. */
static ms_err check_outputs(const ms_hall *hall, const ms_alloc_arena *run,
                            ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    ms_picture figure;
    if (ms_options_value(arguments, MS_OPTION_LEAKS) != NULL)
        return ms_fail(fault, MS_EUSAGE, "--leaks", "leave one of the two out",
                       "a static plan has no successive steps");
    if (ms_options_value(arguments, MS_OPTION_MEMORY) != NULL)
        return ms_fail(fault, MS_EUSAGE, "--memory",
                       "arena,order=exact,capacity=SIZE",
                       "arena knows no device");
    MS_TRY(ms_alloc_check_outputs(hall, run->n_plans, &figure, fault));
    return figure.path == NULL
               ? MS_OK
               : ms_fail(fault, MS_EUSAGE, "--plot",
                         "--csv writes its offsets, for other tools to draw",
                         "of a static plan there is no figure");
}

static ms_err write_csv(const ms_alloc_arena *run, const char *path,
                        const ms_hall *hall, ms_fault *fault)
{
    ms_text text = {.arena = hall->trial};
    if (run->plans[0].offsets == NULL)
        return ms_fail(fault, MS_EINFEASIBLE, run->name, NULL,
                       "no plan was found within the capacity%s",
                       run->plans[0].proven ? ": there is none"
                                            : " and the steps");
    ms_alloc_plans_csv(run, &text);
    if (text.failed)
        return ms_fail_nomem(fault);
    MS_TRY(ms_output_write(path, text.bytes, text.length, fault));
    if (!ms_outputs_is_stdout(path) &&
        ms_options_value(hall->arguments, MS_OPTION_QUIET) == NULL)
        ms_complain_note("wrote", path);
    return MS_OK;
}

ms_err ms_alloc_arena_command(const ms_hall *hall, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *csv = ms_options_value(arguments, MS_OPTION_CSV);
    bool json = ms_options_value(arguments, MS_OPTION_JSON) != NULL;
    bool quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL;
    ms_alloc_arena run = {.name = ""};
    MS_TRY(read_plans(arguments, &run, hall->keep, fault));
    MS_TRY(check_outputs(hall, &run, fault));
    MS_TRY(ms_alloc_lives_read(arguments->operands[0], hall->keep, &run.name,
                               &run.list, fault));
    MS_TRY(ms_placement_bound(run.list.buffers, run.list.n, hall->trial,
                              &run.bound_bytes, fault));
    for (uint32_t i = 0; i < run.n_plans; i++)
        MS_TRY(place(&run, &run.plans[i], hall, fault));
    ms_arena_reset(hall->trial);
    if (csv != NULL)
        MS_TRY(write_csv(&run, csv, hall, fault));
    ms_text text = {.arena = hall->trial};
    if (json)
        ms_alloc_plans_json(&run, &text);
    else if (!ms_outputs_is_stdout(csv) && !quiet)
        ms_alloc_plans_text(
            &run,
            ms_screen_style(1, ms_options_value(arguments, MS_OPTION_COLOR)),
            &text);
    return text.bytes != NULL || text.failed ? ms_screen_print(&text, fault)
                                             : MS_OK;
}
