/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/replay/wall.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/timeline.h"

enum { NOT_YET, HERE, REVOKED, GONE }; /* a row */

typedef struct row_state {
    uint64_t since_ns; /* when it was taken */
    uint32_t left;     /* ops that use it and have not ended, and the drop */
    uint32_t last;     /* of those that have, the last, or MS_NONE */
    uint8_t state;
    bool dropped; /* at some time: else it outlives the step */
} row_state;

typedef struct rank_room {
    uint64_t level_bytes;
    uint64_t late_bytes; /* of these, free from the next nanosecond on */
    uint64_t missing_bytes;
    uint32_t held;     /* the first op in host order that waits, or MS_NONE */
    bool held_compute; /* the compute stream's head waits */
    bool fallen;       /* nothing waits for memory any more */
    uint64_t round_ns; /* of the last round */
} rank_room;

/* Of ops that are no prefetch: 0. */
enum { PREFETCH = 1u, USED = 2u, REVOKED_ONCE = 4u };

struct ms_wall {
    const ms_plan *plan;
    ms_timeline *line;
    ms_arena *arena;
    ms_fault *fault;
    uint64_t limit_bytes, now_ns;
    row_state *row;
    rank_room *room;
    uint8_t *fetch;    /* per op */
    uint32_t *fetched; /* prefetches that have arrived, oldest first */
    uint32_t n_fetched, n_revoked_rows;
    ms_wall_instant *instants;
    uint32_t n_instants, instants_capacity, revoked_capacity;
};

static bool on_device(const ms_wall *wall, uint32_t row)
{
    return wall->plan->row[row].pool == MS_DEVICE_POOL;
}

static rank_room *room_of(const ms_wall *wall, uint32_t op)
{
    return &wall->room[wall->plan->op[op].rank];
}

/* ---- what there is ------------------------------------------------------- */

static void count_uses(ms_wall *wall)
{
    const ms_plan *plan = wall->plan;
    for (uint32_t r = 0; r < plan->n_rows; r++)
        wall->row[r] = (row_state){.left = 1, .last = MS_NONE};
    for (uint32_t i = 0; i < plan->use_at[plan->n_ops]; i++)
        wall->row[plan->use[i]].left++;
    for (uint32_t i = 0; i < plan->op[plan->n_ops].release_at; i++)
        wall->row[plan->release[i]].dropped = true;
}

/* Does op take device memory, and all of it for a time? */
static bool takes_for_a_time(const ms_wall *wall, uint32_t op)
{
    const ms_plan_op *it = &wall->plan->op[op];
    bool takes = false;
    for (uint32_t r = it->alloc_at; r < it[1].alloc_at; r++) {
        if (!wall->row[r].dropped)
            return false;
        takes |= on_device(wall, r);
    }
    return takes;
}

/* Can the copy run again: does what it reads stay?  Copies in the host's memory
 * do. */
static bool can_repeat(const ms_wall *wall, uint32_t op)
{
    const ms_plan *plan = wall->plan;
    for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++) {
        uint32_t maker = plan->row[plan->use[i]].op;
        if (maker != op && on_device(wall, plan->use[i]) &&
            plan->op[maker].pass != MS_START)
            return false;
    }
    return true;
}

static void find_prefetches(ms_wall *wall)
{
    const ms_plan *plan = wall->plan;
    for (uint32_t i = 0; i < plan->n_transfers; i++) {
        const struct ms_transfer *it = &plan->transfers[i];
        bool fetches =
            it->kind == MS_TRANSFER_H2D || it->kind == MS_TRANSFER_GATHER;
        if (fetches && plan->op[it->op].stream != MS_STREAM_COMPUTE &&
            takes_for_a_time(wall, it->op) && can_repeat(wall, it->op))
            wall->fetch[it->op] = PREFETCH;
    }
}

