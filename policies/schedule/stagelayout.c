/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rules are those of Megatron-LM (core/transformer/
 * pipeline_parallel_layer_layout.py, transformer_block.py,
 * get_num_layers_to_build) and torchtitan (distributed/pipeline_parallel.py,
 * generate_llm_fqn_per_model_part). */
#include "policies/schedule/stagelayout.h"
#include "policies/schedule/costsplit.h"
#include "sim/graph.h"
#include "sim/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS "pipeline:layers"
#define MOST_CHARACTERS 100000u /* of a layout that is written out */

/* ---- the model's blocks -------------------------------------------------- */

typedef struct blocks {
    const ms_graph *graph;
    uint32_t n, *first;  /* the first unit of each; of n + 1 the first behind */
    uint32_t behind;     /* the first unit behind the last one */
    uint32_t predicting; /* the last ones, of multi-token prediction: no layers
                            of the model */
} blocks;

static uint32_t layers_of(const blocks *of)
{
    return of->n - of->predicting;
}

/* In the order of the model; where there are none each unit counts. */
static ms_err list_blocks(const ms_policy_context *context, blocks *of,
                          ms_fault *fault)
{
    const ms_graph *graph = context->graph;
    uint32_t before = MS_NONE;
    *of = (blocks){.graph = graph,
                   .first = ms_arena_take_raw(
                       context->arena, graph->n_units + 1u, sizeof *of->first)};
    if (of->first == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t u = 0; u < graph->n_units; u++) {
        uint32_t block = graph->n_blocks > 0 ? graph->unit_block[u] : u;
        if (block != MS_NONE && block != before) {
            of->first[of->n++] = u;
            of->predicting +=
                graph->n_blocks > 0 && ms_graph_predicts(graph, block);
        }
        if (block != MS_NONE)
            of->behind = u + 1;
        before = block;
    }
    of->first[of->n] = of->behind;
    return MS_OK;
}

/* ---- a layout in letters ------------------------------------------------- */

static bool is_letters(const ms_policy_value *layers)
{
    return layers->given && strpbrk(layers->text, "EtLm|(*") != NULL;
}

static ms_err fail_letters(const char *what, const char *hint, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, LAYERS, hint, "%s", what);
}

/* The number behind a star at *at, or 1 where there is none. */
static ms_err read_times(const char **at, uint64_t *times, ms_fault *fault)
{
    char *end;
    *times = 1;
    if (**at != '*')
        return MS_OK;
    ++*at;
    if (**at < '0' || **at > '9')
        return fail_letters("a * without a number behind it",
                            "write t*3 or (tt|)*3", fault);
    *times = strtoull(*at, &end, 10);
    *at = end;
    return MS_OK;
}

static ms_err repeat(const char *piece, size_t length, uint64_t times,
                     ms_text *out, ms_fault *fault)
{
    if (times > MOST_CHARACTERS ||
        out->length + length * times > MOST_CHARACTERS)
        return fail_letters("the layout is too long",
                            "are the numbers behind * right?", fault);
    for (uint64_t i = 0; i < times; i++)
        ms_text_put(out, piece, length);
    return out->failed ? ms_fail_nomem(fault) : MS_OK;
}

/* (..)*n, which do not lie in each other. */
static ms_err write_groups(const char *at, ms_text *out, ms_fault *fault)
{
    while (*at != '\0') {
        uint64_t times = 1;
        const char *piece = at;
        size_t length = 1;
        if (*at == '(') {
            length = strcspn(++piece, "()");
            if (piece[length] != ')')
                return fail_letters("a ( that no ) closes before the next (",
                                    "write (tt|)*3", fault);
            at = piece + length + 1;
            MS_TRY(read_times(&at, &times, fault));
        } else {
            at++;
        }
        MS_TRY(repeat(piece, length, times, out, fault));
    }
    return MS_OK;
}

/* Then any one character x*n. */
static ms_err write_out(const char *at, ms_text *out, ms_fault *fault)
{
    while (*at != '\0') {
        uint64_t times;
        const char *piece = at++;
        MS_TRY(read_times(&at, &times, fault));
        MS_TRY(repeat(piece, 1, times, out, fault));
    }
    return MS_OK;
}

