/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ways in words, each on a line. */

#include "policies/common/policy.h"
#include "sim/report.h"
#include "sim/timeline.h"
#include "tools/advice/advice.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"

#include <string.h>

static const char *const labels[MS_N_COSTS] = {
    "costs nothing: ", "costs time: ", "other numbers: ", "other training: "};

/* "step 5.46 s (12.0 % longer)" */
static void put_step(const ms_advice_way *way, const ms_result *result,
                     ms_text *words)
{
    uint64_t now_ns = result->report->ranks[0].time.step_ns;
    double percent = 100.0 * (double)way->step_ns / (double)now_ns - 100.0;
    ms_text_add(words, ", step %s", ms_quantity_time(way->step_ns).s);
    if (now_ns > 0 && (percent >= 0.05 || percent <= -0.05))
        ms_text_add(words, " (%.1f %% %s)", percent < 0 ? -percent : percent,
                    percent < 0 ? "shorter" : "longer");
}

static ms_err put_way(const ms_advice_way *way, const ms_job *job,
                      const ms_result *result, ms_text *words, ms_fault *fault)
{
    ms_text prices = {.arena = words->arena};
    ms_text_add(words, "%s", labels[way->costs]);
    MS_TRY(ms_changewords_put(&way->set, job, result, words, fault));
    ms_text_add(words, "%s%s",
                way->fits && !result->report->fits ? " fits in "
                                                   : " lowers the peak to ",
                ms_quantity_size(way->reserved_bytes).s);
    put_step(way, result, words);
    ms_changewords_prices(&way->set, &prices);
    if (prices.failed)
        return ms_fail_nomem(fault);
    if (prices.length > 0)
        ms_text_add(words, "; %s", prices.bytes);
    if (!way->fits)
        ms_text_add(words, "; not enough");
    return MS_OK;
}

ms_err ms_advicewords_put(const ms_advice *advice, const ms_job *job,
                          const ms_result *result, uint32_t indent,
                          ms_text *text, ms_fault *fault)
{
    for (uint32_t i = 0; i < advice->n; i++) {
        ms_text words = {.arena = text->arena};
        MS_TRY(put_way(&advice->ways[i], job, result, &words, fault));
        if (words.failed)
            return ms_fail_nomem(fault);
        ms_screen_fill(text, indent, i == 0 ? "advice:" : "or:", words.bytes);
    }
    return MS_OK;
}