ms_err ms_wall_open(const ms_plan *plan, const ms_machine *machine,
                    ms_arena *arena, ms_timeline *line, ms_wall **wall,
                    ms_fault *fault)
{
    ms_wall *it = ms_arena_take(arena, 1, sizeof *it);
    if (!it)
        return ms_fail_nomem(fault);
    it->plan = plan;
    it->line = line;
    it->arena = arena;
    it->fault = fault;
    if (machine->capacity_bytes > machine->context_bytes)
        it->limit_bytes = machine->capacity_bytes - machine->context_bytes;
    it->row = ms_arena_take_raw(arena, plan->n_rows, sizeof *it->row);
    it->room = ms_arena_take(arena, plan->n_ranks, sizeof *it->room);
    it->fetch = ms_arena_take(arena, plan->n_ops, 1);
    it->fetched = ms_arena_take_raw(arena, plan->n_ops, sizeof(uint32_t));
    if (!it->row || !it->room || !it->fetch || !it->fetched)
        return ms_fail_nomem(fault);
    count_uses(it);
    find_prefetches(it);
    *wall = it;
    return MS_OK;
}

/* ---- rows come and go ---------------------------------------------------- */

static ms_err note(ms_wall *wall, uint32_t row, uint32_t op, uint8_t turn)
{
    ms_wall_instant *instants =
        ms_arena_grow(wall->arena, wall->instants, &wall->instants_capacity,
                      wall->n_instants + 1, sizeof *instants);
    if (!instants)
        return ms_fail_nomem(wall->fault);
    wall->instants = instants;
    instants[wall->n_instants++] =
        (ms_wall_instant){wall->now_ns, row, op, turn};
    return MS_OK;
}

static ms_err take(ms_wall *wall, uint32_t row)
{
    uint32_t op = wall->plan->row[row].op;
    wall->row[row].state = HERE;
    wall->row[row].since_ns = wall->now_ns;
    if (on_device(wall, row))
        room_of(wall, op)->level_bytes += wall->plan->row[row].bytes;
    return note(wall, row, op, 1);
}

/* The row goes now, after op. */
static ms_err give(ms_wall *wall, uint32_t row, uint32_t op, uint8_t state)
{
    rank_room *room = room_of(wall, wall->plan->row[row].op);
    uint64_t bytes = wall->plan->row[row].bytes;
    bool at_once = wall->row[row].since_ns == wall->now_ns;
    wall->row[row].state = state;
    if (on_device(wall, row) && at_once)
        room->late_bytes += bytes;
    else if (on_device(wall, row))
        room->level_bytes -= bytes;
    return note(wall, row, op, at_once ? 2 : 0);
}

/* The sources of a copy from the host: gone since it ended, unless the host has
 * a copy of its own. */
static ms_err change_sources(ms_wall *wall, uint32_t op, bool takes)
{
    const ms_plan *plan = wall->plan;
    for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++) {
        uint32_t row = plan->use[i];
        const row_state *it = &wall->row[row];
        if (on_device(wall, row) || it->left > 0)
            continue;
        if (takes && it->state == GONE)
            MS_TRY(take(wall, row));
        else if (!takes && it->state == HERE)
            MS_TRY(give(wall, row, op, GONE));
    }
    return MS_OK;
}

static bool has_revoked_rows(const ms_wall *wall, uint32_t op)
{
    const ms_plan_op *it = &wall->plan->op[op];
    for (uint32_t r = it->alloc_at; r < it[1].alloc_at; r++)
        if (wall->row[r].state == REVOKED)
            return true;
    return false;
}

/* No op is left that uses the row, and it has been dropped. */
static ms_err let_go(ms_wall *wall, uint32_t row)
{
    uint32_t maker = wall->plan->row[row].op;
    if (wall->row[row].state != REVOKED)
        return give(wall, row, wall->row[row].last, GONE);
    wall->row[row].state = GONE;
    wall->n_revoked_rows--;
    if (has_revoked_rows(wall, maker))
        return MS_OK;
    return change_sources(wall, maker, false);
}

/* op, which has ended, used the row or dropped it. */
static ms_err end_use(ms_wall *wall, uint32_t row, uint32_t op)
{
    row_state *it = &wall->row[row];
    const uint64_t *end_ns = wall->line->end_ns;
    if (it->last == MS_NONE || end_ns[op] > end_ns[it->last] || op > it->last)
        it->last = op;
    return --it->left > 0 ? MS_OK : let_go(wall, row);
}

