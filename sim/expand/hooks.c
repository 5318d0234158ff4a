/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/expand/hooks.h"
#include "sim/expand/move.h"
#include "sim/graph.h"
#include "sim/program.h"

#include <string.h>

/* A tensor that waits for its copy out: what of it is held. */
typedef struct stashed {
    uint32_t slot, cell, id;
} stashed;

/* Slots that a node has unpacked. */
typedef struct slots {
    uint32_t *slot, n, capacity;
} slots;

typedef struct rank_hooks {
    uint32_t id;    /* tensors that came to the pack hook, so far */
    stashed *stash; /* oldest first: [first, end) */
    uint32_t first, end, capacity;
    slots now, before; /* of the node that runs, of the one before it */
    bool unpacks;      /* the node that runs has asked for a tensor */
    uint32_t end_now, end_before; /* compute ops at which nodes have ended */
} rank_hooks;

/* Saves by op, CSR. */
typedef struct by_op {
    uint32_t *at, *save;
} by_op;

/* How tensors leave and come back: in_line and by_stash below. */
typedef struct way {
    ms_move_call out, in; /* pageable aside */
    /* Before a save leaves, and behind its copy, where the step made it. */
    ms_err (*leave)(ms_books *books, const ms_books_at *at);
    ms_err (*hold)(ms_books *books, const ms_books_at *at, uint32_t slot,
                   uint32_t cell);
    /* A node has asked for its tensors; it has run. */
    ms_err (*await)(ms_books *books, const ms_books_at *at);
    ms_err (*close)(ms_books *books, const ms_books_at *at);
    bool beside; /* copies run beside nodes: what comes is waited for, and its
                    copy on the host goes when it is issued */
} way;

struct ms_hooked {
    const ms_hooks *how;
    const way *way;
    const ms_save *saves;
    uint32_t n_saves;
    by_op made, asked, gone;
    uint8_t *replayed; /* per unit: the hooks of a checkpoint are inside */
    uint8_t *passed;   /* per save: it is not packed */
    uint32_t *last;    /* per storage: its last save, where all are packed */
    /* Per slot, a save in a frame of a rank: the packed copy, what it was
     * unpacked to, and whether that is its storage's own row. */
    uint32_t *host_row, *here_row;
    uint8_t *owns;
    rank_hooks *ranks;
};

bool ms_hooks_packs(const ms_hooks *hooks, const ms_save *save)
{
    return save->op < hooks->ops && save->bytes >= hooks->min_bytes &&
           !(hooks->skips_parameters && save->is_parameter);
}

/* ---- tables -------------------------------------------------------------- */

static uint32_t *take(ms_books *books, size_t n, int fill)
{
    uint32_t *items = ms_arena_take_raw(books->arena, n + 1, sizeof *items);
    if (items)
        memset(items, fill, (n + 1) * sizeof *items);
    return items;
}

static uint32_t backward_of(const ms_graph *graph)
{
    return graph->backward_at[graph->n_units];
}

/* A graph that does not say what its nodes save: each saved storage once,
 * behind the last forward op that touches it, for all backward ops that read
 * it. */
static void derive(const ms_graph *graph, uint32_t *last, uint32_t *first,
                   ms_save *saves, uint32_t *n)
{
    for (uint32_t op = 0; op < graph->step_first; op++) {
        bool forward = op < backward_of(graph);
        for (uint32_t i = graph->in_at[op]; i < graph->in_at[op + 1]; i++) {
            uint32_t s = graph->in[i];
            if (forward)
                last[s] = op;
            else if (first[s] == MS_NONE)
                first[s] = op;
        }
        for (uint32_t i = graph->out_at[op];
             forward && i < graph->out_at[op + 1]; i++)
            last[graph->out[i]] = op;
    }
    for (uint32_t s = graph->n_persistent; s < graph->n_storages; s++)
        if (graph->storage_saved_end[s] != MS_NONE && last[s] != MS_NONE &&
            first[s] != MS_NONE)
            saves[(*n)++] = (ms_save){.bytes = graph->storage_bytes[s],
                                      .storage = s,
                                      .node = MS_NONE,
                                      .op = last[s],
                                      .first = first[s],
                                      .last = graph->storage_saved_end[s]};
}

