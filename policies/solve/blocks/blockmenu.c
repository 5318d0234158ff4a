/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policies/solve/blocks/blockmenu.h"

#include <string.h>

typedef ms_pebble_set set;

/* A block as a DAG of its own: its nodes of forward, what is handed to it, the
 * instant in which it is (hand), its nodes of backward. */
typedef struct part {
    ms_nodedag dag;
    uint64_t cost_ns[MS_PEBBLE_NODES], bytes[MS_PEBBLE_NODES];
    uint32_t dep_at[MS_PEBBLE_NODES + 1], *dep;
    uint32_t hand, output; /* output: MS_NONE for the last block */
    set handed, ends, goal;
} part;

typedef struct finder {
    const ms_nodedag *dag;
    const ms_dagblocks *blocks;
    ms_arena *arena;
    ms_fault *fault;
    ms_blockmenus *menus;
    uint32_t *local;   /* per node: in the block at hand, or MS_NONE */
    uint8_t *is_read;  /* per node */
    const part **part; /* per menu */
} finder;

static set bit(uint32_t v)
{
    return UINT64_C(1) << v;
}

static uint64_t bytes_of(const part *p, set of)
{
    uint64_t bytes = 0;
    for (; of != 0; of &= of - 1)
        bytes += p->bytes[__builtin_ctzll(of)];
    return bytes;
}

/* ---- a block as a DAG ---------------------------------------------------- */

static uint32_t count(const uint32_t *at, uint32_t block)
{
    return at[block + 1] - at[block];
}

uint32_t ms_blockmenu_node(const ms_dagblocks *blocks, uint32_t block,
                           uint8_t made)
{
    uint32_t n = count(blocks->forward_at, block);
    if (made < n)
        return blocks->forward[blocks->forward_at[block] + made];
    n += count(blocks->handed_at, block) + 1;
    return blocks->backward[blocks->backward_at[block] + made - n];
}

static void number(const finder *f, const uint32_t *at, const uint32_t *nodes,
                   uint32_t block, uint32_t first)
{
    for (uint32_t i = at[block]; i < at[block + 1]; i++)
        f->local[nodes[i]] = first + i - at[block];
}

static void forget(const finder *f, const uint32_t *at, const uint32_t *nodes,
                   uint32_t block)
{
    for (uint32_t i = at[block]; i < at[block + 1]; i++)
        f->local[nodes[i]] = MS_NONE;
}

/* What is not of the block is its input, or was dropped from its reads. */
static void add_node(const finder *f, part *p, uint32_t v, bool reads)
{
    const ms_nodedag *dag = f->dag;
    uint32_t at = p->dag.n++, n = p->dep_at[at];
    p->cost_ns[at] = reads ? dag->cost_ns[v] : 0;
    p->bytes[at] = dag->bytes[v];
    for (uint32_t i = dag->dep_at[v]; reads && i < dag->dep_at[v + 1]; i++)
        if (f->local[dag->dep[i]] != MS_NONE)
            p->dep[n++] = f->local[dag->dep[i]];
    p->dep_at[at + 1] = n;
    if (reads && !f->is_read[v])
        p->ends |= bit(at);
}

static void add_hand(part *p)
{
    uint32_t at = p->hand = p->dag.n++, n = p->dep_at[at];
    if (p->output != MS_NONE)
        p->dep[n++] = p->output;
    p->dep_at[at + 1] = n;
}

static uint32_t count_reads(const finder *f, uint32_t b)
{
    const ms_dagblocks *blocks = f->blocks;
    const ms_nodedag *dag = f->dag;
    uint32_t n = 1;
    for (uint32_t i = blocks->forward_at[b]; i < blocks->forward_at[b + 1]; i++)
        n += dag->dep_at[blocks->forward[i] + 1] -
             dag->dep_at[blocks->forward[i]];
    for (uint32_t i = blocks->backward_at[b]; i < blocks->backward_at[b + 1];
         i++)
        n += dag->dep_at[blocks->backward[i] + 1] -
             dag->dep_at[blocks->backward[i]];
    return n;
}