ms_err ms_wall_end(ms_wall *wall, uint32_t op)
{
    const ms_plan *plan = wall->plan;
    for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++)
        MS_TRY(end_use(wall, plan->use[i], op));
    for (uint32_t i = plan->op[op].release_at; i < plan->op[op + 1].release_at;
         i++)
        MS_TRY(end_use(wall, plan->release[i], op));
    if (wall->fetch[op] & PREFETCH)
        wall->fetched[wall->n_fetched++] = op;
    return MS_OK;
}

/* ---- may it start? ------------------------------------------------------- */

void ms_wall_round(ms_wall *wall, uint32_t rank, uint64_t now_ns)
{
    rank_room *room = &wall->room[rank];
    if (now_ns > room->round_ns) {
        room->level_bytes -= room->late_bytes;
        room->late_bytes = 0;
    }
    room->held = MS_NONE;
    room->held_compute = false;
    room->round_ns = wall->now_ns = now_ns;
}

static ms_wall_answer hold(ms_wall *wall, uint32_t op, uint64_t missing_bytes)
{
    rank_room *room = room_of(wall, op);
    if (wall->plan->op[op].stream == MS_STREAM_COMPUTE)
        room->held_compute = true;
    if (missing_bytes > 0 && (room->held == MS_NONE || op < room->held)) {
        room->held = op;
        room->missing_bytes = missing_bytes;
    }
    return missing_bytes > 0 && room->late_bytes > 0 ? MS_WALL_LATER
                                                     : MS_WALL_HOLD;
}

/* How much is missing for so many bytes more. */
static uint64_t missing(const ms_wall *wall, uint32_t op, uint64_t bytes)
{
    const rank_room *room = room_of(wall, op);
    uint64_t level_bytes = room->level_bytes + bytes;
    if (room->fallen || bytes == 0 || level_bytes <= wall->limit_bytes)
        return 0;
    return level_bytes - wall->limit_bytes;
}

/* A WAIT of the program looks at no byte. */
static bool only_waits(const ms_wall *wall, uint32_t op)
{
    const ms_plan_op *it = &wall->plan->op[op];
    return it->pass == MS_COPY && it->stream == MS_STREAM_COMPUTE &&
           it->ns == 0 && it[1].alloc_at == it->alloc_at;
}

/* The copy that must come again before op can run, or MS_NONE. */
static uint32_t revoked_input(const ms_wall *wall, uint32_t op)
{
    const ms_plan *plan = wall->plan;
    if (only_waits(wall, op))
        return MS_NONE;
    for (uint32_t i = plan->use_at[op];
         wall->n_revoked_rows > 0 && i < plan->use_at[op + 1]; i++)
        if (wall->row[plan->use[i]].state == REVOKED)
            return plan->row[plan->use[i]].op;
    return MS_NONE;
}

static ms_err take_rows(ms_wall *wall, uint32_t op)
{
    const ms_plan *plan = wall->plan;
    for (uint32_t r = plan->op[op].alloc_at; r < plan->op[op + 1].alloc_at; r++)
        MS_TRY(take(wall, r));
    if (only_waits(wall, op))
        return MS_OK;
    for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++) {
        uint32_t maker = plan->row[plan->use[i]].op;
        if (maker != op)
            wall->fetch[maker] |= USED;
    }
    return MS_OK;
}

