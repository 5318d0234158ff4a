/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "sim/names.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/advice/advice.h"
#include "tools/advice/changes.h"
#include "tools/advice/remedy.h"
#include "tools/alive/alive.h"
#include "tools/cli/report/report.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"

#include <string.h>

typedef struct peak {
    ms_report_page *page;
    const ms_job *job;
    const ms_result *result;
    ms_alive alive;
    ms_alike *groups;
    uint32_t *group_of; /* by row alive */
    uint32_t n_groups;
    ms_remedy *remedies;
    uint32_t n_remedies;
} peak;

static ms_err look(peak *p, ms_fault *fault)
{
    ms_report_page *page = p->page;
    const ms_plan *plan = p->result->plan;
    MS_TRY(ms_alive_find(p->result, NULL, page->arena, &p->alive, fault));
    MS_TRY(ms_alive_groups(&p->alive, page->arena, &p->groups, &p->group_of,
                           &p->n_groups, fault));
    ms_remedy_task task = {.job = p->job,
                           .alive = &p->alive,
                           .group_of = p->group_of,
                           .n_groups = p->n_groups,
                           .groups = p->groups};
    MS_TRY(ms_remedy_find(&task, page->arena, &p->remedies, &p->n_remedies,
                          fault));
    page->group_of = ms_arena_take_raw(page->arena, plan->n_rows + 1,
                                       sizeof *page->group_of);
    if (page->group_of == NULL)
        return ms_fail_nomem(fault);
    memset(page->group_of, 0xff, plan->n_rows * sizeof *page->group_of);
    for (uint32_t i = 0; i < p->alive.n; i++)
        page->group_of[p->alive.rows[i]] = p->group_of[i];
    return MS_OK;
}

/* ---- who is alive -------------------------------------------------------- */

static void put_text(const char *key, const ms_text *words, ms_text *text)
{
    ms_text_add(text, ",\"%s\":", key);
    text->failed |= words->failed;
    ms_text_json(text, words->length > 0 ? words->bytes : "");
}

static void put_less(const peak *p, uint32_t g, ms_text *text)
{
    uint32_t n = 0;
    ms_text_add(text, ",\"less\":[");
    for (uint32_t i = 0; i < p->n_remedies; i++) {
        if (!p->remedies[i].helps[g] || ms_remedy_is_told(p->remedies, i, g))
            continue;
        ms_text_add(text, "%s", n++ > 0 ? "," : "");
        ms_text_json(text, p->remedies[i].words);
    }
    ms_text_add(text, "]");
}

static void put_group(const peak *p, uint32_t g, ms_text *text)
{
    const ms_alike *group = &p->groups[g];
    ms_text name = {.arena = text->arena}, why = name;
    ms_groups_name(group, &name);
    if (group->role != NULL && group->layer != NULL)
        ms_text_add(&name, ":%s", group->role);
    if (group->count > 1)
        ms_text_add(&name, ", %u tensors", group->count);
    if (!ms_why_lasts(group->side[0].why)) {
        ms_explain_text_maker(group, &why);
        ms_text_add(&why, "; ");
    }
    ms_explain_text_why(p->result, &group->side[0], &why);
    ms_text_add(text, "{\"bytes\":");
    ms_text_u64(text, group->side[0].bytes);
    ms_text_add(text, ",\"category\":\"%s\"",
                ms_names_category[group->category]);
    put_text("name", &name, text);
    put_text("why", &why, text);
    put_less(p, g, text);
    ms_text_add(text, "}");
}

/* ---- what if ------------------------------------------------------------- */

static const char *const costs[MS_N_COSTS] = {
    [MS_COSTS_NOTHING] = "nothing",
    [MS_COSTS_TIME] = "time",
    [MS_COSTS_NUMERICS] = "other numbers",
    [MS_COSTS_TRAINING] = "another training"};

/* What a change came to, as memsim run would report it. */
typedef struct outcome {
    uint64_t reserved_bytes, step_ns;
    bool fits;
} outcome;

