/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --at TIME|PHASE|OP: to a place among the events. */

#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/names.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/alive/alive.h"
#include "tools/job/result.h"
#include "tools/terminal/quantity.h"

#include <string.h>

/* ---- names of the plan --------------------------------------------------- */

const char *ms_instant_op(const ms_plan *plan, uint32_t op)
{
    uint32_t of = plan->op[op].of;
    return of == MS_NONE ? ms_names_pass[plan->op[op].pass]
                         : plan->graph->op_name[of];
}

const char *ms_instant_op_layer(const ms_plan *plan, uint32_t op)
{
    uint32_t of = plan->op[op].of;
    if (of == MS_NONE || plan->graph->op_layer[of] == MS_NONE)
        return NULL;
    const char *name = plan->graph->layer_name[plan->graph->op_layer[of]];
    /* the outermost module of an op graph has no name */
    return *name != '\0' ? name : NULL;
}

/* The ops that are looked for: of a phase, a name, a layer. What is not set
 * matches any. */
typedef struct wanted {
    uint8_t phase;    /* MS_N_PHASES: any */
    const char *name; /* NULL: any */
    const char *layer;
    bool any_layer;
} wanted;

typedef struct level {
    uint64_t bytes;
    uint32_t event, op; /* MS_NONE: none was found */
} level;

/* MS_N_PHASES for the start and for copies, which have no phase. */
static uint8_t phase_of(const ms_plan *plan, uint32_t op)
{
    uint8_t pass = plan->op[op].pass;
    return pass == MS_START || pass == MS_COPY
               ? (uint8_t)MS_N_PHASES
               : (uint8_t)ms_names_phase_of((ms_pass)pass);
}

static bool same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Is the op called that? "mm" stands for "aten::mm". */
static bool is_name(const char *op, const char *name)
{
    const char *colons = strstr(op, "::");
    return strcmp(op, name) == 0 ||
           (colons != NULL && strcmp(colons + 2, name) == 0);
}

static bool is_wanted(const ms_plan *plan, const wanted *what, uint32_t op)
{
    return (what->phase == MS_N_PHASES || phase_of(plan, op) == what->phase) &&
           (what->name == NULL ||
            is_name(ms_instant_op(plan, op), what->name)) &&
           (what->any_layer ||
            same(ms_instant_op_layer(plan, op), what->layer));
}

/* ---- levels -------------------------------------------------------------- */

static bool on_rank(const ms_result *result, uint32_t row)
{
    const ms_plan *plan = result->plan;
    return plan->row[row].pool == MS_DEVICE_POOL &&
           plan->op[plan->row[row].op].rank == result->report->told;
}

/* The level after each event, in bytes. */
static uint64_t *find_levels(const ms_result *result, ms_arena *arena)
{
    const ms_timeline *line = result->line;
    ms_eventwalk walk;
    ms_timeline_walk(line, 0, &walk);
    uint64_t bytes = 0;
    uint64_t *levels =
        ms_arena_take_raw(arena, line->n_events + 1, sizeof *levels);
    for (uint32_t e = 0; levels != NULL && e < line->n_events; e++) {
        const ms_event *event = ms_timeline_next(&walk);
        uint64_t size = result->plan->row[event->row].bytes;
        if (on_rank(result, event->row))
            bytes += event->op_act & 1u ? size : 0 - size;
        levels[e] = bytes;
    }
    return levels;
}

/* The number of events before the first one at t_ns or later. */
static uint32_t events_before(const ms_timeline *line, uint64_t t_ns)
{
    uint32_t low = 0, high = line->n_events;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ms_timeline_event(line, middle).t_ns < t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The number of events that are booked when op begins. */
static uint32_t events_at_start(const ms_result *result, uint32_t op)
{
    const ms_timeline *line = result->line;
    const ms_plan_op *at = &result->plan->op[op];
    if (!result->machine->book_device)
        return at->alloc_at + at->release_at;
    uint32_t n = events_before(line, line->start_ns[op]);
    while (n < line->n_events && line->events[n].t_ns == line->start_ns[op] &&
           (line->events[n].op_act & 1u) == 0)
        n++;
    return n;
}

static void see(level *best, uint64_t bytes, uint32_t event, uint32_t op)
{
    if (best->event == MS_NONE || bytes > best->bytes)
        *best = (level){bytes, event, op};
}

/* The highest level just after an allocation by an op that is wanted, or when
 * such an op begins (an op that allocates nothing has a level, too). */
static level highest(const ms_result *result, const wanted *what,
                     const uint64_t *levels)
{
    const ms_plan *plan = result->plan;
    const ms_timeline *line = result->line;
    level best = {0, MS_NONE, MS_NONE};
    ms_eventwalk walk;
    ms_timeline_walk(line, 0, &walk);
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_event *event = ms_timeline_next(&walk);
        uint32_t op = event->op_act >> 1;
        if ((event->op_act & 1u) != 0 && on_rank(result, event->row) &&
            is_wanted(plan, what, op))
            see(&best, levels[e], e, op);
    }
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        uint32_t n = 0;
        if (plan->op[op].rank == result->report->told &&
            is_wanted(plan, what, op))
            n = events_at_start(result, op);
        if (n > 0)
            see(&best, levels[n - 1], n - 1, op);
    }
    return best;
}