static ms_err find_saves(ms_books *books, struct ms_hooked *h)
{
    const ms_graph *graph = books->graph;
    h->saves = graph->saves;
    h->n_saves = graph->n_saves;
    if (graph->saves)
        return MS_OK;
    ms_save *saves =
        ms_arena_take(books->arena, graph->n_storages + 1u, sizeof *saves);
    uint32_t *last = take(books, graph->n_storages, 0xff);
    uint32_t *first = take(books, graph->n_storages, 0xff);
    if (!saves || !last || !first)
        return ms_fail_nomem(books->fault);
    derive(graph, last, first, saves, &h->n_saves);
    h->saves = saves;
    return MS_OK;
}

typedef uint32_t (*op_of)(const ms_save *save);

static uint32_t op_made(const ms_save *save)
{
    return save->op;
}

static uint32_t op_first(const ms_save *save)
{
    return save->first;
}

static uint32_t op_last(const ms_save *save)
{
    return save->last;
}

static ms_err sort_by(ms_books *books, const struct ms_hooked *h, op_of of,
                      by_op *by)
{
    uint32_t n_ops = books->graph->n_ops;
    by->at = take(books, n_ops + 1u, 0);
    by->save = take(books, h->n_saves, 0);
    if (!by->at || !by->save)
        return ms_fail_nomem(books->fault);
    for (uint32_t i = 0; i < h->n_saves; i++)
        by->at[of(&h->saves[i]) + 1]++;
    for (uint32_t op = 0; op < n_ops; op++)
        by->at[op + 1] += by->at[op];
    for (uint32_t i = 0; i < h->n_saves; i++)
        by->save[by->at[of(&h->saves[i])]++] = i;
    /* Filling has moved each offset to its end, the offset of the next op. */
    for (uint32_t op = n_ops; op > 0; op--)
        by->at[op] = by->at[op - 1];
    by->at[0] = 0;
    return MS_OK;
}

/* With once, a storage that has been packed whole is not packed again; a view
 * of a part of it is another tensor, and is. */
static ms_err find_passed(ms_books *books, struct ms_hooked *h)
{
    const ms_graph *graph = books->graph;
    uint8_t *packed = ms_arena_take(books->arena, graph->n_storages + 1u, 1);
    h->passed = ms_arena_take(books->arena, h->n_saves + 1u, 1);
    if (!packed || !h->passed)
        return ms_fail_nomem(books->fault);
    for (uint32_t k = 0; k < h->n_saves; k++) {
        uint32_t i = h->made.save[k], s = h->saves[i].storage;
        const ms_save *save = &h->saves[i];
        bool whole = save->bytes >= graph->storage_bytes[s];
        bool parameter = graph->storage_category[s] == MS_PARAMETERS;
        h->passed[i] = !ms_hooks_packs(h->how, save) ||
                       h->replayed[graph->op_unit[save->op]] ||
                       (h->how->once && (parameter || (whole && packed[s])));
        packed[s] |= whole && !h->passed[i];
    }
    return MS_OK;
}

/* Finds the last save of each storage, behind which its SAVED reference ends.
 * Where one of its saves is passed over there is none: the storage stays on the
 * device for that one, as it does without hooks. */
static void find_last(struct ms_hooked *h)
{
    for (uint32_t k = 0; k < h->n_saves; k++)
        h->last[h->saves[h->made.save[k]].storage] = h->made.save[k];
    for (uint32_t i = 0; i < h->n_saves; i++) {
        const ms_save *save = &h->saves[i];
        if (h->passed[i])
            h->last[save->storage] = MS_NONE;
    }
}