static ms_err check_letters(const char *text, ms_fault *fault)
{
    size_t n = strlen(text), at = strspn(text, "EtLm|");
    if (at < n)
        return ms_fail(fault, MS_EUSAGE, LAYERS,
                       "write numbers as 11/13, or a layout as "
                       "Et*3|(tt|)*4t|mL: E the embedding, t a layer, m one "
                       "of multi-token prediction, L the loss, | between "
                       "stages",
                       "\"%c\" is no part of a layout", text[at]);
    if (n == 0 || text[0] != 'E' || strchr(text + 1, 'E') != NULL)
        return fail_letters("E, the embedding, comes first and once",
                            "write Et*3|...", fault);
    if (text[n - 1] != 'L' || strchr(text, 'L') != text + n - 1)
        return fail_letters("L, the loss, comes last and once",
                            "write ...|t*3L", fault);
    return MS_OK;
}

/* The layout, written out: "Ettt|ttL". */
static ms_err read_letters(ms_arena *arena, const char *text,
                           const char **letters, ms_fault *fault)
{
    ms_text grouped = {.arena = arena}, out = grouped;
    MS_TRY(write_groups(text, &grouped, fault));
    MS_TRY(write_out(grouped.length > 0 ? grouped.bytes : "", &out, fault));
    *letters = out.length > 0 ? out.bytes : "";
    return check_letters(*letters, fault);
}

static uint32_t count_of(const char *text, char letter)
{
    uint32_t n = 0;
    for (; *text != '\0'; text++)
        n += *text == letter;
    return n;
}

/* ---- layers= ------------------------------------------------------------- */

static ms_err fail_sum(uint32_t layers, uint64_t said, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, LAYERS,
                   "give each stage a number of layers, as layers=11/13",
                   "the model has %u layers, %llu are given", layers,
                   (unsigned long long)said);
}

static ms_err fail_stages(uint32_t n, uint32_t said, const char *what,
                          ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, LAYERS, "give one number for each stage",
                   "there are %u stages, layers= has %u %s", n, said, what);
}

/* Stages with the layers of their letters; *predicts: the one that has all m,
 * which stand behind every t, or MS_NONE. */
static ms_err count_letters(const char *letters, uint32_t *layers,
                            uint32_t *predicts, ms_fault *fault)
{
    uint32_t k = 0;
    *predicts = MS_NONE;
    for (const char *at = letters; *at != '\0'; at++) {
        k += *at == '|';
        layers[k] += *at == 't' || *at == 'm';
        if (*at == 't' && *predicts != MS_NONE)
            return fail_letters("a t behind an m", "write ...t*3|mL", fault);
        if (*at == 'm' && *predicts != MS_NONE && *predicts != k)
            return fail_letters("m in two stages",
                                "write all m in one, as ...|mmL", fault);
        if (*at == 'm')
            *predicts = k;
    }
    return MS_OK;
}

/* Megatron-LM has the layers of multi-token prediction in the last chunk of
 * their rank. */
static ms_err check_predicts(const char *letters, const blocks *of, uint32_t k,
                             uint32_t n, const ms_stage *stages,
                             ms_fault *fault)
{
    uint32_t given = count_of(letters, 'm');
    if (given != of->predicting)
        return ms_fail(fault, MS_EUSAGE, LAYERS,
                       "write as many as --set model.mtp= says",
                       "the model has %u layers of multi-token prediction, %u "
                       "m are given",
                       of->predicting, given);
    for (uint32_t later = k; k != MS_NONE && ++later < n;)
        if (stages[later].rank == stages[k].rank)
            return ms_fail(fault, MS_EUSAGE, LAYERS,
                           "write m in the last stage of a rank",
                           "m in stage %u of rank %u, which has stage %u, too",
                           k, (unsigned)stages[k].rank, later);
    return MS_OK;
}

static ms_err take_letters(const ms_policy_context *context, const char *text,
                           const blocks *of, uint32_t n, const ms_stage *stages,
                           uint32_t *layers, ms_fault *fault)
{
    uint32_t predicts = MS_NONE;
    const char *letters = "";
    MS_TRY(read_letters(context->arena, text, &letters, fault));
    if (count_of(letters, '|') + 1 != n)
        return fail_stages(n, count_of(letters, '|') + 1, "stages", fault);
    MS_TRY(count_letters(letters, layers, &predicts, fault));
    return check_predicts(letters, of, predicts, n, stages, fault);
}

