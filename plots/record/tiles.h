/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_PLOTS_TILES_H
#define MS_PLOTS_TILES_H

/* An address map (sim/pools/torch/addressmap.h) as a picture can show it: what
 * the figure "address" is drawn from, and what run --json keeps of it.
 *
 * Nouns.  The plane: segments (and ranges, from their first page to their
 * last) lie above each other without the gaps between, those that are there at
 * the start in the order of their addresses, beginning with the highest where
 * the device mostly answers below what it gave before; what comes later takes
 * the lowest place that is free for as long as it is held.  at_bytes counts
 * from the bottom of that.  A tile is a rectangle of the plane over time, of
 * one kind: parameters, activations.
 *
 * Invariants: tiles lie within [0, height_bytes) x [0, end).  A box that is at
 * least a cell high and a cell long is a tile as it is; of smaller ones those
 * of a kind are put together, cell by cell: their tiles have the same area
 * (bytes times time), not their places within the cell, nor is what was apart
 * by less than a cell told apart.  There are about MS_TILES_MOST tiles at most:
 * where there would be more, cells are larger.
 *
 * A worked example: of 1 GiB over 600 ms, a cell is 2.56 MiB by 1 ms.  A block
 * of 64 MiB that lives for 20 ms is a tile.  Ten of 64 MiB that follow each
 * other in the same place within a millisecond, each for 50 us, are one tile of
 * 64 MiB by 0.5 ms. */

#include "sim/pools/torch/addressmap.h"

#define MS_TILES_COLUMNS 600u
#define MS_TILES_ROWS 400u
#define MS_TILES_MOST 5000u
#define MS_TILES_KINDS 12u
/* The last kind: blocks that other streams still use, as a figure says it. */
#define MS_TILES_WAITING "freed, still in use"
#define MS_TILES_WAITING_COLOR "#C98FA3"

typedef struct ms_tile {
    uint64_t at_bytes, bytes; /* bytes > 0 */
    uint64_t from, to;        /* from < to */
} ms_tile;

typedef struct ms_tiles_layer {
    ms_tile *tiles;
    uint32_t n, capacity;
} ms_tiles_layer;

typedef struct ms_tiles_kind {
    const char *name, *color;
    uint64_t peak_bytes; /* when most was live */
    ms_tiles_layer of;
} ms_tiles_kind;

typedef struct ms_tiles {
    const char *allocator; /* any bytes */
    bool has_time;         /* else time counts the events of a step, or */
    const char *counted;   /* what this says; NULL: these */
    uint32_t n_boxes;      /* that tiles were made of; of them put together: */
    uint32_t n_merged;
    uint64_t end;                             /* > 0 */
    uint64_t height_bytes;                    /* > 0 unless nothing was held */
    uint64_t reserved_bytes;                  /* at most */
    uint64_t live_bytes, live_at, idle_bytes; /* at most, when, and what of the
                                                 reserved was unused then */
    ms_tiles_layer segments, pages;           /* what is held */
    ms_tiles_kind kinds[MS_TILES_KINDS];
    uint32_t n_kinds;
} ms_tiles;

/* A colour for one of several kinds without one of their own; the last for what
 * is left. */
#define MS_TILES_COLORS 9u
extern const char *const ms_tiles_colors[MS_TILES_COLORS];

/* Which of the kinds a box is. */
typedef uint32_t ms_tiles_kind_of(const void *of, const ms_address_box *box);

/* tiles has its allocator, has_time, counted, end, and its kinds' names and
 * colours; the rest is filled. */
ms_err ms_tiles_make(const ms_addressmap *map, ms_tiles_kind_of *kind_of,
                     const void *of, ms_arena *arena, ms_tiles *tiles,
                     ms_fault *fault);

#endif
