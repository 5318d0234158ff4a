/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/cli/report/report.h"

static ms_err put_step(const ms_report_page *page, const ms_pageshare *share,
                       ms_text *text, ms_fault *fault)
{
    ms_pagelives lives = page->lives;
    if (page->variant != NULL)
        return ms_report_variant_step(page, share, text, fault);
    lives.most = *share;
    ms_text_add(text, "\"step\":");
    return ms_pagelives_put(&lives, text, fault);
}

static ms_err put_page(const ms_report_page *page, const ms_pageshare *share,
                       ms_text *text, ms_fault *fault)
{
    uint32_t n =
        page->n_groups < share->groups ? page->n_groups : share->groups;
    if (page->head.failed)
        return ms_fail_nomem(fault);
    ms_text_add(text, "{");
    ms_text_put(text, page->head.bytes, page->head.length);
    if (page->variant == NULL || page->variant->refused == NULL) {
        ms_text_add(text, ",\"groups\":%u,\"alive\":[", page->n_groups);
        for (uint32_t g = 0; g < n; g++) {
            const ms_text *group = &page->groups[g];
            text->failed |= group->failed;
            ms_text_add(text, "%s", g > 0 ? "," : "");
            ms_text_put(text, group->bytes, group->length);
        }
        ms_text_add(text, "],");
        MS_TRY(put_step(page, share, text, fault));
    }
    ms_text_add(text, "}");
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}

static ms_err put_pages(const void *of, const ms_pageshare *share,
                        ms_text *data, ms_fault *fault)
{
    const ms_report_pages *pages = of;
    ms_text_put(data, pages->opening.bytes, pages->opening.length);
    ms_text_add(data, "\"variants\":[\n");
    for (uint32_t i = 0; i < pages->n; i++) {
        ms_text_add(data, "%s", i > 0 ? ",\n" : "");
        MS_TRY(put_page(&pages->all[i], share, data, fault));
    }
    ms_text_add(data, "]}");
    return data->failed ? ms_fail_nomem(fault) : MS_OK;
}

ms_err ms_report_share_make(const char *title, const ms_report_pages *pages,
                            ms_text *file, ms_fault *fault)
{
    const ms_pagedata data = {title, pages->n, put_pages, pages};
    return ms_pageshare_fit(&data, file, fault);
}
