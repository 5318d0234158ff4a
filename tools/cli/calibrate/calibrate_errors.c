/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/cli/calibrate/calibrate.h"

static ms_err judge(ms_calibration *c, ms_rate_kind kind,
                    ms_calibrated_kind *row, ms_fault *fault)
{
    const ms_device *after = &c->fit.device;
    MS_TRY(ms_measured_judge(&c->all, c->like, kind, false, &row->fitted_before,
                             fault));
    MS_TRY(ms_measured_judge(&c->all, after, kind, false, &row->fitted_after,
                             fault));
    MS_TRY(ms_measured_judge(&c->all, c->like, kind, true, &row->kept_before,
                             fault));
    return ms_measured_judge(&c->all, after, kind, true, &row->kept_after,
                             fault);
}

ms_err ms_calibrate_errors(ms_calibration *c, ms_fault *fault)
{
    for (uint32_t kind = 0; kind < MS_N_RATE_KINDS; kind++) {
        ms_calibrated_kind row = {.name = ms_measured_names[kind],
                                  .word = ms_measured_words[kind]};
        for (uint32_t i = 0; i < c->all.n; i++) {
            if (c->all.rows[i].kind != kind)
                continue;
            row.shapes++;
            row.samples += c->all.rows[i].count;
            row.time_ns += c->all.rows[i].total_ns;
        }
        if (row.shapes == 0)
            continue;
        MS_TRY(judge(c, (ms_rate_kind)kind, &row, fault));
        c->kinds[c->n_kinds++] = row;
    }
    return MS_OK;
}
