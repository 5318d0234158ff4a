/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_POLICIES_BLOCKMENU_H
#define MS_POLICIES_BLOCKMENU_H

/* What one block of a DAG (dagblocks.h) can do, each found by the exhaustive
 * search of pebble.c beside its input, which is there and not counted:
 *
 *     PASS   from nothing to its output alone
 *     TURN   from what later backwards hand to it, to what it hands on and all
 *            of its nodes that nobody reads
 *     BOTH   to its output and held_bytes at most, the output included; the
 *            blocks behind it run; then from these and what is handed to it, as
 *            TURN does
 *
 * each the fastest in its memory, from more memory to less.  Equal blocks share
 * their menus. */

#include "policies/solve/blocks/dagblocks.h"

enum { MS_BLOCK_PASS, MS_BLOCK_TURN, MS_BLOCK_BOTH, MS_BLOCK_WAYS };

typedef struct ms_blockoption {
    uint64_t time_ns;
    /* The most that is there: before the blocks behind it run, the output and
     * what stays included, and after. */
    uint64_t forward_bytes, turn_bytes;
    uint64_t held_bytes; /* that stay while the blocks behind it run */
    uint32_t n, split;   /* makes; those before split come in forward */
    uint8_t *made;       /* by ms_blockmenu_node */
} ms_blockoption;

typedef struct ms_blockmenu {
    uint32_t n[MS_BLOCK_WAYS], capacity[MS_BLOCK_WAYS];
    ms_blockoption *options[MS_BLOCK_WAYS];
} ms_blockmenu;

typedef struct ms_blockmenus {
    uint32_t *of; /* per block: its menu */
    uint32_t n, capacity;
    ms_blockmenu *menus;
    uint32_t unsolved; /* a block for which the search did not end; MS_NONE */
} ms_blockmenus;

/* The search gives up behind so many sets, and a menu is done behind so many
 * more: what it has by then is in it. */
#define MS_BLOCKMENU_STATES (UINT32_C(1) << 17)
#define MS_BLOCKMENU_ALL (UINT32_C(1) << 20)
ms_err ms_blockmenu_find(const ms_nodedag *dag, const ms_dagblocks *blocks,
                         ms_arena *arena, ms_blockmenus *menus,
                         ms_fault *fault);

/* The node of the DAG that an option of this block makes. */
uint32_t ms_blockmenu_node(const ms_dagblocks *blocks, uint32_t block,
                           uint8_t made);

#endif