/* *done is false where the job refuses the change. */
static ms_err try_change(const peak *p, const ms_changes *set, outcome *found,
                         bool *done, ms_fault *fault)
{
    ms_arena scratch = {0};
    ms_fault own = {.caret = -1};
    ms_result tried;
    ms_job changed;
    *done = false;
    ms_err err =
        ms_changes_job(set, p->job, p->result, &scratch, &changed, &own);
    changed.uses = false;
    if (err == MS_OK)
        err = ms_changes_step(&changed, false, p->result, NULL, &scratch,
                              &tried, &own);
    if (err == MS_OK) {
        const ms_report *report = tried.report;
        *found = (outcome){report->ranks[report->worst].peak.reserved_bytes,
                           tried.report->ranks[0].time.step_ns, report->fits};
        *done = true;
    }
    ms_arena_free(&scratch);
    return err == MS_OK ? MS_OK : ms_fail_but_refusal(err, &own, fault);
}

static ms_err put_row(const peak *p, const ms_changes *set, ms_costs of,
                      const outcome *found, uint32_t *n, ms_text *text,
                      ms_fault *fault)
{
    ms_text words = {.arena = text->arena}, command = words;
    MS_TRY(ms_changewords_put(set, p->job, p->result, &words, fault));
    MS_TRY(ms_changewords_command(set, p->page->arguments, p->job, p->result,
                                  &command, fault));
    ms_text_add(text, "%s{\"costs\":\"%s\",\"reserved_bytes\":",
                (*n)++ > 0 ? "," : "", costs[of]);
    ms_text_u64(text, found->reserved_bytes);
    ms_text_add(text, ",\"step_ns\":");
    ms_text_u64(text, found->step_ns);
    ms_text_add(text, ",\"fits\":%s", found->fits ? "true" : "false");
    put_text("change", &words, text);
    put_text("command", &command, text);
    ms_text_add(text, "}");
    return MS_OK;
}

/* Of a step that does not fit: what makes it fit, several changes at once. */
static ms_err put_ways(const peak *p, uint32_t *n, ms_text *text,
                       ms_fault *fault)
{
    ms_advice advice;
    if (p->result->report->fits)
        return MS_OK;
    MS_TRY(ms_advice_find(p->job, p->result, &advice, fault));
    for (uint32_t i = 0; i < advice.n; i++) {
        const ms_advice_way *way = &advice.ways[i];
        const outcome found = {way->reserved_bytes, way->step_ns, way->fits};
        if (way->set.n > 1)
            MS_TRY(put_row(p, &way->set, way->costs, &found, n, text, fault));
    }
    return MS_OK;
}

static ms_err put_change(const peak *p, const ms_remedy *remedy, uint32_t *n,
                         ms_text *text, ms_fault *fault)
{
    ms_changes set = {0};
    outcome found;
    bool done;
    ms_changes_add(&set, remedy->use);
    MS_TRY(try_change(p, &set, &found, &done, fault));
    return done ? put_row(p, &set, remedy->costs, &found, n, text, fault)
                : MS_OK;
}

/* Then each remedy alone, those first that cost least. */
static ms_err put_changes(const peak *p, ms_text *text, ms_fault *fault)
{
    uint32_t n = 0;
    MS_TRY(put_ways(p, &n, text, fault));
    for (int cost = 0; cost < MS_N_COSTS; cost++)
        for (uint32_t i = 0; i < p->n_remedies; i++)
            if ((int)p->remedies[i].costs == cost)
                MS_TRY(put_change(p, &p->remedies[i], &n, text, fault));
    return MS_OK;
}

static ms_err put_groups(const peak *p, ms_fault *fault)
{
    ms_report_page *page = p->page;
    page->groups =
        ms_arena_take(page->arena, p->n_groups + 1u, sizeof *page->groups);
    if (page->groups == NULL)
        return ms_fail_nomem(fault);
    page->n_groups = p->n_groups;
    for (uint32_t g = 0; g < p->n_groups; g++) {
        page->groups[g].arena = page->arena;
        put_group(p, g, &page->groups[g]);
    }
    return MS_OK;
}

ms_err ms_report_peak_read(ms_report_page *page, ms_fault *fault)
{
    const ms_variant *variant = page->variant;
    ms_text *text = &page->head;
    peak p = {.page = page, .job = &variant->job, .result = &variant->result};
    ms_text_add(text, "\"whatif\":[");
    if (page->arguments == NULL) {
        ms_text_add(text, "],\"search\":null");
        return MS_OK;
    }
    MS_TRY(look(&p, fault));
    MS_TRY(put_groups(&p, fault));
    MS_TRY(put_changes(&p, text, fault));
    ms_text search = {.arena = text->arena};
    ms_settings_fit(page->arguments, ms_shape_ranks(&p.result->shape), &search);
    ms_text_add(text, "]");
    put_text("search", &search, text);
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}
