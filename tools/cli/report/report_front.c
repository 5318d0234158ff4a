/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "sim/base/base.h"
#include "tools/cli/fit/fit_ask.h"
#include "tools/cli/report/report.h"
#include "tools/job/job.h"
#include "tools/options/options.h"

/* The search chooses the policies. */
static ms_err leave_policies(const ms_arguments *all, ms_arena *arena,
                             ms_arguments *own, ms_fault *fault)
{
    *own = *all;
    own->given = ms_arena_take(arena, all->n_given + 1, sizeof *own->given);
    own->n_given = 0;
    if (own->given == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < all->n_given; i++)
        if (all->given[i].option->id != MS_OPTION_POLICY)
            own->given[own->n_given++] = all->given[i];
    return MS_OK;
}

static ms_err put_row(const ms_fit_reply *reply, uint32_t at, ms_text *text,
                      ms_fault *fault)
{
    const ms_fit *fit = reply->fit;
    uint32_t row = fit->rows[at];
    const ms_fit_point *point = &fit->all[row];
    const char *command = ms_fitreply_command(reply, row);
    ms_text words = {.arena = text->arena};
    ms_fitsetup_words(fit, point, &words);
    if (command == NULL || words.failed)
        return ms_fail_nomem(fault);
    ms_text_add(text, "%s{\"setup\":", at > 0 ? "," : "");
    ms_text_json(text, words.length > 0 ? words.bytes : "none");
    ms_text_add(text, ",\"best\":%s,\"reserved_bytes\":",
                row == fit->best ? "true" : "false");
    ms_text_u64(text, point->reserved_bytes);
    ms_text_add(text, ",\"headroom_bytes\":");
    ms_text_i64(text, point->headroom_bytes);
    ms_text_add(text, ",\"step_ns\":");
    ms_text_u64(text, point->step_ns);
    ms_text_add(text, ",\"tokens_per_second\":");
    ms_text_u64(text, (uint64_t)point->tokens_per_second);
    ms_text_add(text, ",\"command\":");
    ms_text_json(text, command);
    ms_text_add(text, "}");
    return MS_OK;
}

static ms_err put_rows(const ms_fit_reply *reply, ms_text *text,
                       ms_fault *fault)
{
    const ms_fit *fit = reply->fit;
    ms_text_add(text, "{\"searched\":%u,\"rows\":[", fit->n_all);
    for (uint32_t i = 0; fit->best != MS_NONE && i < fit->n_rows; i++)
        MS_TRY(put_row(reply, i, text, fault));
    ms_text_add(text, "]}");
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}

ms_err ms_report_front_find(const ms_arguments *arguments, ms_points *points,
                            ms_text *text, ms_fault *fault)
{
    ms_job job = {0};
    ms_fit fit = {.points = points, .arena = text->arena};
    ms_arguments own = {0};
    const ms_fit_reply reply = {.fit = &fit, .arguments = &own};
    MS_TRY(leave_policies(arguments, text->arena, &own, fault));
    MS_TRY(ms_fit_ask_read(&own, &job, &fit, fault));
    MS_TRY(ms_workers_read(NULL, &fit.threads, fault));
    ms_err err = ms_fitspace_open(&fit, fault);
    if (err == MS_OK)
        err = ms_fitsearch_run(&fit, fault);
    if (err == MS_OK)
        err = ms_fitproof_run(&fit, fault);
    if (err == MS_OK)
        err = put_rows(&reply, text, fault);
    ms_fitspace_close(&fit);
    return err;
}
