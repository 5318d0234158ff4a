/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/common/copyqueue.h"

static const ms_copyqueue_node nothing = {.from_ns = -MS_COPYQUEUE_NEVER,
                                          .by_ns = MS_COPYQUEUE_NEVER,
                                          .first_from = MS_NONE,
                                          .first_by = MS_NONE};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* One behind the other. */
static ms_copyqueue_node join(const ms_copyqueue_node *a,
                              const ms_copyqueue_node *b)
{
    return (ms_copyqueue_node){
        .busy_ns = a->busy_ns + b->busy_ns,
        .from_ns = later(a->from_ns + b->busy_ns, b->from_ns),
        .by_ns = sooner(b->by_ns - a->busy_ns, a->by_ns),
        .first_from = lesser(a->first_from, b->first_from),
        .last_from = greater(a->last_from, b->last_from),
        .first_by = lesser(a->first_by, b->first_by),
        .last_by = greater(a->last_by, b->last_by)};
}

ms_err ms_copyqueue_open(ms_copyqueue *q, uint32_t n_places, ms_arena *arena,
                         ms_fault *fault)
{
    q->leaves = 1;
    while (q->leaves < n_places)
        q->leaves *= 2;
    q->nodes =
        ms_arena_take_raw(arena, 2 * (size_t)q->leaves, sizeof *q->nodes);
    if (q->nodes == NULL)
        return ms_fail_nomem(fault);
    ms_copyqueue_clear(q);
    return MS_OK;
}

void ms_copyqueue_clear(ms_copyqueue *q)
{
    for (uint32_t i = 0; i < 2 * q->leaves; i++)
        q->nodes[i] = nothing;
}

static void add(ms_copyqueue_node *node, int64_t from_ns, int64_t by_ns)
{
    node->from_ns += from_ns;
    node->more_from_ns += from_ns;
    node->by_ns += by_ns;
    node->more_by_ns += by_ns;
}

/* What was to be added to both halves of a node is. */
static void settle(ms_copyqueue *q, uint32_t at)
{
    ms_copyqueue_node *node = &q->nodes[at];
    if (node->more_from_ns == 0 && node->more_by_ns == 0)
        return;
    add(&q->nodes[2 * at], node->more_from_ns, node->more_by_ns);
    add(&q->nodes[2 * at + 1], node->more_from_ns, node->more_by_ns);
    node->more_from_ns = node->more_by_ns = 0;
}

static void pull(ms_copyqueue *q, uint32_t at)
{
    q->nodes[at] = join(&q->nodes[2 * at], &q->nodes[2 * at + 1]);
}

void ms_copyqueue_set(ms_copyqueue *q, uint32_t place,
                      const ms_copyqueue_copy *copy)
{
    uint32_t leaf = q->leaves + place;
    for (uint32_t size = q->leaves; size > 1; size /= 2)
        settle(q, leaf / size);
    q->nodes[leaf] = nothing;
    if (copy != NULL)
        q->nodes[leaf] =
            (ms_copyqueue_node){.busy_ns = copy->busy_ns,
                                .from_ns = copy->from_ns + copy->busy_ns,
                                .by_ns = copy->by_ns - copy->busy_ns,
                                .first_from = copy->from_call,
                                .last_from = copy->from_call,
                                .first_by = copy->by_call,
                                .last_by = copy->by_call};
    for (uint32_t at = leaf / 2; at > 0; at /= 2)
        pull(q, at);
}

/* ---- shifts -------------------------------------------------------------- */

static void shift(ms_copyqueue *q, uint32_t at, uint32_t call, int64_t ns)
{
    ms_copyqueue_node *node = &q->nodes[at];
    bool from = node->last_from >= call && node->first_from != MS_NONE;
    bool by = node->last_by >= call && node->first_by != MS_NONE;
    bool all_from = node->first_from >= call, all_by = node->first_by >= call;
    if ((!from || all_from) && (!by || all_by)) {
        add(node, from ? ns : 0, by ? ns : 0);
        return;
    }
    settle(q, at);
    shift(q, 2 * at, call, ns);
    shift(q, 2 * at + 1, call, ns);
    pull(q, at);
}

void ms_copyqueue_shift(ms_copyqueue *q, uint32_t call, int64_t ns)
{
    shift(q, 1, call, ns);
}

/* ---- what is left -------------------------------------------------------- */

/* When the copies before a place have ended, the first ones first; the node
 * whose bound says so, or 0. */
static int64_t ended_ns(const ms_copyqueue *q, uint32_t place, uint32_t *node)
{
    int64_t ns = 0, more_ns = 0;
    uint32_t at = 1;
    *node = 0;
    for (uint32_t half = q->leaves / 2; half > 0; half /= 2) {
        const ms_copyqueue_node *left = &q->nodes[2 * at];
        more_ns += q->nodes[at].more_from_ns;
        if (place & half) {
            ns += left->busy_ns;
            if (left->from_ns + more_ns >= ns) {
                ns = left->from_ns + more_ns;
                *node = 2 * at;
            }
        }
        at = 2 * at + ((place & half) > 0);
    }
    return ns;
}

/* When the copies behind a place have to begin, the last ones first. */
static int64_t begun_ns(const ms_copyqueue *q, uint32_t place, uint32_t *node)
{
    int64_t ns = MS_COPYQUEUE_NEVER, more_ns = 0;
    uint32_t at = 1;
    *node = 0;
    for (uint32_t half = q->leaves / 2; half > 0; half /= 2) {
        const ms_copyqueue_node *right = &q->nodes[2 * at + 1];
        more_ns += q->nodes[at].more_by_ns;
        if (!(place & half)) {
            ns -= right->busy_ns;
            if (right->by_ns + more_ns < ns) {
                ns = right->by_ns + more_ns;
                *node = 2 * at + 1;
            }
        }
        at = 2 * at + ((place & half) > 0);
    }
    return ns;
}

/* ---- where it comes from ------------------------------------------------- */

static uint32_t from_leaf(const ms_copyqueue *q, uint32_t at)
{
    while (at < q->leaves) {
        const ms_copyqueue_node *left = &q->nodes[2 * at], *right = left + 1;
        at = 2 * at + (right->from_ns >= left->from_ns + right->busy_ns);
    }
    return at;
}

static uint32_t by_leaf(const ms_copyqueue *q, uint32_t at)
{
    while (at < q->leaves) {
        const ms_copyqueue_node *left = &q->nodes[2 * at], *right = left + 1;
        at = 2 * at + (left->by_ns > right->by_ns - left->busy_ns);
    }
    return at;
}

ms_copyqueue_gap ms_copyqueue_trace(const ms_copyqueue *q, uint32_t place,
                                    ms_copyqueue_source *from,
                                    ms_copyqueue_source *by)
{
    uint32_t from_node, by_node;
    ms_copyqueue_gap gap = {ended_ns(q, place, &from_node),
                            begun_ns(q, place, &by_node)};
    *from = *by = (ms_copyqueue_source){MS_NONE, MS_NONE};
    if (from_node > 0) {
        uint32_t leaf = from_leaf(q, from_node);
        *from =
            (ms_copyqueue_source){leaf - q->leaves, q->nodes[leaf].first_from};
    }
    if (by_node > 0) {
        uint32_t leaf = by_leaf(q, by_node);
        *by = (ms_copyqueue_source){leaf - q->leaves, q->nodes[leaf].first_by};
    }
    return gap;
}