static void find_replayed(struct ms_hooked *h, const ms_program *program)
{
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        for (uint32_t u = call->unit; call->verb == MS_RERUN && u <= call->last;
             u++)
            h->replayed[u] = 1;
    }
}

static const way *way_of(const ms_hooks *how);

ms_err ms_hooks_open(ms_books *books, const ms_program *program)
{
    const ms_graph *graph = books->graph;
    ms_arena *arena = books->arena;
    if (!program->hooks.used)
        return MS_OK;
    struct ms_hooked *h = ms_arena_take(arena, 1, sizeof *h);
    if (!h)
        return ms_fail_nomem(books->fault);
    h->how = &program->hooks;
    h->way = way_of(h->how);
    MS_TRY(find_saves(books, h));
    MS_TRY(sort_by(books, h, op_made, &h->made));
    MS_TRY(sort_by(books, h, op_first, &h->asked));
    MS_TRY(sort_by(books, h, op_last, &h->gone));
    size_t n = (size_t)program->n_ranks * program->n_frames * h->n_saves;
    h->last = take(books, graph->n_storages, 0xff);
    h->replayed = ms_arena_take(arena, graph->n_units + 1u, 1);
    h->host_row = take(books, n, 0xff);
    h->here_row = take(books, n, 0xff);
    h->owns = ms_arena_take(arena, n + 1, 1);
    h->ranks = ms_arena_take(arena, program->n_ranks, sizeof *h->ranks);
    if (!h->last || !h->replayed || !h->host_row || !h->here_row || !h->owns ||
        !h->ranks)
        return ms_fail_nomem(books->fault);
    for (uint32_t r = 0; r < program->n_ranks; r++)
        h->ranks[r].end_now = h->ranks[r].end_before = MS_NONE;
    find_replayed(h, program);
    MS_TRY(find_passed(books, h));
    find_last(h);
    books->hooked = h;
    return MS_OK;
}

static uint32_t slot_of(const ms_books *books, const ms_books_at *at,
                        uint32_t save)
{
    const ms_graph *graph = books->graph;
    uint32_t in_frame = graph->n_storages - graph->n_persistent;
    /* at->frame is the frame's offset among cells, not its number; frames of
     * ranks lie one behind the other. */
    uint32_t frames = (books->plan->n_ranks - 1u) * graph->n_persistent;
    uint32_t frame = in_frame > 0 ? (at->frame - frames) / in_frame : 0;
    return frame * books->hooked->n_saves + save;
}

/* ---- the stash ----------------------------------------------------------- */

static ms_err hold(ms_books *books, const ms_books_at *at, uint32_t slot,
                   uint32_t cell)
{
    rank_hooks *r = &books->hooked->ranks[at->rank];
    stashed *stash = ms_arena_grow(books->arena, r->stash, &r->capacity,
                                   r->end + 1, sizeof *stash);
    if (!stash)
        return ms_fail_nomem(books->fault);
    r->stash = stash;
    stash[r->end++] = (stashed){slot, cell, r->id};
    books->state[cell] += MS_REF_HOLD;
    return MS_OK;
}

/* The compute stream waits for the copies of tensors up to id, which go. */
static ms_err let_out(ms_books *books, const ms_books_at *at, uint32_t id)
{
    struct ms_hooked *h = books->hooked;
    rank_hooks *r = &h->ranks[at->rank];
    for (; r->first < r->end && r->stash[r->first].id <= id; r->first++) {
        const stashed *it = &r->stash[r->first];
        MS_TRY(ms_books_reserve(books, 1, 1, 1));
        ms_books_issue(books, at, MS_NONE, MS_COPY, MS_STREAM_COMPUTE, 0);
        if (h->host_row[it->slot] != MS_NONE)
            ms_books_read(books, h->host_row[it->slot]);
        if (books->row[it->cell] != MS_NONE)
            books->plan->row[books->row[it->cell]].waited = true;
        ms_books_unhold(books, it->cell);
    }
    return MS_OK;
}

