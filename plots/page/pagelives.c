/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <stdlib.h>
#include <string.h>

#include "plots/page/htmlpage.h"

typedef struct pick {
    uint64_t bytes;
    uint32_t life;
} pick;

static int by_size(const void *a, const void *b)
{
    const pick *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->life < y->life ? -1 : x->life > y->life;
}

static int by_life(const void *a, const void *b)
{
    const pick *x = a, *y = b;
    return x->life < y->life ? -1 : x->life > y->life;
}

static int number(uint32_t n)
{
    return n == MS_NONE ? -1 : (int)n;
}

static uint32_t word_of(const ms_pagelives *of, uint32_t i)
{
    uint32_t site = of->lives[i].site;
    return site == MS_NONE ? of->n_words : site;
}

/* name: the number of its word. */
static void put_row(const ms_pagelives *of, uint32_t i, uint32_t name,
                    ms_text *text)
{
    const ms_pagelife *life = &of->lives[i];
    uint32_t group = of->group_of[i];
    ms_text_add(text, "[%u,", name);
    ms_text_u64(text, life->bytes);
    ms_text_add(text, ",%u,%u,%d,%d,-1,-1,%d]", life->category, life->from,
                number(life->to), life->held ? -1 : (int)name,
                number(group < of->most.groups ? group : MS_NONE));
}

/* Those of the picks, each once, in their order; the last one of all is for
 * what has none.  Numbers them. */
static ms_err put_words(const ms_pagelives *of, const pick *picks, uint32_t n,
                        uint32_t *number_of, ms_text *text, ms_fault *fault)
{
    bool *is_used =
        ms_arena_take(text->arena, of->n_words + 1, sizeof *is_used);
    uint32_t n_put = 0;
    if (is_used == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++)
        is_used[word_of(of, picks[i].life)] = true;
    for (uint32_t w = 0; w <= of->n_words; w++) {
        if (!is_used[w])
            continue;
        ms_text_add(text, "%s", n_put > 0 ? "," : "");
        ms_text_json(text, w < of->n_words ? of->words[w]
                                           : "an allocation without a stack");
        number_of[w] = n_put++;
    }
    return MS_OK;
}

ms_err ms_pagelives_tensors(const ms_pagelives *of, ms_text *text,
                            ms_fault *fault)
{
    pick *picks = ms_arena_take_raw(text->arena, of->n + 1, sizeof *picks);
    uint32_t *number_of =
        ms_arena_take(text->arena, of->n_words + 1, sizeof *number_of);
    uint32_t n = of->n < of->most.tensors ? of->n : of->most.tensors;
    if (picks == NULL || number_of == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < of->n; i++)
        picks[i] = (pick){of->lives[i].bytes, i};
    qsort(picks, of->n, sizeof *picks, by_size);
    uint64_t hidden_bytes = n < of->n ? picks[n].bytes : 0;
    qsort(picks, n, sizeof *picks, by_life);
    ms_text_add(text, "{\"words\":[");
    MS_TRY(put_words(of, picks, n, number_of, text, fault));
    ms_text_add(text, "],\"rows\":[");
    for (uint32_t i = 0; i < n; i++) {
        ms_text_add(text, "%s", i > 0 ? "," : "");
        put_row(of, picks[i].life, number_of[word_of(of, picks[i].life)], text);
    }
    ms_text_add(text, "],\"hidden\":%u,\"hidden_bytes\":", of->n - n);
    ms_text_u64(text, hidden_bytes);
    ms_text_add(text, "}");
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}

ms_err ms_pagelives_put(const ms_pagelives *of, ms_text *text, ms_fault *fault)
{
    ms_text_add(text,
                "{\"rank\":0,\"end\":%u,\"timed\":false,\"phases\":[],"
                "\"reserved\":[],\"again\":[],\"again_ns\":0,\"lanes\":[],"
                "\"stages\":[],",
                of->n_states + 1);
    MS_TRY(ms_pagelevels_lives(of, text, fault));
    ms_text_add(text, ",\"tensors\":");
    MS_TRY(ms_pagelives_tensors(of, text, fault));
    ms_text_add(text, "}");
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}