static void fill_part(const finder *f, uint32_t b, part *p)
{
    const ms_dagblocks *k = f->blocks;
    uint32_t n_forward = count(k->forward_at, b);
    uint32_t n_handed = count(k->handed_at, b);
    number(f, k->forward_at, k->forward, b, 0);
    number(f, k->handed_at, k->handed, b, n_forward);
    number(f, k->backward_at, k->backward, b, n_forward + n_handed + 1);
    p->output = b + 1 < k->n ? n_forward - 1 : MS_NONE;
    for (uint32_t i = k->forward_at[b]; i < k->forward_at[b + 1]; i++)
        add_node(f, p, k->forward[i], true);
    for (uint32_t i = k->handed_at[b]; i < k->handed_at[b + 1]; i++) {
        p->handed |= bit(p->dag.n);
        add_node(f, p, k->handed[i], false);
    }
    add_hand(p);
    for (uint32_t i = k->backward_at[b]; i < k->backward_at[b + 1]; i++)
        add_node(f, p, k->backward[i], true);
    for (uint32_t i = b > 0 ? k->handed_at[b - 1] : 0;
         b > 0 && i < k->handed_at[b]; i++)
        p->goal |= bit(f->local[k->handed[i]]);
    forget(f, k->forward_at, k->forward, b);
    forget(f, k->handed_at, k->handed, b);
    forget(f, k->backward_at, k->backward, b);
}

/* *made: NULL where the block has too many nodes. */
static ms_err make_part(const finder *f, uint32_t b, part **made)
{
    const ms_dagblocks *blocks = f->blocks;
    uint64_t n = 1 + (uint64_t)count(blocks->forward_at, b) +
                 count(blocks->handed_at, b) + count(blocks->backward_at, b);
    *made = NULL;
    if (n > MS_PEBBLE_NODES)
        return MS_OK;
    part *p = ms_arena_take(f->arena, 1, sizeof *p);
    if (p == NULL)
        return ms_fail_nomem(f->fault);
    p->dep = ms_arena_take(f->arena, count_reads(f, b), sizeof *p->dep);
    if (p->dep == NULL)
        return ms_fail_nomem(f->fault);
    fill_part(f, b, p);
    p->dag.cost_ns = p->cost_ns;
    p->dag.bytes = p->bytes;
    p->dag.dep_at = p->dep_at;
    p->dag.dep = p->dep;
    *made = p;
    return MS_OK;
}

static bool is_like(const part *a, const part *b)
{
    uint32_t n = a->dag.n;
    return n == b->dag.n && a->hand == b->hand && a->output == b->output &&
           a->handed == b->handed && a->ends == b->ends && a->goal == b->goal &&
           memcmp(a->bytes, b->bytes, n * sizeof *a->bytes) == 0 &&
           memcmp(a->cost_ns, b->cost_ns, n * sizeof *a->cost_ns) == 0 &&
           memcmp(a->dep_at, b->dep_at, (n + 1) * sizeof *a->dep_at) == 0 &&
           memcmp(a->dep, b->dep, a->dep_at[n] * sizeof *a->dep) == 0;
}

/* ---- what a plan takes --------------------------------------------------- */