ms_err ms_wall_ask(ms_wall *wall, uint32_t op, ms_wall_answer *answer,
                   uint32_t *again)
{
    const ms_plan_op *it = &wall->plan->op[op];
    uint64_t bytes = 0, missing_bytes;
    *again = revoked_input(wall, op);
    *answer = MS_WALL_FETCH;
    if (*again != MS_NONE)
        return MS_OK;
    for (uint32_t r = it->alloc_at; r < it[1].alloc_at; r++)
        bytes += on_device(wall, r) ? wall->plan->row[r].bytes : 0;
    missing_bytes = missing(wall, op, bytes);
    bool yields = wall->fetch[op] & PREFETCH && room_of(wall, op)->held_compute;
    *answer = MS_WALL_PASS;
    if (missing_bytes > 0 || yields)
        *answer = hold(wall, op, missing_bytes);
    if (missing_bytes > 0 && it->pass == MS_START) {
        ms_wall_fall(wall, it->rank); /* no op of the step can make room */
        *answer = MS_WALL_PASS;
    }
    return *answer == MS_WALL_PASS ? take_rows(wall, op) : MS_OK;
}

/* ---- prefetches that come again ------------------------------------------ */

static ms_err note_revoked(ms_wall *wall, uint32_t op, bool put_off)
{
    ms_timeline *line = wall->line;
    struct ms_revoked *revoked =
        ms_arena_grow(wall->arena, line->revoked, &wall->revoked_capacity,
                      line->n_revoked + 1, sizeof *revoked);
    if (!revoked)
        return ms_fail_nomem(wall->fault);
    line->revoked = revoked;
    revoked[line->n_revoked++] =
        (struct ms_revoked){.op = op, .put_off = put_off};
    wall->fetch[op] |= REVOKED_ONCE;
    return MS_OK;
}

/* Of a prefetch that was revoked, which happens once. */
static struct ms_revoked *revoked_of(const ms_wall *wall, uint32_t op)
{
    struct ms_revoked *it = wall->line->revoked;
    while (it->op != op)
        it++;
    return it;
}

ms_err ms_wall_fetch(ms_wall *wall, uint32_t op, uint32_t user, bool *may)
{
    const ms_plan_op *it = &wall->plan->op[op];
    uint64_t bytes = 0;
    for (uint32_t r = it->alloc_at; r < it[1].alloc_at; r++)
        if (wall->row[r].state == REVOKED)
            bytes += wall->plan->row[r].bytes;
    *may = missing(wall, op, bytes) == 0;
    if (!*may) {
        hold(wall, user, missing(wall, op, bytes));
        return MS_OK;
    }
    for (uint32_t r = it->alloc_at; r < it[1].alloc_at; r++) {
        if (wall->row[r].state != REVOKED)
            continue;
        wall->n_revoked_rows--;
        MS_TRY(take(wall, r));
    }
    revoked_of(wall, op)->start_ns = wall->now_ns;
    return MS_OK;
}

ms_err ms_wall_arrive(ms_wall *wall, uint32_t op)
{
    struct ms_revoked *it = revoked_of(wall, op);
    it->came = true;
    it->end_ns = wall->now_ns;
    return change_sources(wall, op, false);
}

/* ---- making room --------------------------------------------------------- */

static bool uses_rows_of(const ms_wall *wall, uint32_t op, uint32_t maker)
{
    const ms_plan *plan = wall->plan;
    for (uint32_t i = plan->use_at[op]; i < plan->use_at[op + 1]; i++)
        if (plan->row[plan->use[i]].op == maker)
            return true;
    return false;
}

/* The bytes that revoking the prefetch would free for op; 0: it cannot be
 * revoked.  What was taken in this instant would be free in the next only. */
static uint64_t would_free(const ms_wall *wall, uint32_t prefetch, uint32_t op)
{
    const ms_plan *plan = wall->plan;
    const ms_plan_op *it = &plan->op[prefetch];
    uint64_t bytes = 0;
    if (wall->fetch[prefetch] != PREFETCH || it->rank != plan->op[op].rank ||
        uses_rows_of(wall, op, prefetch))
        return 0;
    for (uint32_t r = it->alloc_at; r < it[1].alloc_at; r++)
        if (on_device(wall, r) && wall->row[r].state == HERE &&
            wall->row[r].since_ns < wall->now_ns)
            bytes += plan->row[r].bytes;
    return bytes;
}

