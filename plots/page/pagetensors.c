/* SPDX-License-Identifier: GPL-3.0-or-later */

#include <stdlib.h>
#include <string.h>

#include "plots/page/htmlpage.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/timeline.h"

/* Words of a tensor. */
typedef enum word_kind { NAME, MADE, READ, FREED, N_WORDS } word_kind;

typedef struct tensor {
    uint32_t row;
    uint64_t bytes;
} tensor;

/* Where a text is used: of which tensor, for what. */
typedef struct use {
    const char *text;
    uint32_t tensor;
    uint8_t word;
} use;

typedef struct book {
    const ms_pagestep *step;
    const ms_plan *plan;
    uint16_t rank;
    ms_arena *arena;
    uint32_t *from, *to, *freed, *read; /* by row of the plan */
    tensor *tensors;
    uint32_t n, n_all;
    use *uses;
    uint32_t n_uses;
    uint32_t (*words)[N_WORDS]; /* by tensor: numbers of its words */
} book;

/* ---- which --------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const tensor *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int by_row(const void *a, const void *b)
{
    const tensor *x = a, *y = b;
    return x->row < y->row ? -1 : x->row > y->row;
}

static bool is_ours(const book *b, uint32_t row)
{
    const ms_row *it = &b->plan->row[row];
    return it->pool == MS_DEVICE_POOL && it->bytes > 0 &&
           b->plan->op[it->op].rank == b->rank;
}

static ms_err choose(book *b, ms_fault *fault)
{
    uint32_t n = 0;
    b->tensors =
        ms_arena_take_raw(b->arena, b->plan->n_rows + 1, sizeof *b->tensors);
    if (b->tensors == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t row = 0; row < b->plan->n_rows; row++)
        if (is_ours(b, row))
            b->tensors[n++] = (tensor){row, b->plan->row[row].bytes};
    qsort(b->tensors, n, sizeof *b->tensors, by_size);
    b->n_all = n;
    b->n = n < b->step->most.tensors ? n : b->step->most.tensors;
    return MS_OK;
}

/* ---- when ---------------------------------------------------------------- */

static uint32_t *take_rows(const book *b)
{
    size_t n = b->plan->n_rows + 1u;
    uint32_t *of = ms_arena_take_raw(b->arena, n, sizeof *of);
    if (of != NULL)
        memset(of, 0xff, n * sizeof *of);
    return of;
}

static void follow_events(book *b)
{
    const ms_timeline *line = b->step->line;
    uint32_t state = 0;
    ms_eventwalk events;
    ms_timeline_walk(line, 0, &events);
    for (uint32_t e = 0; e < line->n_events; e++) {
        const ms_event *event = ms_timeline_next(&events);
        uint32_t op = event->op_act >> 1;
        if (b->plan->op[op].rank != b->rank ||
            b->plan->row[event->row].pool != MS_DEVICE_POOL)
            continue;
        state++;
        if (event->op_act & 1) {
            b->from[event->row] = state;
        } else {
            b->to[event->row] = state;
            b->freed[event->row] = op;
        }
    }
}

static void follow_uses(book *b)
{
    const ms_plan *plan = b->plan;
    for (uint32_t op = 0; plan->use != NULL && op < plan->n_ops; op++)
        for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++)
            if (op > plan->row[plan->use[i]].op)
                b->read[plan->use[i]] = op;
}

static ms_err follow(book *b, ms_fault *fault)
{
    b->from = take_rows(b);
    b->to = take_rows(b);
    b->freed = take_rows(b);
    b->read = take_rows(b);
    if (b->from == NULL || b->to == NULL || b->freed == NULL || b->read == NULL)
        return ms_fail_nomem(fault);
    follow_events(b);
    follow_uses(b);
    return MS_OK;
}

/* ---- words --------------------------------------------------------------- */

/* "aten::mm of layers.0.mlp.up, forward, micro-batch 3". */
static const char *op_words(const book *b, uint32_t op)
{
    const ms_plan_op *it = &b->plan->op[op];
    const ms_graph *graph = b->plan->graph;
    ms_text text = {.arena = b->arena};
    const char *pass = ms_names_pass[it->pass];
    if (it->of == MS_NONE) {
        ms_text_add(&text, "%s", pass);
    } else {
        uint32_t layer = graph->op_layer[it->of];
        ms_text_add(&text, "%s", graph->op_name[it->of]);
        if (layer != MS_NONE && graph->layer_name[layer][0] != '\0')
            ms_text_add(&text, " of %s", graph->layer_name[layer]);
        ms_text_add(&text, ", %s", pass);
    }
    if (b->plan->n_micro_batches > 1 && it->micro_batch != MS_NONE)
        ms_text_add(&text, ", micro-batch %u", it->micro_batch);
    return text.failed ? NULL : text.bytes;
}