static ms_err take_numbers(const char *text, uint32_t n, uint32_t *layers,
                           ms_fault *fault)
{
    uint32_t k = 0;
    for (const char *at = text; *at != '\0'; k++) {
        char *end;
        unsigned long value =
            *at < '0' || *at > '9' ? UINT32_MAX : strtoul(at, &end, 10);
        if (value >= UINT32_MAX || (*end != '/' && *end != '\0'))
            return ms_fail(fault, MS_EUSAGE, LAYERS,
                           "write whole numbers, as layers=11/13",
                           "\"%s\" has no number of layers at character %d",
                           text, (int)(at - text) + 1);
        if (k < n)
            layers[k] = (uint32_t)value;
        at = *end == '/' ? end + 1 : end;
    }
    return k == n ? MS_OK : fail_stages(n, k, "numbers", fault);
}

/* ---- what frameworks count ----------------------------------------------- */

static ms_err fail_rest(uint64_t layers, uint32_t parts, const char *what,
                        const char *where, ms_fault *fault)
{
    return ms_fail(fault, MS_EUSAGE, where,
                   "change the ranks or chunks, or write layers=",
                   "%llu layers do not divide into %u equal %s",
                   (unsigned long long)layers, parts, what);
}

/* Each stage as much, one more on the first ones; then the ends have less. */
static ms_err take_less(uint32_t all, const uint32_t less[2], uint32_t n,
                        const char *where, uint32_t *layers, ms_fault *fault)
{
    uint64_t total = (uint64_t)all + less[0] + less[1];
    for (uint32_t k = 0; k < n; k++)
        layers[k] = (uint32_t)(total / n + (k < total % n));
    if (layers[0] < less[0] || layers[n - 1] < less[1])
        return ms_fail(fault, MS_EUSAGE, where, "take fewer of them, or stages",
                       "a stage of %u layers cannot have %u less",
                       layers[0] < less[0] ? layers[0] : layers[n - 1],
                       layers[0] < less[0] ? less[0] : less[1]);
    layers[0] -= less[0];
    layers[n - 1] -= less[1];
    return MS_OK;
}

/* torchtitan's pipeline_parallel_first_stage_less_layers and last. */
static ms_err read_less(const ms_stagelayout *layout, uint32_t less[2],
                        ms_fault *fault)
{
    const char *text = layout->less->given ? layout->less->text : "1/1";
    const char *slash = strchr(text, '/');
    if (slash == NULL || strchr(slash + 1, '/') != NULL)
        return ms_fail(fault, MS_EUSAGE, "pipeline:less", "write less=1/1",
                       "\"%s\" is not two numbers, of the first stage and of "
                       "the last",
                       text);
    less[0] = (uint32_t)strtoul(text, NULL, 10);
    less[1] = (uint32_t)strtoul(slash + 1, NULL, 10);
    return MS_OK;
}

static ms_err take_account(const ms_stagelayout *layout, uint32_t all,
                           uint32_t n_ranks, uint32_t n, uint32_t *layers,
                           ms_fault *fault)
{
    uint32_t bits = (uint32_t)layout->account->number;
    const uint32_t less[2] = {bits & 1, bits >> 1 & 1};
    uint32_t total = all + less[0] + less[1];
    if (total % n_ranks != 0)
        return fail_rest(total, n_ranks, "ranks", "pipeline:account", fault);
    if (total % n != 0)
        return fail_rest(total, n, "stages", "pipeline:account", fault);
    return take_less(all, less, n, "pipeline:account", layers, fault);
}

/* The layers of a rank, divided among its chunks. */
static ms_err take_ends(const ms_stagelayout *layout, uint32_t all,
                        uint32_t n_ranks, const ms_stage *stages, uint32_t n,
                        uint32_t *layers, ms_fault *fault)
{
    const ms_policy_value *ends[2] = {layout->first, layout->last};
    uint64_t rest = all, left = n_ranks, chunks = n / n_ranks;
    for (int e = 0; e < 2; e++) {
        rest -= ends[e]->given ? (uint64_t)ends[e]->number : 0;
        left -= ends[e]->given;
    }
    if (rest > all || (left == 0 && rest > 0))
        return ms_fail(fault, MS_EUSAGE, "pipeline:first, last",
                       "let them leave what the ranks between divide",
                       "the model has %u layers", all);
    if (left > 0 && rest % left != 0)
        return fail_rest(rest, (uint32_t)left, "other ranks",
                         "pipeline:first, last", fault);
    for (uint32_t k = 0; k < n; k++) {
        uint64_t own = left > 0 ? rest / left : 0;
        if (stages[k].rank == 0 && ends[0]->given)
            own = (uint64_t)ends[0]->number;
        if (stages[k].rank + 1u == n_ranks && ends[1]->given)
            own = (uint64_t)ends[1]->number;
        if (own % chunks != 0)
            return fail_rest(own, (uint32_t)chunks, "chunks",
                             "pipeline:first, last", fault);
        layers[k] = (uint32_t)(own / chunks);
    }
    return MS_OK;
}