static ms_err revoke(ms_wall *wall, uint32_t op)
{
    const ms_plan_op *it = &wall->plan->op[op];
    for (uint32_t r = it->alloc_at; r < it[1].alloc_at; r++) {
        if (!on_device(wall, r) || wall->row[r].state != HERE)
            continue;
        wall->n_revoked_rows++;
        MS_TRY(give(wall, r, op, REVOKED));
    }
    MS_TRY(note_revoked(wall, op, false));
    return change_sources(wall, op, true);
}

ms_err ms_wall_put_off(ms_wall *wall, uint32_t op)
{
    const ms_plan_op *it = &wall->plan->op[op];
    for (uint32_t r = it->alloc_at; r < it[1].alloc_at; r++) {
        if (!on_device(wall, r)) {
            MS_TRY(take(wall, r));
            continue;
        }
        wall->row[r].state = REVOKED;
        wall->n_revoked_rows++;
    }
    MS_TRY(note_revoked(wall, op, true));
    MS_TRY(ms_wall_end(wall, op));
    return change_sources(wall, op, true);
}

/* Revokes the youngest prefetch, which is needed last, if all of them together
 * would be enough: else each would come again and nothing would be won. */
static ms_err revoke_for(ms_wall *wall, const rank_room *room, bool *gave)
{
    uint32_t youngest = MS_NONE;
    uint64_t bytes = 0;
    for (uint32_t i = wall->n_fetched; i-- > 0;) {
        uint64_t more = would_free(wall, wall->fetched[i], room->held);
        if (more > 0 && youngest == MS_NONE)
            youngest = wall->fetched[i];
        bytes += more;
    }
    *gave = youngest != MS_NONE && bytes >= room->missing_bytes;
    return *gave ? revoke(wall, youngest) : MS_OK;
}

/* Does memory become free when op ends?  The counts go down as they will then
 * and are put back: a row may be both used and dropped by op. */
static bool will_free(ms_wall *wall, uint32_t op)
{
    const ms_plan *plan = wall->plan;
    const uint32_t *lists[] = {plan->use + plan->use_at[op],
                               plan->release + plan->op[op].release_at};
    const uint32_t n[] = {plan->use_at[op + 1] - plan->use_at[op],
                          plan->op[op + 1].release_at -
                              plan->op[op].release_at};
    bool frees = false;
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < n[k]; i++) {
            uint32_t row = lists[k][i];
            frees |= --wall->row[row].left == 0 && on_device(wall, row);
        }
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < n[k]; i++)
            wall->row[lists[k][i]].left++;
    return frees;
}

static bool any_frees(ms_wall *wall, const uint32_t *running, uint32_t rank)
{
    for (uint32_t s = 0; s < MS_N_STREAMS; s++) {
        uint32_t op = running[rank * MS_N_STREAMS + s];
        bool again = op != MS_NONE && wall->fetch[op] & REVOKED_ONCE;
        if (op != MS_NONE && !again && will_free(wall, op))
            return true;
    }
    return false;
}

ms_err ms_wall_give_way(ms_wall *wall, uint32_t rank, const uint32_t *running,
                        bool idle, bool *gave, uint32_t *put_off)
{
    const rank_room *room = &wall->room[rank];
    *gave = false;
    *put_off = MS_NONE;
    if (room->held == MS_NONE || room->fallen)
        return MS_OK;
    bool prefetch = wall->fetch[room->held] & PREFETCH;
    bool patient = prefetch || room->late_bytes > 0;
    if (idle || (!patient && !any_frees(wall, running, rank)))
        MS_TRY(revoke_for(wall, room, gave));
    if (idle && prefetch && !*gave)
        *put_off = room->held;
    return MS_OK;
}

bool ms_wall_fall(ms_wall *wall, uint32_t rank)
{
    rank_room *room = &wall->room[rank];
    ms_lack *lack = &wall->line->lack;
    if (room->held == MS_NONE || room->fallen)
        return false;
    if (lack->missing_bytes == 0)
        *lack = (ms_lack){room->missing_bytes, wall->now_ns, room->held};
    room->fallen = true;
    return true;
}

ms_wall_instant *ms_wall_instants(ms_wall *wall, uint32_t *n)
{
    *n = wall->n_instants;
    return wall->instants;
}
