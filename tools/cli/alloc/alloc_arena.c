/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim alloc --allocator arena: plans all buffers of a trace into one, in
 * advance. */

#include "tools/cli/alloc/alloc_arena.h"
#include "plots/plots.h"
#include "sim/base/size.h"
#include "tools/cli/commands.h"
#include "tools/job/outputs.h"
#include "tools/options/options.h"
#include "tools/terminal/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHERE "--allocator"
#define NS_PER_S UINT64_C(1000000000)
#define MOST_SECONDS 1000000u

/* ---- "arena,order=exact,capacity=1MiB" ----------------------------------- */

static ms_err read_steps(ms_alloc_plan *plan, const char *value,
                         ms_fault *fault)
{
    char *end = NULL;
    if (*value >= '0' && *value <= '9' && strlen(value) < 16)
        plan->most_steps = strtoull(value, &end, 10);
    if (end == NULL || *end != '\0' || plan->most_steps == 0)
        return ms_fail(fault, MS_EUSAGE, WHERE, MS_ALLOCATOR_HINT,
                       "steps: expected a number over 0, not \"%.80s\"", value);
    return MS_OK;
}

static ms_err read_seconds(ms_alloc_plan *plan, const char *value,
                           ms_fault *fault)
{
    ms_decimal number;
    if (!ms_size_decimal(value, &number) || *number.end != '\0' ||
        number.whole > MOST_SECONDS ||
        !ms_size_whole(&number, NS_PER_S, &plan->most_ns) || plan->most_ns == 0)
        return ms_fail(fault, MS_EUSAGE, WHERE, MS_ALLOCATOR_HINT,
                       "seconds: expected a number over 0, up to %u, not "
                       "\"%.80s\"",
                       MOST_SECONDS, value);
    return MS_OK;
}

static ms_err read_capacity(ms_alloc_plan *plan, const char *value,
                            ms_fault *fault)
{
    MS_TRY(ms_size_bytes(value, "capacity", &plan->capacity_bytes, fault));
    return plan->capacity_bytes > 0 &&
                   plan->capacity_bytes <= MS_PLACEMENT_MOST_BYTES
               ? MS_OK
               : ms_fail(fault, MS_EUSAGE, WHERE, MS_ALLOCATOR_HINT,
                         "capacity: expected 1 to 2^62 bytes, not \"%.80s\"",
                         value);
}

static ms_err read_order(ms_alloc_plan *plan, const char *value,
                         ms_fault *fault)
{
    for (uint32_t order = 0; order < MS_ALLOC_N_ORDERS; order++)
        if (strcmp(value, ms_alloc_plans_order(order).name) == 0) {
            plan->order = order;
            return MS_OK;
        }
    return ms_fail(fault, MS_EUSAGE, WHERE, "\"memsim help traces\" lists them",
                   "unknown order \"%.80s\"", value);
}

static const struct {
    const char *key;
    ms_err (*read)(ms_alloc_plan *plan, const char *value, ms_fault *fault);
} parts[] = {{"order", read_order},
             {"capacity", read_capacity},
             {"steps", read_steps},
             {"seconds", read_seconds}};

static ms_err read_part(ms_alloc_plan *plan, const char *part, ms_fault *fault)
{
    const char *value = strchr(part, '=');
    size_t length = value != NULL ? (size_t)(value - part) : 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strlen(parts[i].key) == length &&
            memcmp(parts[i].key, part, length) == 0)
            return parts[i].read(plan, value + 1, fault);
    return ms_fail(fault, MS_EUSAGE, WHERE, MS_ALLOCATOR_HINT,
                   "arena has order=, capacity=, steps= and seconds=, not "
                   "\"%.80s\"",
                   part);
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
        (plan->capacity_bytes > 0 || plan->most_steps > 0 || plan->most_ns > 0))
        return ms_fail(fault, MS_EUSAGE, WHERE,
                       "add order=exact, or leave them out",
                       "capacity, steps and seconds are for order=exact");
    if (plan->most_steps == 0)
        plan->most_steps = plan->most_ns > 0 ? UINT64_MAX : MS_ALLOC_MOST_STEPS;
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

/* ---- the command --------------------------------------------------------- */