/* For the save that comes now. */
static ms_err make_room(ms_books *books, const ms_books_at *at)
{
    const struct ms_hooked *h = books->hooked;
    return let_out(books, at, ms_hooks_oldest(h->how, h->ranks[at->rank].id));
}

static bool is_stashed(const rank_hooks *r, uint32_t slot)
{
    for (uint32_t i = r->first; i < r->end; i++)
        if (r->stash[i].slot == slot)
            return true;
    return false;
}

/* ---- out ----------------------------------------------------------------- */

static ms_err copy(ms_books *books, const ms_books_at *at, uint8_t transfer,
                   const ms_save *save)
{
    const struct ms_hooked *h = books->hooked;
    ms_move_call move = transfer == MS_TRANSFER_D2H ? h->way->out : h->way->in;
    move.pageable = h->how->pageable;
    return ms_move_copy(books, at, transfer, move, save->storage, save->bytes);
}

/* Is the storage one that the step makes, and that no replay makes again? */
static bool is_made_once(const ms_books *books, uint32_t storage)
{
    const ms_graph *graph = books->graph;
    return storage >= graph->n_persistent &&
           !books->hooked
                ->replayed[graph->op_unit[graph->storage_maker[storage]]];
}

/* The row that a save copies, or MS_NONE: the policy has not kept it. */
static uint32_t source(const ms_books *books, uint32_t storage, uint32_t cell)
{
    bool is_kept =
        !is_made_once(books, storage) || books->state[cell] & MS_REF_SAVED;
    uint32_t row = books->row[cell];
    if (row == MS_NONE)
        row = ms_books_in(books->shard_row, cell);
    return is_kept ? row : MS_NONE;
}

static ms_err pack(ms_books *books, const ms_books_at *at, uint32_t i)
{
    struct ms_hooked *h = books->hooked;
    const ms_save *save = &h->saves[i];
    rank_hooks *r = &h->ranks[at->rank];
    uint32_t s = save->storage, c = ms_books_cell(books, at, s);
    uint32_t from = source(books, s, c), slot = slot_of(books, at, i);
    r->id++; /* the stash counts all tensors that come, copied or not */
    if (from == MS_NONE || h->passed[i])
        return MS_OK;
    bool lasts = s < books->graph->n_persistent;
    uint32_t holds = books->state[c] & MS_REF_HOLDS;
    if (h->way->leave)
        MS_TRY(h->way->leave(books, at));
    if (!lasts && holds == MS_REF_HOLDS) /* no more can be counted */
        MS_TRY(let_out(books, at, r->id));
    MS_TRY(copy(books, at, MS_TRANSFER_D2H, save));
    ms_books_read(books, from);
    h->host_row[slot] =
        ms_books_take(books, s, MS_ACTIVATIONS, MS_HOST_POOL, true);
    books->plan->row[h->host_row[slot]].bytes = save->bytes;
    if (h->how->pageable || h->how->waits)
        MS_TRY(ms_books_sync(books, at, books->plan->n_ops - 1));
    if (h->way->hold && !lasts)
        MS_TRY(h->way->hold(books, at, slot, c));
    if (h->last[s] == i)
        ms_books_end(books, c, MS_REF_SAVED);
    return MS_OK;
}

ms_err ms_hooks_pack(ms_books *books, const ms_books_at *at, uint32_t op)
{
    const by_op *by = &books->hooked->made;
    if (op >= backward_of(books->graph) ||
        books->hooked->replayed[books->graph->op_unit[op]])
        return MS_OK;
    for (uint32_t k = by->at[op]; k < by->at[op + 1]; k++)
        MS_TRY(pack(books, at, by->save[k]));
    return MS_OK;
}

/* ---- in ------------------------------------------------------------------ */

