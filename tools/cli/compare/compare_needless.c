/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds policies of variants that change nothing. */

#include "policies/common/policy.h"
#include "tools/advice/needless.h"
#include "tools/cli/compare/compare.h"
#include "tools/terminal/textlines.h"

ms_err ms_compare_needless_write(const ms_comparison *c, ms_text *text,
                                 ms_fault *fault)
{
    bool any = false;
    for (uint32_t i = 0; i < c->n; i++) {
        const ms_variant *variant = &c->variants[i];
        ms_text words = {.arena = text->arena};
        uint32_t needless;
        if (variant->refused != NULL || variant->file != NULL)
            continue;
        MS_TRY(ms_needless_find(&variant->job, &variant->result, &needless,
                                fault));
        if (needless == 0)
            continue;
        ms_text_add(&words, "%u: ", i + 1);
        MS_TRY(ms_needless_words(&variant->job, needless, text->arena, &words,
                                 fault));
        if (words.failed)
            return ms_fail_nomem(fault);
        ms_text_add(text, any ? "" : "\n");
        any = true;
        ms_textlines_put("note:", MS_TEXTLINES_INDENT, &words, text);
    }
    return MS_OK;
}
