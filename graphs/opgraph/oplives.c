/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/opgraph/oplives.h"

#include <string.h>

/* Is the module within the first n bytes of path, or path itself? */
static bool lies_in(const char *module, const char *path, size_t n)
{
    return strncmp(module, path, n) == 0 &&
           (module[n] == '.' || module[n] == '\0');
}

/* How deep a module lies: "" 0, "h" 1, "h.3" 2. */
static uint32_t depth_of(const char *path)
{
    uint32_t depth = *path != '\0';
    for (const char *c = path; *c; c++)
        depth += *c == '.';
    return depth;
}

/* How many modules from the outside two paths share. */
static uint32_t shared_depth(const char *a, const char *b)
{
    uint32_t shared = 0;
    if (*a == '\0')
        return 0;
    for (const char *c = a;; c++) {
        bool ends = *c == '.' || *c == '\0';
        if (ends && !lies_in(b, a, (size_t)(c - a)))
            break;
        shared += ends;
        if (*c == '\0')
            break;
    }
    return shared;
}

/* end[d] becomes the last node of the call at depth d that node n lies in;
 * before, it is what it is for the next node. */
static void step_back(const ms_opgraph *ops, uint32_t n, uint32_t *end)
{
    const ms_opnode *node = &ops->nodes[n];
    const char *path = ops->modules[node->module];
    uint32_t shared = 0;
    if (n + 1 < ops->n_nodes) {
        if (node[1].module == node->module)
            return;
        shared = shared_depth(path, ops->modules[node[1].module]);
    }
    for (uint32_t d = shared + 1; d <= depth_of(path); d++)
        end[d] = n;
}

/* Module.__call__ holds its arguments until forward returns: what node n
 * reads from outside its modules lives to the end of the outermost of them
 * that does not contain its producer. */
static uint32_t held_until(const ms_opgraph *ops, uint32_t n,
                           const char *producer, const uint32_t *end)
{
    const char *path = ops->modules[ops->nodes[n].module];
    uint32_t shared = producer ? shared_depth(path, producer) : 0;
    if (producer == path || shared == depth_of(path))
        return n;
    return end[shared + 1];
}

static ms_err find_uses(const ms_opgraph *ops, ms_arena *arena,
                        const char **producer, ms_oplives *lives,
                        ms_fault *fault)
{
    uint32_t deepest = 0, *end;
    for (uint32_t m = 0; m < ops->n_modules; m++)
        if (depth_of(ops->modules[m]) > deepest)
            deepest = depth_of(ops->modules[m]);
    end = ms_arena_take(arena, (size_t)deepest + 2, sizeof *end);
    if (!end)
        return ms_fail_nomem(fault);
    for (uint32_t n = 0; n < ops->n_nodes; n++)
        for (uint32_t k = 0; k < ops->nodes[n].n_out; k++)
            producer[ops->nodes[n].out[k]] = ops->modules[ops->nodes[n].module];
    for (uint32_t n = ops->n_nodes; n-- > 0;) {
        const ms_opnode *node = &ops->nodes[n];
        step_back(ops, n, end);
        for (uint32_t i = 0; i < node->n_in; i++) {
            uint32_t t = node->in[i], s = ops->tensors[t].storage;
            uint32_t until = held_until(ops, n, producer[t], end);
            if (lives->last_use[t] == MS_NONE || lives->last_use[t] < until)
                lives->last_use[t] = until;
            if (lives->last_read[s] == MS_NONE)
                lives->last_read[s] = n;
        }
    }
    return MS_OK;
}

/* Takes the end that the exporter saw, unless it is before the last reader; the
 * loss stays. */
static void take_ends(const ms_opgraph *ops, const uint32_t *last_reader,
                      ms_oplives *lives)
{
    const ms_opnode *last = &ops->nodes[ops->n_nodes - 1];
    uint32_t loss = last->n_out > 0 ? last->out[0] : MS_NONE;
    memcpy(lives->until, lives->last_use,
           ops->n_tensors * sizeof *lives->until);
    for (uint32_t n = 0; n < ops->n_nodes; n++)
        for (uint32_t i = 0; i < ops->nodes[n].n_ends; i++) {
            uint32_t t = ops->nodes[n].ends[i];
            bool read = last_reader[t] != MS_NONE;
            if (t != loss)
                lives->until[t] =
                    read && last_reader[t] > n ? last_reader[t] : n;
        }
}

static void find_readers(const ms_opgraph *ops, uint32_t *last_reader)
{
    memset(last_reader, 0xff, ops->n_tensors * sizeof *last_reader);
    for (uint32_t n = 0; n < ops->n_nodes; n++) {
        const ms_opnode *node = &ops->nodes[n];
        for (uint32_t i = 0; i < node->n_in; i++)
            last_reader[node->in[i]] = n;
        for (uint32_t k = 0; k < node->n_out; k++)
            last_reader[node->out[k]] = n;
    }
}

/* The tensors by the node after which they go; next: room for a cursor per
 * node. */
static void list_endings(const ms_opgraph *ops, uint32_t *next,
                         ms_oplives *lives)
{
    for (uint32_t t = 0; t < ops->n_tensors; t++)
        if (lives->until[t] != MS_NONE)
            lives->at[lives->until[t] + 1]++;
    for (uint32_t n = 0; n < ops->n_nodes; n++) {
        next[n] = lives->at[n];
        lives->at[n + 1] += lives->at[n];
    }
    for (uint32_t t = 0; t < ops->n_tensors; t++)
        if (lives->until[t] != MS_NONE)
            lives->list[next[lives->until[t]]++] = t;
}

ms_err ms_oplives_find(const ms_opgraph *ops, ms_arena *arena,
                       ms_oplives *lives, ms_fault *fault)
{
    size_t word = sizeof(uint32_t), n = ops->n_tensors;
    const char **producer = ms_arena_take(arena, n, sizeof *producer);
    uint32_t *reader = ms_arena_take_raw(arena, n, word);
    uint32_t *next = ms_arena_take_raw(arena, ops->n_nodes, word);
    lives->last_use = ms_arena_take_raw(arena, n, word);
    lives->last_read = ms_arena_take_raw(arena, ops->n_storages, word);
    lives->until = ms_arena_take_raw(arena, n, word);
    lives->list = ms_arena_take_raw(arena, n, word);
    lives->at = ms_arena_take(arena, ops->n_nodes + 1, word);
    if (!producer || !reader || !next || !lives->last_use ||
        !lives->last_read || !lives->until || !lives->list || !lives->at)
        return ms_fail_nomem(fault);
    memset(lives->last_use, 0xff, n * word);
    memset(lives->last_read, 0xff, ops->n_storages * word);
    MS_TRY(find_uses(ops, arena, producer, lives, fault));
    find_readers(ops, reader);
    take_ends(ops, reader, lives);
    list_endings(ops, next, lives);
    return MS_OK;
}