static void give_host(ms_books *books, uint32_t slot)
{
    uint32_t *row = &books->hooked->host_row[slot];
    if (*row != MS_NONE)
        ms_books_give(books, *row);
    *row = MS_NONE;
}

static void give_here(ms_books *books, const ms_books_at *at, uint32_t slot)
{
    struct ms_hooked *h = books->hooked;
    uint32_t *row = &h->here_row[slot];
    uint32_t s = h->saves[slot % h->n_saves].storage;
    if (*row != MS_NONE && h->owns[slot])
        ms_books_unhold(books, ms_books_cell(books, at, s));
    else if (*row != MS_NONE)
        ms_books_give(books, *row);
    *row = MS_NONE;
}

static ms_err note(ms_books *books, slots *list, uint32_t slot)
{
    uint32_t *items = ms_arena_grow(books->arena, list->slot, &list->capacity,
                                    list->n + 1, sizeof *items);
    if (!items)
        return ms_fail_nomem(books->fault);
    list->slot = items;
    items[list->n++] = slot;
    return MS_OK;
}

/* A tensor that is unpacked to become .grad counts as a gradient already,
 * unless it will be added to one that exists. */
static uint8_t category_of(const ms_books *books, const ms_books_at *at,
                           uint32_t storage)
{
    const ms_graph *graph = books->graph;
    if (graph->storage_category[storage] != MS_BECOMES_GRAD)
        return MS_ACTIVATIONS;
    uint32_t grad = graph->storage_grad[storage];
    if (books->row[ms_books_cell(books, at, grad)] != MS_NONE)
        return MS_TEMPORARIES;
    return ms_books_reduced(books, grad) ? MS_COMMUNICATION : MS_GRADIENTS;
}

/* Copies a packed tensor back to a row of its own, which becomes the storage's
 * row where that is gone: later ops then find it without another copy. */
static ms_err bring(ms_books *books, const ms_books_at *at, uint32_t i,
                    uint32_t slot)
{
    struct ms_hooked *h = books->hooked;
    const ms_save *save = &h->saves[i];
    rank_hooks *r = &h->ranks[at->rank];
    uint32_t s = save->storage, c = ms_books_cell(books, at, s);
    MS_TRY(copy(books, at, MS_TRANSFER_H2D, save));
    uint32_t op = books->plan->n_ops - 1;
    ms_books_read(books, h->host_row[slot]);
    if (r->end_before != MS_NONE)
        books->plan->wait[books->n_wait++] = r->end_before;
    uint32_t row = ms_books_take(books, s, category_of(books, at, s),
                                 MS_DEVICE_POOL, true);
    books->plan->row[row].bytes = save->bytes;
    books->plan->row[row].waited = h->way->beside;
    h->owns[slot] = s >= books->graph->n_persistent && books->row[c] == MS_NONE;
    bool handed_on = h->owns[slot] && save->is_handed_on;
    h->here_row[slot] = handed_on ? MS_NONE : row;
    if (h->owns[slot])
        books->row[c] = row;
    if (handed_on) /* as the graph has it: until the gradients end */
        books->state[c] |= MS_REF_SAVED;
    else if (h->owns[slot])
        books->state[c] += MS_REF_HOLD;
    if (h->how->pageable)
        MS_TRY(ms_books_sync(books, at, op));
    if (h->way->beside)
        give_host(books, slot);
    return note(books, &r->now, slot);
}

/* The compute stream waits for the side stream. */
static ms_err await(ms_books *books, const ms_books_at *at)
{
    struct ms_hooked *h = books->hooked;
    rank_hooks *r = &h->ranks[at->rank];
    if (r->now.n == 0)
        return MS_OK;
    MS_TRY(ms_books_reserve(books, 1, 0, r->now.n));
    ms_books_issue(books, at, MS_NONE, MS_COPY, MS_STREAM_COMPUTE, 0);
    for (uint32_t k = 0; k < r->now.n; k++)
        if (h->here_row[r->now.slot[k]] != MS_NONE)
            ms_books_read(books, h->here_row[r->now.slot[k]]);
    return MS_OK;
}

