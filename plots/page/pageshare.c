/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "plots/page/htmlpage.h"

/* Of a step, and of all steps of a page: what takes 3 MB at most in nearly all
 * pages (a point has 20 bytes, a tensor 130, a turn 45). */
static const ms_pageshare of_step = {.events = 50000,
                                     .parts = 3000,
                                     .tensors = 2000,
                                     .turns = 20000,
                                     .slices = 2000,
                                     .groups = 2000};
static const ms_pageshare of_page = {.events = 90000,
                                     .parts = 3000 * MS_PAGE_STEPS,
                                     .tensors = 6000,
                                     .turns = 30000,
                                     .slices = 2000 * MS_PAGE_STEPS,
                                     .groups = 2000 * MS_PAGE_STEPS};

static uint32_t part(uint32_t step, uint32_t page, uint32_t n)
{
    return page / n < step ? page / n : step;
}

/* Of one of n steps on a page. */
static ms_pageshare first(uint32_t n)
{
    return (ms_pageshare){part(of_step.events, of_page.events, n),
                          part(of_step.parts, of_page.parts, n),
                          part(of_step.tensors, of_page.tensors, n),
                          part(of_step.turns, of_page.turns, n),
                          part(of_step.slices, of_page.slices, n),
                          part(of_step.groups, of_page.groups, n)};
}

/* False: it is so little that less would not be a figure. */
static bool halve(ms_pageshare *share)
{
    if (share->parts <= 50)
        return false;
    share->events /= 2;
    share->parts /= 2;
    share->tensors /= 2;
    share->turns /= 2;
    share->slices /= 2;
    share->groups /= 2;
    return true;
}

ms_err ms_pageshare_fit(const ms_pagedata *data, ms_text *page, ms_fault *fault)
{
    ms_pageshare share = first(data->n);
    do {
        ms_text text = {.arena = page->arena};
        *page = text;
        MS_TRY(data->put(data->of, &share, &text, fault));
        MS_TRY(ms_htmlpage_make(data->title, &text, page, fault));
        if (page->length <= MS_PAGE_BYTES)
            return MS_OK;
    } while (halve(&share));
    return ms_fail(fault, MS_EUSAGE, NULL,
                   data->n > 1 ? "name fewer variants"
                               : "are its names, or its ranks, so many?",
                   "the page would have %u bytes, and %u are the most",
                   page->length, MS_PAGE_BYTES);
}