static void settle(const ms_result *result, const level *found,
                   ms_instant *instant)
{
    uint64_t event_ns = ms_timeline_event(result->line, found->event).t_ns;
    uint64_t start_ns = result->line->start_ns[found->op];
    *instant = (ms_instant){.event = found->event,
                            .op = found->op,
                            .now = found->op,
                            .t_ns = event_ns > start_ns ? event_ns : start_ns,
                            .bytes = found->bytes};
}

ms_err ms_instant_like(const ms_result *result, const ms_plan *other,
                       uint32_t op, ms_arena *arena, bool *is_there,
                       ms_instant *instant, ms_fault *fault)
{
    *is_there = false;
    if (op == MS_NONE)
        return MS_OK;
    const uint64_t *levels = find_levels(result, arena);
    if (levels == NULL)
        return ms_fail_nomem(fault);
    wanted what = {.phase = phase_of(other, op),
                   .name = ms_instant_op(other, op),
                   .layer = ms_instant_op_layer(other, op)};
    level found = highest(result, &what, levels);
    *is_there = found.event != MS_NONE;
    if (*is_there)
        settle(result, &found, instant);
    return MS_OK;
}

/* ---- the three forms of --at --------------------------------------------- */

/* The last op that has begun, and the first one that has not ended. */
static ms_err at_time(const ms_result *result, const char *text,
                      const uint64_t *levels, ms_instant *instant,
                      ms_fault *fault)
{
    const ms_plan *plan = result->plan;
    const ms_timeline *line = result->line;
    uint64_t t_ns;
    MS_TRY(ms_quantity_ns(text, "--at", &t_ns, fault));
    if (t_ns > line->step_ns)
        return ms_fail(fault, MS_EUSAGE, "--at", NULL,
                       "\"%s\" is later than the end of the step at %s", text,
                       ms_quantity_time(line->step_ns).s);
    uint32_t n = events_before(line, t_ns + 1);
    *instant = (ms_instant){.event = n > 0 ? n - 1 : MS_NONE,
                            .op = MS_NONE,
                            .now = plan->n_ops,
                            .t_ns = t_ns,
                            .bytes = n > 0 ? levels[n - 1] : 0};
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        if (plan->op[op].rank != result->report->told)
            continue;
        if (line->start_ns[op] <= t_ns)
            instant->op = op;
        if (line->end_ns[op] > t_ns && instant->now == plan->n_ops)
            instant->now = op;
    }
    return MS_OK;
}

#define MAX_NAMES 256u

/* Lists the phases, and each op's name once, with and without "aten::": they
 * are the words that a hint can suggest. */
static uint32_t list_names(const ms_graph *graph, const char **names)
{
    uint32_t n = 0;
    for (; n < MS_N_PHASES; n++)
        names[n] = ms_names_phase[n];
    for (uint32_t op = 0; op < graph->n_ops && n + 2 <= MAX_NAMES; op++) {
        const char *name = graph->op_name[op];
        const char *colons = strstr(name, "::");
        uint32_t known = 0;
        while (known < n && strcmp(names[known], name) != 0)
            known++;
        if (known < n)
            continue;
        names[n++] = name;
        if (colons != NULL)
            names[n++] = colons + 2;
    }
    return n;
}

static ms_err fail_name(const ms_result *result, const char *text,
                        ms_fault *fault)
{
    const char *names[MAX_NAMES];
    char hint[160] = "a time (12.5ms), a phase (forward, loss, backward, "
                     "optimizer) or an op (aten::mm)";
    uint32_t n = list_names(result->graph, names);
    const char *near = ms_names_nearest(text, names, n);
    if (near != NULL && strlen(near) < 100) {
        strcpy(hint, "did you mean \"");
        strcat(hint, near);
        strcat(hint, "\"?");
    }
    return ms_fail(fault, MS_EUSAGE, "--at", hint,
                   "no phase or op of this step is called \"%s\"", text);
}

static bool find_phase(const char *text, wanted *what)
{
    for (uint32_t phase = 0; phase < MS_N_PHASES; phase++)
        if (strcmp(ms_names_phase[phase], text) == 0) {
            what->phase = (uint8_t)phase;
            return true;
        }
    return false;
}

ms_err ms_instant_find(const ms_result *result, const char *at, ms_arena *arena,
                       ms_instant *instant, ms_fault *fault)
{
    const ms_peak *peak = &result->report->ranks[result->report->told].peak;
    wanted what = {.phase = MS_N_PHASES, .any_layer = true};
    *instant = (ms_instant){.event = peak->event,
                            .op = peak->plan_op,
                            .now = peak->plan_op,
                            .t_ns = peak->t_ns,
                            .bytes = peak->allocated_bytes};
    if (at == NULL)
        return MS_OK;
    const uint64_t *levels = find_levels(result, arena);
    if (levels == NULL)
        return ms_fail_nomem(fault);
    if ((*at >= '0' && *at <= '9') || *at == '-' || *at == '.')
        return at_time(result, at, levels, instant, fault);
    bool phase = find_phase(at, &what);
    if (!phase)
        what.name = at;
    level found = highest(result, &what, levels);
    if (found.event == MS_NONE && phase)
        return ms_fail(fault, MS_EUSAGE, "--at", NULL,
                       "this step has no phase \"%s\"", at);
    if (found.event == MS_NONE)
        return fail_name(result, at, fault);
    settle(result, &found, instant);
    return MS_OK;
}