static bool add_use(book *b, uint32_t i, word_kind word, const char *text)
{
    b->words[i][word] = MS_NONE;
    if (text == NULL)
        return false;
    b->uses[b->n_uses++] = (use){text, i, (uint8_t)word};
    return true;
}

static bool add_op(book *b, uint32_t i, word_kind word, uint32_t op)
{
    b->words[i][word] = MS_NONE;
    if (op != MS_NONE && b->plan->op[op].pass == MS_START)
        return true; /* it is there before the step */
    return op == MS_NONE || add_use(b, i, word, op_words(b, op));
}

static ms_err collect(book *b, ms_fault *fault)
{
    b->uses = ms_arena_take(b->arena, b->n * N_WORDS + 1u, sizeof *b->uses);
    b->words = ms_arena_take(b->arena, b->n + 1u, sizeof *b->words);
    if (b->uses == NULL || b->words == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < b->n; i++) {
        char name[MS_STORAGE_NAME];
        uint32_t row = b->tensors[i].row;
        const char *text = ms_dumpplan_row_name(b->plan, row, name);
        if (!add_use(b, i, NAME, ms_arena_text(b->arena, text, strlen(text))) ||
            !add_op(b, i, MADE, b->plan->row[row].op) ||
            !add_op(b, i, READ, b->read[row]) ||
            !add_op(b, i, FREED, b->freed[row]))
            return ms_fail_nomem(fault);
    }
    return MS_OK;
}

static int by_text(const void *a, const void *b)
{
    const use *x = a, *y = b;
    int differ = strcmp(x->text, y->text);
    if (differ != 0)
        return differ;
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

/* Each text once, in their order; numbers the uses. */
static void put_words(book *b, ms_text *text)
{
    uint32_t number = 0;
    qsort(b->uses, b->n_uses, sizeof *b->uses, by_text);
    for (uint32_t i = 0; i < b->n_uses; i++) {
        const use *it = &b->uses[i];
        if (i == 0 || strcmp(it->text, b->uses[i - 1].text) != 0) {
            ms_text_add(text, "%s", number++ > 0 ? "," : "");
            ms_text_json(text, it->text);
        }
        b->words[it->tensor][it->word] = number - 1;
    }
}

/* ---- rows ---------------------------------------------------------------- */

static void put_number(uint32_t number, ms_text *text)
{
    if (number == MS_NONE)
        ms_text_add(text, ",-1");
    else
        ms_text_add(text, ",%u", number);
}

static void put_row(const book *b, uint32_t i, ms_text *text)
{
    uint32_t row = b->tensors[i].row;
    uint32_t group =
        b->step->group_of != NULL ? b->step->group_of[row] : MS_NONE;
    ms_text_add(text, "%s[%u,", i > 0 ? "," : "", b->words[i][NAME]);
    ms_text_u64(text, b->tensors[i].bytes);
    ms_text_add(text, ",%u", b->plan->row[row].category);
    put_number(b->from[row], text);
    put_number(b->to[row], text);
    for (word_kind w = MADE; w < N_WORDS; w++)
        put_number(b->words[i][w], text);
    put_number(group < b->step->most.groups ? group : MS_NONE, text);
    ms_text_add(text, "]");
}

ms_err ms_pagetensors_put(const ms_pagestep *step, uint16_t rank, ms_text *text,
                          ms_fault *fault)
{
    book b = {.step = step,
              .plan = step->line->plan,
              .rank = rank,
              .arena = text->arena};
    MS_TRY(choose(&b, fault));
    uint64_t hidden_bytes = b.n < b.n_all ? b.tensors[b.n].bytes : 0;
    qsort(b.tensors, b.n, sizeof *b.tensors, by_row);
    MS_TRY(follow(&b, fault));
    MS_TRY(collect(&b, fault));
    ms_text_add(text, "{\"words\":[");
    put_words(&b, text);
    ms_text_add(text, "],\"rows\":[");
    for (uint32_t i = 0; i < b.n; i++)
        put_row(&b, i, text);
    ms_text_add(text, "],\"hidden\":%u,\"hidden_bytes\":", b.n_all - b.n);
    ms_text_u64(text, hidden_bytes);
    ms_text_add(text, "}");
    return text->failed ? ms_fail_nomem(fault) : MS_OK;
}
