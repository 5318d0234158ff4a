/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/cut/mincut.h"

#include <string.h>

#define ENDLESS (UINT64_MAX / 2)

typedef struct arc {
    uint32_t to, next; /* next: of the same node, or MS_NONE */
    uint64_t room;     /* left */
} arc;

/* Node 2 v is where v comes in, 2 v + 1 where it goes out. */
typedef struct flow {
    uint32_t n, source, sink;
    uint32_t n_arcs;
    arc *arcs; /* an arc and its reverse are 2 i, 2 i + 1 */
    uint32_t *first, *level, *next; /* per node */
    uint32_t *list, *path;          /* of nodes; of arcs */
} flow;

static void add(flow *f, uint32_t from, uint32_t to, uint64_t room)
{
    f->arcs[f->n_arcs] = (arc){to, f->first[from], room};
    f->first[from] = f->n_arcs++;
    f->arcs[f->n_arcs] = (arc){from, f->first[to], 0};
    f->first[to] = f->n_arcs++;
}

static void add_all(flow *f, const ms_mincut_net *net)
{
    for (uint32_t v = 0; v < net->n; v++) {
        add(f, 2 * v, 2 * v + 1, net->weight[v]);
        if (net->banned[v])
            add(f, f->source, 2 * v, ENDLESS);
        if (net->needed[v])
            add(f, 2 * v + 1, f->sink, ENDLESS);
        for (uint32_t i = net->dep_at[v]; i < net->dep_at[v + 1]; i++)
            add(f, 2 * net->dep[i] + 1, 2 * v, ENDLESS);
    }
}

/* How far each node is from the source, MS_NONE: it cannot be reached. */
static bool find_levels(flow *f)
{
    uint32_t n = 0;
    for (uint32_t u = 0; u < f->n; u++)
        f->level[u] = MS_NONE;
    f->level[f->source] = 0;
    f->list[n++] = f->source;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t u = f->list[i];
        for (uint32_t a = f->first[u]; a != MS_NONE; a = f->arcs[a].next)
            if (f->arcs[a].room > 0 && f->level[f->arcs[a].to] == MS_NONE) {
                f->level[f->arcs[a].to] = f->level[u] + 1;
                f->list[n++] = f->arcs[a].to;
            }
    }
    return f->level[f->sink] != MS_NONE;
}

/* Sends what the path of n arcs has room for; the place of its first full
 * one. */
static uint32_t send(flow *f, uint32_t n, uint64_t *sent)
{
    uint64_t room = ENDLESS;
    uint32_t full = 0;
    for (uint32_t i = 0; i < n; i++)
        room =
            f->arcs[f->path[i]].room < room ? f->arcs[f->path[i]].room : room;
    for (uint32_t i = n; i-- > 0;) {
        f->arcs[f->path[i]].room -= room;
        f->arcs[f->path[i] ^ 1].room += room;
        full = f->arcs[f->path[i]].room == 0 ? i : full;
    }
    *sent += room;
    return full;
}

static void send_all(flow *f, uint64_t *sent)
{
    uint32_t n = 0, u = f->source;
    memcpy(f->next, f->first, f->n * sizeof *f->next);
    for (;;) {
        if (u == f->sink) {
            n = send(f, n, sent);
            u = f->arcs[f->path[n] ^ 1].to;
            continue;
        }
        uint32_t a = f->next[u];
        if (a == MS_NONE) {
            if (n == 0)
                return;
            u = f->arcs[f->path[--n] ^ 1].to;
            f->next[u] = f->arcs[f->next[u]].next;
        } else if (f->arcs[a].room > 0 &&
                   f->level[f->arcs[a].to] == f->level[u] + 1) {
            f->path[n++] = a;
            u = f->arcs[a].to;
        } else {
            f->next[u] = f->arcs[a].next;
        }
    }
}

ms_err ms_mincut_find(const ms_mincut_net *net, ms_arena *arena,
                      uint8_t *is_saved, uint64_t *weight, ms_fault *fault)
{
    size_t n = 2 * (size_t)net->n + 2;
    flow f = {.n = (uint32_t)n, .source = 2 * net->n, .sink = 2 * net->n + 1};
    uint32_t **columns[] = {&f.first, &f.level, &f.next, &f.list, &f.path};
    f.arcs = ms_arena_take_raw(
        arena, 2 * (3 * (size_t)net->n + net->dep_at[net->n]) + 1,
        sizeof *f.arcs);
    if (f.arcs == NULL)
        return ms_fail_nomem(fault);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        *columns[i] = ms_arena_take_raw(arena, n, sizeof **columns[i]);
        if (*columns[i] == NULL)
            return ms_fail_nomem(fault);
    }
    for (size_t u = 0; u < n; u++)
        f.first[u] = MS_NONE;
    add_all(&f, net);
    *weight = 0;
    while (find_levels(&f))
        send_all(&f, weight);
    for (uint32_t v = 0; v < net->n; v++)
        is_saved[v] =
            f.level[2 * v] != MS_NONE && f.level[2 * v + 1] == MS_NONE;
    return MS_OK;
}