static uint64_t more(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static set reads_of(const part *p, uint32_t v)
{
    set reads = 0;
    for (uint32_t i = p->dep_at[v]; i < p->dep_at[v + 1]; i++)
        reads |= bit(p->dep[i]);
    return reads;
}

/* Backward over the makes: what is needed behind each is all that is there. */
static void weigh(const part *p, const ms_pebble_task *task,
                  ms_blockoption *option)
{
    set here = task->goal;
    uint64_t highest = task->hand == MS_NONE ? bytes_of(p, p->handed) : 0;
    highest = (task->given & p->handed) != 0 ? highest : 0;
    option->split = task->goal == p->goal ? 0 : option->n;
    for (uint32_t i = option->n; i-- > 0;) {
        uint32_t v = option->made[i];
        if (v == task->hand) {
            option->turn_bytes = more(highest, bytes_of(p, here | p->handed));
            option->split = i;
            here = (here & ~p->handed) | bit(p->output);
            highest = option->held_bytes = bytes_of(p, here);
            continue;
        }
        highest = more(highest, bytes_of(p, here | bit(v)));
        here = (here & ~bit(v)) | reads_of(p, v);
        highest = more(highest, bytes_of(p, here | bit(v)));
    }
    if (task->hand != MS_NONE || option->split > 0)
        option->forward_bytes = highest;
    else
        option->turn_bytes = highest;
}

static bool is_no_worse(const ms_blockoption *a, const ms_blockoption *b)
{
    return a->time_ns <= b->time_ns && a->held_bytes <= b->held_bytes &&
           a->forward_bytes <= b->forward_bytes &&
           a->turn_bytes <= b->turn_bytes;
}

static ms_err add_option(const finder *f, ms_blockmenu *menu, uint32_t way,
                         const ms_blockoption *option)
{
    ms_blockoption *list = menu->options[way];
    uint32_t n = 0;
    for (uint32_t i = 0; i < menu->n[way]; i++)
        if (is_no_worse(&list[i], option))
            return MS_OK;
    for (uint32_t i = 0; i < menu->n[way]; i++)
        if (!is_no_worse(option, &list[i]))
            list[n++] = list[i];
    list = ms_arena_grow(f->arena, list, &menu->capacity[way], n + 1,
                         sizeof *list);
    if (list == NULL)
        return ms_fail_nomem(f->fault);
    list[n] = *option;
    menu->options[way] = list;
    menu->n[way] = n + 1;
    return MS_OK;
}

/* ---- a menu -------------------------------------------------------------- */

typedef struct chooser {
    const finder *f;
    const part *p;
    ms_blockmenu *menu;
    uint32_t way;
    ms_pebble_task task;
    uint32_t n_states; /* of all searches for the menu */
} chooser;

/* The fastest in so many bytes, into the menu; *found: is there one? */
static ms_err try_bytes(chooser *c, uint64_t bytes, ms_blockoption *option,
                        bool *found)
{
    ms_pebble_part plan;
    *found = false;
    *option = (ms_blockoption){0};
    if (c->n_states > MS_BLOCKMENU_ALL)
        return MS_OK;
    MS_TRY(ms_pebble_part_find(&c->p->dag, &c->task, bytes, c->f->arena, &plan,
                               c->f->fault));
    c->n_states += plan.n_states;
    *found = plan.found;
    if (!plan.found)
        return MS_OK;
    option->time_ns = plan.time_ns;
    option->n = plan.n;
    option->made = plan.made;
    weigh(c->p, &c->task, option);
    return add_option(c->f, c->menu, c->way, option);
}

/* From much memory to little; first: of the fastest. */
static ms_err descend(chooser *c, ms_blockoption *first, bool *any)
{
    ms_blockoption option;
    bool found;
    uint64_t bytes = bytes_of(c->p, UINT64_MAX >> (63 - (c->p->dag.n - 1)));
    MS_TRY(try_bytes(c, bytes, first, any));
    option = *first;
    found = *any;
    while (found) {
        bytes = more(option.forward_bytes, option.turn_bytes);
        if (bytes == 0)
            break;
        MS_TRY(try_bytes(c, bytes - 1, &option, &found));
    }
    return MS_OK;
}

static ms_err choose_pass(chooser *c)
{
    ms_blockoption first;
    bool any;
    c->way = MS_BLOCK_PASS;
    c->task = (ms_pebble_task){.goal = bit(c->p->output),
                               .hand = MS_NONE,
                               .handed = c->p->handed | bit(c->p->hand),
                               .most_states = MS_BLOCKMENU_STATES};
    return descend(c, &first, &any);
}

static ms_err choose_turn(chooser *c)
{
    ms_blockoption first;
    bool any;
    c->way = MS_BLOCK_TURN;
    c->task = (ms_pebble_task){.given = c->p->handed | bit(c->p->hand),
                               .ends = c->p->ends | bit(c->p->hand),
                               .goal = c->p->goal,
                               .hand = MS_NONE,
                               .handed = c->p->handed,
                               .most_states = MS_BLOCKMENU_STATES};
    return descend(c, &first, &any);
}

static ms_err choose_both(chooser *c)
{
    ms_blockoption first;
    bool any;
    c->way = MS_BLOCK_BOTH;
    c->task = (ms_pebble_task){.ends = c->p->ends | bit(c->p->hand),
                               .goal = c->p->goal,
                               .hand = c->p->hand,
                               .handed = c->p->handed,
                               .hand_bytes = UINT64_MAX,
                               .most_states = MS_BLOCKMENU_STATES};
    do {
        MS_TRY(descend(c, &first, &any));
        c->task.hand_bytes = first.held_bytes - 1;
    } while (any && first.held_bytes > c->p->bytes[c->p->output]);
    return MS_OK;
}

static ms_err fill_menu(const finder *f, const part *p, ms_blockmenu *menu)
{
    chooser c = {.f = f, .p = p, .menu = menu};
    MS_TRY(choose_turn(&c));
    if (p->output == MS_NONE)
        return MS_OK;
    MS_TRY(choose_pass(&c));
    return choose_both(&c);
}

/* ---- all of them --------------------------------------------------------- */

static ms_err find_menu(finder *f, uint32_t block)
{
    ms_blockmenus *menus = f->menus;
    part *made;
    MS_TRY(make_part(f, block, &made));
    if (made == NULL) {
        menus->unsolved = block;
        return MS_OK;
    }
    uint32_t m = menus->n;
    while (m > 0 && !is_like(f->part[m - 1], made))
        m--;
    if (m > 0) {
        menus->of[block] = m - 1;
        return MS_OK;
    }
    menus->menus = ms_arena_grow(f->arena, menus->menus, &menus->capacity,
                                 menus->n + 1, sizeof *menus->menus);
    if (menus->menus == NULL)
        return ms_fail_nomem(f->fault);
    f->part[menus->n] = made;
    menus->of[block] = menus->n;
    ms_blockmenu *menu = &menus->menus[menus->n++];
    *menu = (ms_blockmenu){0};
    MS_TRY(fill_menu(f, made, menu));
    if (menu->n[MS_BLOCK_TURN] == 0 ||
        (made->output != MS_NONE && menu->n[MS_BLOCK_PASS] == 0))
        menus->unsolved = block;
    return MS_OK;
}

ms_err ms_blockmenu_find(const ms_nodedag *dag, const ms_dagblocks *blocks,
                         ms_arena *arena, ms_blockmenus *menus, ms_fault *fault)
{
    finder f = {.dag = dag,
                .blocks = blocks,
                .arena = arena,
                .fault = fault,
                .menus = menus};
    *menus = (ms_blockmenus){.unsolved = MS_NONE};
    f.local = ms_arena_take_raw(arena, dag->n + 1u, sizeof *f.local);
    f.is_read = ms_arena_take(arena, dag->n + 1u, 1);
    f.part = ms_arena_take(arena, blocks->n + 1u, sizeof(part *));
    menus->of = ms_arena_take(arena, blocks->n + 1u, sizeof *menus->of);
    if (f.local == NULL || f.is_read == NULL || f.part == NULL ||
        menus->of == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t v = 0; v < dag->n; v++)
        f.local[v] = MS_NONE;
    for (uint32_t i = 0; i < dag->dep_at[dag->n]; i++)
        f.is_read[dag->dep[i]] = 1;
    for (uint32_t b = 0; b < blocks->n && menus->unsolved == MS_NONE; b++)
        MS_TRY(find_menu(&f, b));
    return MS_OK;
}
