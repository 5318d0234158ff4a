/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/oplives.h"

#include <string.h>

/* Is the module within the first n bytes of path, or path itself? */
static bool lies_in(const char *module, const char *path, size_t n)
{
    return strncmp(module, path, n) == 0 &&
           (module[n] == '.' || module[n] == '\0');
}

/* Module.__call__ holds its arguments until forward returns: what node n
 * reads from outside its modules lives to the end of the outermost of them
 * that does not contain its producer. */
static uint32_t held_until(const ms_opgraph *ops, uint32_t n,
                           const char *producer)
{
    const char *path = ops->modules[ops->nodes[n].module];
    size_t length = 0;

    for (const char *c = path; *path; c++) {
        if (*c != '.' && *c != '\0')
            continue;
        if (!producer || !lies_in(producer, path, (size_t)(c - path))) {
            length = (size_t)(c - path);
            break;
        }
        if (*c == '\0')
            break;
    }
    if (length == 0)
        return n;
    while (n + 1 < ops->n_nodes &&
           lies_in(ops->modules[ops->nodes[n + 1].module], path, length))
        n++;
    return n;
}

static void find_uses(const ms_opgraph *ops, const char **producer,
                      ms_oplives *lives)
{
    for (uint32_t n = 0; n < ops->n_nodes; n++) {
        const ms_opnode *node = &ops->nodes[n];
        for (uint32_t i = 0; i < node->n_in; i++) {
            uint32_t t = node->in[i];
            uint32_t end = held_until(ops, n, producer[t]);
            if (lives->last_use[t] == MS_NONE || lives->last_use[t] < end)
                lives->last_use[t] = end;
            lives->last_read[ops->tensors[t].storage] = n;
        }
        for (uint32_t k = 0; k < node->n_out; k++)
            producer[node->out[k]] = ops->modules[node->module];
    }
}

/* What the exporter saw, where it is not before the last reader; the loss
 * stays. */
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
    find_uses(ops, producer, lives);
    find_readers(ops, reader);
    take_ends(ops, reader, lives);
    list_endings(ops, next, lives);
    return MS_OK;
}
