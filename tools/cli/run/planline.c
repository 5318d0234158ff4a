/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the best plan of a model of the step is, beside the step itself. */
#include "sim/program.h"
#include "sim/report.h"
#include "tools/cli/run/run.h"
#include "tools/job/result.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

void ms_planline_put(const ms_result *result, ms_arena *arena, ms_text *text)
{
    const ms_program *program = result->program;
    const ms_rank_report *rank = &result->report->ranks[result->report->told];
    ms_text words = {.arena = arena};
    if (program == NULL || program->foreseen.step_ns == 0 ||
        program->foreseen.peak_bytes == 0)
        return;
    const ms_foreseen *seen = &program->foreseen;
    uint64_t has_bytes = rank->peak.allocated_bytes;
    uint64_t has_ns = rank->time.step_ns;
    if (seen->best == MS_BEST_TRIED)
        ms_text_add(&words, "the fastest of those that were tried, not proven "
                            "to be the best of the model as a chain, ");
    else
        ms_text_add(&words,
                    "the best persistent one of the model as a chain, ");
    if (seen->unit_bytes > 0)
        ms_text_add(&words, "its sizes rounded up to multiples of %s, ",
                    ms_quantity_size(seen->unit_bytes).s);
    if (has_bytes == seen->peak_bytes && has_ns == seen->step_ns)
        ms_text_add(&words, "whose peak and time are those of the step");
    else
        ms_text_add(&words,
                    "which foresees %s and %s; the step has %+.1f %% and "
                    "%+.1f %%",
                    ms_quantity_size(seen->peak_bytes).s,
                    ms_quantity_time(seen->step_ns).s,
                    100 * ((double)has_bytes / (double)seen->peak_bytes - 1),
                    100 * ((double)has_ns / (double)seen->step_ns - 1));
    text->failed |= words.failed;
    if (!words.failed)
        ms_screen_fill(text, 10, "plan:", words.bytes);
}