static ms_err read_plans(const ms_arguments *arguments, ms_alloc_arena *run,
                         ms_arena *arena, ms_fault *fault)
{
    for (uint32_t i = 0; i < arguments->n_given; i++) {
        if (arguments->given[i].option->id != MS_OPTION_ALLOCATOR)
            continue;
        if (run->n_plans == MS_ALLOC_MOST_POOLS)
            return ms_fail(fault, MS_EUSAGE, WHERE,
                           "run it again for the others",
                           "more than %u allocators", MS_ALLOC_MOST_POOLS);
        MS_TRY(read_spec(&run->plans[run->n_plans++], arguments->given[i].value,
                         arena, fault));
    }
    return MS_OK;
}

/* Also refuses options that have no meaning for a static plan. */
static ms_err check_outputs(const ms_hall *hall, const ms_alloc_arena *run,
                            ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    ms_picture figure;
    if (ms_options_value(arguments, MS_OPTION_LEAKS) != NULL)
        return ms_fail(fault, MS_EUSAGE, "--leaks", "leave one of the two out",
                       "a static plan has no successive steps");
    if (ms_options_value(arguments, MS_OPTION_MEMORY) != NULL)
        return ms_fail(
            fault, MS_EUSAGE, "--memory",
            "arena,order=exact,capacity=SIZE limits the plan itself",
            "a static plan is made for no device, so that memory has no limit");
    MS_TRY(ms_alloc_outputs_check(hall, run->n_plans, &figure, fault));
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
    ms_alloc_plans_csv(run, &text);
    if (text.failed)
        return ms_fail_nomem(fault);
    MS_TRY(ms_output_write(path, text.bytes, text.length, fault));
    if (!ms_outputs_is_stdout(path) &&
        ms_options_value(hall->arguments, MS_OPTION_QUIET) == NULL)
        ms_complain_note("wrote", path);
    return MS_OK;
}

/* Fails where an order found no plan. It runs last, so that everything else
 * is written by then. */
static ms_err check_found(const ms_alloc_arena *run, ms_fault *fault)
{
    for (uint32_t i = 0; i < run->n_plans; i++) {
        const ms_alloc_plan *plan = &run->plans[i];
        char hint[sizeof fault->hint];
        if (plan->offsets != NULL)
            continue;
        bool none = plan->floor_bytes > plan->capacity_bytes;
        snprintf(hint, sizeof hint,
                 "the lowest known plan has %llu bytes (order=%s), and none "
                 "has less than %llu%s",
                 (unsigned long long)plan->known_bytes,
                 ms_alloc_plans_order(plan->known_by).name,
                 (unsigned long long)plan->floor_bytes,
                 none ? "" : "\nsteps=N or seconds=S to search for longer");
        return ms_fail(fault, MS_EINFEASIBLE, run->name, hint,
                       none ? "\"%.80s\": there is no such plan"
                            : "\"%.80s\": no plan was found within the limits "
                              "of the search",
                       plan->spec);
    }
    return MS_OK;
}

static ms_err write_all(const ms_alloc_arena *run, const ms_hall *hall,
                        ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *csv = ms_options_value(arguments, MS_OPTION_CSV);
    bool quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL;
    ms_text text = {.arena = hall->trial};
    ms_arena_reset(hall->trial);
    if (csv != NULL && run->plans[0].offsets != NULL)
        MS_TRY(write_csv(run, csv, hall, fault));
    if (ms_options_value(arguments, MS_OPTION_JSON) != NULL)
        ms_alloc_plans_json(run, &text);
    else if (!ms_outputs_is_stdout(csv) && !quiet)
        ms_alloc_plans_text(
            run,
            ms_screen_style(1, ms_options_value(arguments, MS_OPTION_COLOR)),
            &text);
    return text.bytes != NULL || text.failed ? ms_screen_print(&text, fault)
                                             : MS_OK;
}

ms_err ms_alloc_arena_command(const ms_hall *hall, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    ms_alloc_arena run = {.name = ""};
    MS_TRY(read_plans(arguments, &run, hall->keep, fault));
    MS_TRY(check_outputs(hall, &run, fault));
    MS_TRY(ms_alloc_lives_read(arguments->operands[0], hall->keep, &run.name,
                               &run.list, fault));
    MS_TRY(ms_placement_bound(run.list.buffers, run.list.n, hall->trial,
                              &run.bound_bytes, fault));
    for (uint32_t i = 0; i < run.n_plans; i++)
        MS_TRY(ms_alloc_place(&run, &run.plans[i], hall, fault));
    MS_TRY(write_all(&run, hall, fault));
    return check_found(&run, fault);
}