ms_err ms_hooks_unpack(ms_books *books, const ms_books_at *at, uint32_t op)
{
    struct ms_hooked *h = books->hooked;
    const by_op *by = &h->asked;
    rank_hooks *r = &h->ranks[at->rank];
    if (by->at[op] == by->at[op + 1])
        return MS_OK;
    for (uint32_t k = by->at[op]; k < by->at[op + 1]; k++) {
        uint32_t slot = slot_of(books, at, by->save[k]);
        if (h->host_row[slot] == MS_NONE)
            continue;
        r->unpacks = true;
        if (!is_stashed(r, slot))
            MS_TRY(bring(books, at, by->save[k], slot));
    }
    return books->hooked->way->await ? books->hooked->way->await(books, at)
                                     : MS_OK;
}

/* ---- after the node ------------------------------------------------------ */

static void give_all(ms_books *books, const ms_books_at *at, slots *list)
{
    for (uint32_t k = 0; k < list->n; k++) {
        give_here(books, at, list->slot[k]);
        give_host(books, list->slot[k]);
    }
    list->n = 0;
}

/* With a stash, what a node has unpacked stays until one more node has run.  No
 * forward is left that could wait for the stash, so that the first node empties
 * it. */
static ms_err close_node(ms_books *books, const ms_books_at *at)
{
    rank_hooks *r = &books->hooked->ranks[at->rank];
    slots older = r->before;
    MS_TRY(let_out(books, at, r->id));
    give_all(books, at, &older);
    r->before = r->now;
    r->now = older;
    r->end_before = r->end_now;
    r->end_now = books->last_compute[at->rank];
    return MS_OK;
}

static ms_err close_now(ms_books *books, const ms_books_at *at)
{
    give_all(books, at, &books->hooked->ranks[at->rank].now);
    return MS_OK;
}

/* torch's save_on_cpu: copies are ops of the compute stream. */
static const way in_line = {
    .out = {.in_line = true}, .in = {.in_line = true}, .close = close_now};
/* torchtune's: on a stream of their own. */
static const way by_stash = {
    .out = {.side = true},
    .in = {.side = true, .ahead = true},
    .leave = make_room,
    .hold = hold,
    .await = await,
    .close = close_node,
    .beside = true,
};

static const way *way_of(const ms_hooks *how)
{
    return how->stash > 0 ? &by_stash : &in_line;
}

ms_err ms_hooks_let_go(ms_books *books, const ms_books_at *at, uint32_t op)
{
    struct ms_hooked *h = books->hooked;
    const by_op *by = &h->gone;
    rank_hooks *r = &h->ranks[at->rank];
    if (by->at[op] == by->at[op + 1] || !r->unpacks)
        return MS_OK;
    r->unpacks = false;
    MS_TRY(h->way->close(books, at));
    for (uint32_t k = by->at[op]; k < by->at[op + 1]; k++)
        give_host(books, slot_of(books, at, by->save[k]));
    return MS_OK;
}

ms_err ms_hooks_rest(ms_books *books, const ms_books_at *at,
                     const ms_call *call)
{
    rank_hooks *r = &books->hooked->ranks[at->rank];
    bool ends =
        (call->verb == MS_STEP_SET && call->set == MS_ALL) ||
        (call->verb == MS_MARK && call->mark.mark > MS_MARK_AFTER_FORWARD);
    if (!ends && !(call->verb == MS_RUN && call->run.pass == MS_FORWARD))
        return MS_OK;
    give_all(books, at, &r->before);
    r->end_before = r->end_now = MS_NONE;
    if (ends)
        MS_TRY(let_out(books, at, r->id));
    return MS_OK;
}