/* ---- which way ----------------------------------------------------------- */

static ms_err check_one_way(const ms_stagelayout *layout, ms_fault *fault)
{
    int ways = layout->layers->given +
               (layout->per_stage->given || layout->less->given) +
               layout->account->given +
               (layout->first->given || layout->last->given);
    if (ways <= 1)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "pipeline", "leave all but one out",
                   "layers=, per_stage= and less=, account=, first= and last= "
                   "each say which layers a stage has");
}

ms_err ms_stagelayout_count(const ms_policy_context *context,
                            const ms_stagelayout *layout, uint32_t *n,
                            ms_fault *fault)
{
    blocks of;
    const char *letters = "";
    uint32_t less[2];
    *n = 0;
    MS_TRY(check_one_way(layout, fault));
    if (is_letters(layout->layers)) {
        MS_TRY(read_letters(context->arena, layout->layers->text, &letters,
                            fault));
        *n = count_of(letters, '|') + 1;
    }
    if (!layout->per_stage->given)
        return MS_OK;
    MS_TRY(list_blocks(context, &of, fault));
    MS_TRY(read_less(layout, less, fault));
    uint64_t each = (uint64_t)layout->per_stage->number;
    *n = (uint32_t)(((uint64_t)layers_of(&of) + less[0] + less[1] + each - 1) /
                    each);
    return MS_OK;
}

static ms_err take(const ms_stagelayout *layout, const blocks *of,
                   uint32_t n_ranks, uint32_t n, const ms_stage *stages,
                   uint32_t *layers, ms_fault *fault)
{
    uint32_t less[2] = {0}, all = layers_of(of);
    if (layout->layers->given)
        return take_numbers(layout->layers->text, n, layers, fault);
    if (layout->account->given)
        return take_account(layout, all, n_ranks, n, layers, fault);
    if (layout->first->given || layout->last->given)
        return take_ends(layout, all, n_ranks, stages, n, layers, fault);
    if (layout->per_stage->given || layout->less->given)
        MS_TRY(read_less(layout, less, fault));
    else if (of->graph->unit_cost != NULL)
        return ms_costsplit_take(of->graph, of->first + 1, all, n, layers,
                                 fault);
    return take_less(all, less, n, "pipeline:less", layers, fault);
}

/* Where a layout does not say so, what predicts further tokens is the last
 * stage's. */
static ms_err take_all(const ms_policy_context *context,
                       const ms_stagelayout *layout, const blocks *of,
                       uint32_t n_ranks, uint32_t n, const ms_stage *stages,
                       uint32_t *layers, ms_fault *fault)
{
    MS_TRY(check_one_way(layout, fault));
    if (is_letters(layout->layers))
        return take_letters(context, layout->layers->text, of, n, stages,
                            layers, fault);
    MS_TRY(take(layout, of, n_ranks, n, stages, layers, fault));
    layers[n - 1] += of->predicting;
    return MS_OK;
}

/* ---- stages without layers ----------------------------------------------- */

/* Between others, and without a layer. */
static bool is_empty(uint32_t k, uint32_t n, const uint32_t *layers)
{
    return k > 0 && k + 1 < n && layers[k] == 0;
}

static ms_err list_empties(const uint32_t *layers, uint32_t n,
                           ms_empty_stages *empty, ms_fault *fault)
{
    uint32_t behind = 0;
    for (uint32_t k = 0; k < n; k++) {
        behind += layers[k];
        if (!is_empty(k, n, layers))
            continue;
        if (empty->n == MS_EMPTY_STAGES)
            return ms_fail(fault, MS_EUSAGE, LAYERS, "give them layers",
                           "more than %u stages without one", MS_EMPTY_STAGES);
        empty->behind[empty->n++] = behind;
    }
    return MS_OK;
}

