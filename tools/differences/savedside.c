/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A saved result as a side: its settings as a job, and its levels. */

#include "sim/names.h"
#include "sim/report.h"
#include "tools/differences/side.h"
#include "tools/job/job.h"
#include "tools/job/settings.h"
#include "tools/job/settings_table.h"
#include "tools/options/numberfile.h"

#include <string.h>

/* ---- its job ------------------------------------------------------------- */

/* What does not apply, and what a job has unless it is told: some defaults
 * cannot be asked for where they mean nothing. */
static bool is_left_out(const ms_job *job, const ms_record_setting *setting)
{
    uint32_t row = ms_training_row(setting->key);
    char usual[64] = "false"; /* of a flag of the job */
    if (row != MS_NONE)
        ms_training_value(&job->training, row, usual, sizeof usual);
    return strcmp(setting->value, "null") == 0 ||
           strcmp(setting->value, usual) == 0;
}

static ms_err put_settings(const ms_record *record, ms_arena *arena,
                           ms_job *job, ms_fault *fault)
{
    ms_settings_init(job);
    job->model = record->model;
    for (uint32_t i = 0; i < record->n_settings; i++) {
        const ms_record_setting *setting = &record->settings[i];
        if (is_left_out(job, setting))
            continue;
        const ms_setting *row = ms_settings_table_find(setting->key);
        if (row != NULL)
            MS_TRY(row->read(row, setting->value, arena, job, fault));
        else
            MS_TRY(ms_settings_put(job, setting->key, setting->value, arena,
                                   fault));
    }
    MS_TRY(ms_numberfile_parse(record->policy, arena, &job->spec, fault));
    ms_defaultpool_pool(job);
    return ms_settings_check(job, fault);
}

ms_err ms_savedside_job(const ms_record *record, ms_arena *arena,
                        struct ms_job *job, const char **why, ms_fault *fault)
{
    ms_fault own = {.caret = -1};
    ms_err err = put_settings(record, arena, job, &own);
    *why = NULL;
    if (err != MS_OK && ms_fail_is_refusal(err)) {
        *why = ms_arena_text(arena, own.what, strlen(own.what));
        return *why == NULL ? ms_fail_nomem(fault) : MS_OK;
    }
    if (err != MS_OK)
        *fault = own;
    return err;
}

/* ---- its levels ---------------------------------------------------------- */

static void put_phases(const ms_record_rank *rank, ms_side *side)
{
    uint8_t now = MS_PHASE_FORWARD;
    for (uint32_t i = 0; i < rank->n_bands; i++) {
        const ms_band *band = &rank->bands[i];
        if (band->phase < MS_N_PHASES && band->phase > now)
            now = band->phase;
        ms_side_phase *phase = &side->phase[now];
        if (!phase->is_there)
            phase->from = (double)band->from_ns;
        phase->is_there = true;
        phase->to = (double)band->to_ns;
        side->n_steps = 1;
    }
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void put_peaks(const ms_rank_report *report, ms_side *side)
{
    const ms_peak *peak = &report->peak;
    const uint64_t *phases = report->phase_peaks_with_workspace;
    side->peak_bytes = peak->allocated_bytes;
    side->peak_phase = peak->phase;
    memcpy(side->by_category, peak->by_category, sizeof peak->by_category);
    for (int p = 0; p < MS_N_PHASES; p++) {
        bool loss = p == MS_PHASE_FORWARD &&
                    phases[MS_PHASE_LOSS] > phases[MS_PHASE_FORWARD];
        side->phase[p].peak_bytes = phases[p];
        if (loss)
            side->phase[p].peak_bytes =
                larger(phases[p], phases[MS_PHASE_LOSS]);
        memcpy(side->phase[p].by_category,
               report->phase_by_category[loss ? MS_PHASE_LOSS : p],
               sizeof report->phase_by_category[p]);
    }
    side->phase[MS_PHASE_LOSS] = (ms_side_phase){0};
}

ms_err ms_savedside_of(const ms_record *record, ms_arena *arena, ms_side *side,
                       ms_fault *fault)
{
    uint32_t told = record->report.told;
    MS_TRY(ms_record_check(record, fault));
    const ms_record_rank *rank = &record->ranks[told];
    put_phases(rank, side);
    put_peaks(&record->report.ranks[told], side);
    side->kind = MS_SIDE_SAVED;
    side->levels = rank;
    side->end = (double)rank->end_ns;
    side->n_line = rank->n_points;
    side->line = ms_arena_take(arena, rank->n_points + 1u, sizeof *side->line);
    if (side->line == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < rank->n_points; i++)
        side->line[i] =
            (ms_side_level){rank->points[i].t_ns, rank->points[i].total_bytes};
    return MS_OK;
}
