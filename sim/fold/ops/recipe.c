/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/fold/ops/recipe.h"

#include "sim/graph.h"
#include "sim/replay/streams/inorder.h"

#define OP_WORDS 3u
#define PASS_BITS 8u

/* A row: the storage whose bytes it has, and its category. */
#define CATEGORY_AT 28u
#define STORAGE(word) ((word) & ((1u << CATEGORY_AT) - 1))
#define CATEGORY(word) ((word) >> CATEGORY_AT)
_Static_assert(MS_N_CATEGORIES <= 1u << (32 - CATEGORY_AT), "four bits");

void ms_recipe_open(ms_recipes *recipes, ms_arena *arena)
{
    *recipes = (ms_recipes){.arena = arena};
}

ms_effect ms_recipe_op(const ms_machine *machine, uint64_t ns, uint8_t pass,
                       uint64_t taken_bytes, uint64_t given_bytes)
{
    const ms_plan_op op = {.ns = ns, .pass = pass};
    uint64_t host_ns = ms_inorder_issue_ns(machine, &op);
    return (ms_effect){.device_ns = ns,
                       .behind_ns = host_ns + ns,
                       .host_ns = host_ns,
                       .recompute_ns = pass == MS_RECOMPUTE ? ns : 0,
                       .most_bytes = (int64_t)taken_bytes,
                       .level_bytes =
                           (int64_t)taken_bytes - (int64_t)given_bytes,
                       .runs = true};
}

/* ---- noting -------------------------------------------------------------- */

static void put(ms_recipes *recipes, uint32_t word)
{
    recipes->word[recipes->n_words++] = word;
}

static void put_row_as(ms_recipes *recipes, const ms_cells *cells, uint32_t row,
                       uint8_t category)
{
    const ms_row *it = &cells->plan.row[row];
    recipes->fixed |= it->pool != MS_DEVICE_POOL ||
                      it->storage >= 1u << CATEGORY_AT || /* MS_NONE is, too */
                      it->bytes != cells->graph->storage_bytes[it->storage];
    put(recipes, STORAGE(it->storage) | (uint32_t)category << CATEGORY_AT);
}

static void put_row(ms_recipes *recipes, const ms_cells *cells, uint32_t row)
{
    put_row_as(recipes, cells, row, cells->plan.row[row].category);
}

/* Rows that were there before the call and now count as something else. */
static void put_changes(ms_recipes *recipes, const ms_cells *cells)
{
    uint32_t at = recipes->n_words, n = 0;
    put(recipes, 0);
    for (uint32_t r = 0; r < cells->first_row; r++) {
        if (cells->plan.row[r].category == cells->category[r])
            continue;
        put_row_as(recipes, cells, r, cells->category[r]);
        put_row(recipes, cells, r);
        n++;
    }
    recipes->word[at] = n;
}

static void put_releases(ms_recipes *recipes, const ms_cells *cells,
                         uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        put_row(recipes, cells, cells->plan.release[i]);
}

static void put_op(ms_recipes *recipes, const ms_cells *cells,
                   const ms_plan_op *op)
{
    uint32_t taken = op[1].alloc_at - op->alloc_at;
    uint32_t given = op[1].release_at - op->release_at;
    recipes->fixed |=
        op->of == MS_NONE || op->ns != cells->graph->op_ns[op->of];
    put(recipes, op->of);
    put(recipes, op->pass | taken << PASS_BITS);
    put(recipes, given);
    for (uint32_t r = op->alloc_at; r < op[1].alloc_at; r++)
        put_row(recipes, cells, r);
    put_releases(recipes, cells, op->release_at, op[1].release_at);
}

ms_err ms_recipe_note(ms_recipes *recipes, const ms_cells *cells,
                      uint32_t *first, ms_fault *fault)
{
    const ms_plan *plan = &cells->plan;
    const ms_plan_op *op = plan->op + cells->first_op;
    uint32_t ops = plan->n_ops - cells->first_op;
    uint32_t rows = plan->n_rows - cells->first_row + 2 * cells->first_row;
    uint32_t words = 3 + OP_WORDS * ops + rows + cells->books.n_release;
    uint32_t *word =
        ms_arena_grow(recipes->arena, recipes->word, &recipes->capacity,
                      recipes->n_words + words, sizeof *word);
    if (word == NULL)
        return ms_fail_nomem(fault);
    recipes->word = word;
    *first = recipes->n_words;
    put(recipes, op->release_at);
    put_releases(recipes, cells, 0, op->release_at);
    put_changes(recipes, cells);
    put(recipes, ops);
    for (uint32_t i = 0; i < ops; i++)
        put_op(recipes, cells, &op[i]);
    return MS_OK;
}

/* ---- telling ------------------------------------------------------------- */

static uint64_t sum_of(const uint32_t *rows, uint32_t n,
                       const uint64_t *storage_bytes)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += storage_bytes[STORAGE(rows[i])];
    return bytes;
}

ms_effect ms_recipe_effect(const ms_recipes *recipes, uint32_t first,
                           const ms_graph *graph, const ms_machine *machine)
{
    const uint64_t *bytes = graph->storage_bytes;
    const uint32_t *word = recipes->word + first;
    uint32_t before = *word++;
    ms_effect effect = {0};
    effect.level_bytes -= (int64_t)sum_of(word, before, bytes);
    word += before;
    word += 1 + 2 * (size_t)*word;
    for (uint32_t ops = *word++; ops > 0; ops--) {
        uint32_t of = word[0], taken = word[1] >> PASS_BITS, given = word[2];
        uint8_t pass = (uint8_t)word[1];
        word += OP_WORDS;
        effect = ms_effect_then(
            effect, ms_recipe_op(machine, graph->op_ns[of], pass,
                                 sum_of(word, taken, bytes),
                                 sum_of(word + taken, given, bytes)));
        word += taken + given;
    }
    return effect;
}

/* ---- by category --------------------------------------------------------- */

bool ms_recipe_changes(const ms_recipes *recipes, uint32_t first)
{
    const uint32_t *word = recipes->word + first;
    return word[1 + word[0]] > 0;
}

/* Adds rows, or takes them away (sign -1), and says how many bytes they have.
 */
static int64_t add_rows(const uint32_t *rows, uint32_t n,
                        const uint64_t *storage_bytes, int64_t sign,
                        int64_t *by_category)
{
    int64_t all_bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t bytes = sign * (int64_t)storage_bytes[STORAGE(rows[i])];
        by_category[CATEGORY(rows[i])] += bytes;
        all_bytes += bytes;
    }
    return all_bytes;
}

void ms_recipe_add(const ms_recipes *recipes, uint32_t first,
                   const ms_graph *graph, const int64_t *until_bytes,
                   int64_t by_category[MS_N_CATEGORIES])
{
    const uint64_t *bytes = graph->storage_bytes;
    const uint32_t *word = recipes->word + first;
    uint32_t n = *word++;
    int64_t level = add_rows(word, n, bytes, -1, by_category);
    word += n;
    for (n = *word++; n > 0; n--, word += 2) {
        add_rows(word, 1, bytes, -1, by_category);
        add_rows(word + 1, 1, bytes, 1, by_category);
    }
    for (n = *word++; n > 0; n--) {
        uint32_t taken = word[1] >> PASS_BITS, given = word[2];
        word += OP_WORDS;
        level += add_rows(word, taken, bytes, 1, by_category);
        if (until_bytes != NULL && level == *until_bytes)
            return;
        level += add_rows(word + taken, given, bytes, -1, by_category);
        word += taken + given;
    }
}