static ms_err find_empties(const char *text, bool letters, ms_arena *arena,
                           ms_empty_stages *empty, ms_fault *fault)
{
    const char *written = text;
    uint32_t predicts = MS_NONE;
    if (letters)
        MS_TRY(read_letters(arena, text, &written, fault));
    uint32_t n = count_of(written, letters ? '|' : '/') + 1;
    uint32_t *layers = ms_arena_take(arena, n, sizeof *layers);
    if (layers == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(letters ? count_letters(written, layers, &predicts, fault)
                   : take_numbers(text, n, layers, fault));
    return list_empties(layers, n, empty, fault);
}

ms_err ms_stagelayout_empties(const ms_policy_value *layers,
                              ms_empty_stages *empty, ms_fault *fault)
{
    ms_arena scratch = {0};
    if (!layers->given)
        return MS_OK;
    ms_err err =
        find_empties(layers->text, is_letters(layers), &scratch, empty, fault);
    ms_arena_free(&scratch);
    return err;
}

/* The unit of the model's i-th stage without layers. */
static ms_err find_unit(const ms_graph *graph, uint32_t i, uint32_t *unit,
                        ms_fault *fault)
{
    char name[32];
    snprintf(name, sizeof name, MS_EMPTY_STAGE "%u", i);
    for (*unit = 0; *unit < graph->n_units; ++*unit)
        if (strcmp(graph->unit_name[*unit], name) == 0)
            return MS_OK;
    return ms_fail(fault, MS_EUSAGE, LAYERS, "give it a layer",
                   "a stage without layers before anything is computed");
}

/* ---- all of it ----------------------------------------------------------- */

/* The first and the last stage may have no layers, where the model has units
 * before or behind them; others where the model was made so. */
static ms_err check_layers(const ms_policy_context *context, const blocks *of,
                           uint32_t n, const uint32_t *layers, ms_fault *fault)
{
    uint64_t sum = 0;
    bool empties = context->shape != NULL && context->shape->empty_stages.n > 0;
    for (uint32_t k = 0; k < n; k++) {
        bool may =
            (k == 0 && n > 1 && of->n > 0 && of->first[0] > 0) ||
            (k + 1 == n && n > 1 && of->behind < context->graph->n_units) ||
            (empties && is_empty(k, n, layers));
        sum += layers[k];
        if (layers[k] == 0 && !may)
            return ms_fail(fault, MS_EUSAGE, "pipeline",
                           "take fewer ranks or chunks, or other layers=",
                           "%u layers do not divide into %u stages: stage %u "
                           "would have none",
                           layers_of(of), n, k);
    }
    return sum == of->n ? MS_OK
                        : fail_sum(layers_of(of), sum - of->predicting, fault);
}

/* Where stage k begins; *empty: how many without layers came before it. */
static ms_err find_first(const ms_policy_context *context, const blocks *of,
                         uint32_t k, uint32_t n, const uint32_t *layers,
                         uint32_t block, uint32_t *empty, ms_stage *stages,
                         ms_fault *fault)
{
    stages[k].first = 0;
    if (is_empty(k, n, layers))
        return find_unit(context->graph, (*empty)++, &stages[k].first, fault);
    if (k > 0 && layers[k] > 0)
        stages[k].first = of->first[block];
    else if (k > 0 && is_empty(k - 1, n, layers))
        stages[k].first = stages[k - 1].first + 1;
    else if (k > 0)
        stages[k].first = of->behind;
    return MS_OK;
}

ms_err ms_stagelayout_divide(const ms_policy_context *context,
                             const ms_stagelayout *layout, uint32_t n_ranks,
                             uint32_t n, ms_stage *stages, ms_fault *fault)
{
    blocks of;
    uint32_t block = 0, empty = 0;
    uint32_t *layers = ms_arena_take(context->arena, n, sizeof *layers);
    if (layers == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(list_blocks(context, &of, fault));
    MS_TRY(take_all(context, layout, &of, n_ranks, n, stages, layers, fault));
    MS_TRY(check_layers(context, &of, n, layers, fault));
    for (uint32_t k = 0; k < n; k++) {
        MS_TRY(find_first(context, &of, k, n, layers, block, &empty, stages,
                          fault));
        block += layers[k];
        if (k > 0)
            stages[k - 1].last = stages[k].first - 1;
    }
    stages[n - 1].last = context->graph->n_units - 1;
    return MS_OK;
}
