/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "plots/page/htmlpage.h"

static void put_knots(const ms_pageoverlay *of, ms_text *text)
{
    for (uint32_t i = 0; i < of->n_knots; i++) {
        ms_text_add(text, "%s[", i > 0 ? "," : "");
        ms_text_exact(text, of->knots[i].t);
        ms_text_add(text, ",");
        ms_text_u64(text, of->knots[i].at);
        ms_text_add(text, "]");
    }
}

ms_err ms_pageoverlay_put(const ms_pageoverlay *of, ms_text *text,
                          ms_fault *fault)
{
    ms_text_add(text, "\"knots\":[");
    put_knots(of, text);
    ms_text_add(text, "],\"step\":{");
    if (of->lives == NULL) {
        ms_pagelevels_record(of->levels, text);
        ms_text_add(text, ",\"tensors\":null");
    } else {
        MS_TRY(ms_pagelevels_lives(of->lives, text, fault));
        ms_text_add(text, ",\"tensors\":");
        MS_TRY(ms_pagelives_tensors(of->lives, text, fault));
    }
    ms_text_add(text, "}");
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}
