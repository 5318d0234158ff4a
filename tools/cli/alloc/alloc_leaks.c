/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim alloc --leaks: finds allocations that are alive at the same point
 * of successive steps and whose bytes grow.
 *
 * Steps are told by marks: lines "# step ..." or, where there are none,
 * resets of the peaks. Without marks they are told by recurrence: the
 * longest tail of the sequence of allocations (their sites and sizes) that
 * consists of at least three equal runs. It must make up half of all
 * allocations.  Of several traces each is a step, and its end the point. */

#include "tools/cli/alloc/alloc.h"
#include "tools/recordings/recordedlives.h"

#include <string.h>

#define MOST_POINTS 64u /* only the last points are compared */
#define LEAST_POINTS 3u

/* ---- taking notes -------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t h =
        (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);
    return h ^ h >> 32;
}

/* Doubles the slots where more than half of them would be taken. */
static ms_err make_room(ms_alloc_slots *slots, uint32_t need, ms_arena *arena,
                        ms_fault *fault)
{
    uint32_t capacity = slots->capacity > 0 ? slots->capacity : 256;
    if (2 * (uint64_t)need <= slots->capacity)
        return MS_OK;
    ms_alloc_slots old = *slots;
    while (2 * (uint64_t)need > capacity && capacity <= UINT32_MAX / 4)
        capacity *= 2;
    slots->rows = ms_arena_take_raw(arena, capacity, sizeof *slots->rows);
    slots->keys = ms_arena_take_raw(arena, capacity, sizeof *slots->keys);
    if (slots->rows == NULL || slots->keys == NULL ||
        2 * (uint64_t)need > capacity)
        return ms_fail_nomem(fault);
    memset(slots->rows, 0xff, capacity * sizeof *slots->rows);
    slots->capacity = capacity;
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.rows[i] == MS_NONE)
            continue;
        uint32_t at = (uint32_t)mix(old.keys[i], 1) & (capacity - 1);
        while (slots->rows[at] != MS_NONE)
            at = (at + 1) & (capacity - 1);
        slots->rows[at] = old.rows[i];
        slots->keys[at] = old.keys[i];
    }
    return MS_OK;
}

/* The slot of the life that an id had last; `make` adds one where there is
 * none. */
static uint32_t *find_life(const ms_alloc_slots *slots, uint64_t id, bool make)
{
    uint32_t mask = slots->capacity - 1, at = (uint32_t)mix(id, 1) & mask;
    if (slots->capacity == 0)
        return NULL;
    for (; slots->rows[at] != MS_NONE; at = (at + 1) & mask)
        if (slots->keys[at] == id)
            return &slots->rows[at];
    if (!make)
        return NULL;
    slots->keys[at] = id;
    return &slots->rows[at];
}

static bool same_group(const ms_alloc_group *a, const ms_alloc_group *b)
{
    return a->site == b->site && a->bytes == b->bytes && a->stream == b->stream;
}

/* The group of an allocation: its site where the frames are known, else its
 * size and stream. */
static ms_err find_group(ms_alloc_leaks *leaks, const ms_alloc_group *group,
                         uint32_t *found, ms_fault *fault)
{
    ms_alloc_slots *slots = &leaks->group_slots;
    MS_TRY(make_room(slots, leaks->n_groups + 1, leaks->arena, fault));
    uint64_t key = mix(mix(group->bytes, group->stream), group->site);
    uint32_t mask = slots->capacity - 1, at = (uint32_t)mix(key, 1) & mask;
    for (; slots->rows[at] != MS_NONE; at = (at + 1) & mask) {
        *found = slots->rows[at];
        if (same_group(&leaks->groups[*found], group))
            return MS_OK;
    }
    leaks->groups =
        ms_arena_grow(leaks->arena, leaks->groups, &leaks->groups_capacity,
                      leaks->n_groups + 1, sizeof *leaks->groups);
    if (leaks->groups == NULL)
        return ms_fail_nomem(fault);
    *found = leaks->n_groups++;
    leaks->groups[*found] = *group;
    slots->rows[at] = *found;
    slots->keys[at] = key;
    return MS_OK;
}

ms_err ms_alloc_leaks_alloc(ms_alloc_leaks *leaks, uint64_t id, uint64_t bytes,
                            uint64_t stream, uint32_t site, ms_fault *fault)
{
    bool known = site != MS_NONE;
    ms_alloc_group group = {known ? leaks->site_of[site] : MS_NONE,
                            known ? 0 : bytes, known ? 0 : stream};
    uint32_t row = leaks->n_lives, g = 0;
    MS_TRY(find_group(leaks, &group, &g, fault));
    MS_TRY(make_room(&leaks->id_slots, leaks->n_ids + 1, leaks->arena, fault));
    leaks->lives =
        ms_arena_grow(leaks->arena, leaks->lives, &leaks->lives_capacity,
                      row + 1, sizeof *leaks->lives);
    if (leaks->lives == NULL)
        return ms_fail_nomem(fault);
    uint32_t *slot = find_life(&leaks->id_slots, id, true);
    leaks->n_ids += *slot == MS_NONE;
    *slot = leaks->n_lives++;
    leaks->lives[row] = (ms_alloc_life){
        .bytes = bytes, .begin = leaks->clock++, .end = UINT64_MAX, .group = g};
    return MS_OK;
}

void ms_alloc_leaks_free(ms_alloc_leaks *leaks, uint64_t id)
{
    uint32_t *slot = find_life(&leaks->id_slots, id, false);
    if (slot == NULL || leaks->lives[*slot].end != UINT64_MAX)
        /* it was allocated before the trace, or its free was already asked
         * for */
        return;
    leaks->lives[*slot].end = leaks->clock++;
}

ms_err ms_alloc_leaks_mark(ms_alloc_leaks *leaks, ms_alloc_mark kind,
                           ms_fault *fault)
{
    ms_alloc_marks *marks = &leaks->marks[kind];
    marks->at = ms_arena_grow(leaks->arena, marks->at, &marks->capacity,
                              marks->n + 1, sizeof *marks->at);
    if (marks->at == NULL)
        return ms_fail_nomem(fault);
    marks->at[marks->n++] = leaks->clock;
    return MS_OK;
}

/* ---- traces -------------------------------------------------------------- */

static uint64_t hash(const char *site)
{
    uint64_t h = 0;
    for (; *site != '\0'; site++)
        h = mix(h, (unsigned char)*site);
    return h;
}

static ms_err find_site(ms_alloc_leaks *leaks, const char *site,
                        uint32_t *found, ms_fault *fault)
{
    ms_alloc_slots *slots = &leaks->site_slots;
    uint64_t key = hash(site);
    MS_TRY(make_room(slots, leaks->n_sites + 1, leaks->arena, fault));
    uint32_t mask = slots->capacity - 1, at = (uint32_t)mix(key, 1) & mask;
    for (; slots->rows[at] != MS_NONE; at = (at + 1) & mask) {
        *found = slots->rows[at];
        if (slots->keys[at] == key && strcmp(leaks->sites[*found], site) == 0)
            return MS_OK;
    }
    leaks->sites =
        ms_arena_grow(leaks->arena, leaks->sites, &leaks->sites_capacity,
                      leaks->n_sites + 1, sizeof *leaks->sites);
    const char *kept = ms_arena_text(leaks->arena, site, strlen(site));
    if (leaks->sites == NULL || kept == NULL)
        return ms_fail_nomem(fault);
    *found = leaks->n_sites++;
    leaks->sites[*found] = kept;
    slots->rows[at] = *found;
    slots->keys[at] = key;
    return MS_OK;
}

/* What the recording holds when it starts: what an earlier trace left, or, with
 * add, what is new. */
static ms_err hold(ms_alloc_leaks *leaks, const ms_recording *recording,
                   bool add, ms_fault *fault)
{
    ms_recordedlives_held held = {.segment = 0};
    while (ms_recordedlives_next(recording, &held)) {
        const uint32_t *slot = find_life(&leaks->id_slots, held.address, false);
        ms_alloc_life *life = slot != NULL ? &leaks->lives[*slot] : NULL;
        bool stays = life != NULL && life->end == UINT64_MAX;
        if (add && !stays)
            MS_TRY(ms_alloc_leaks_alloc(leaks, held.address, held.bytes,
                                        held.stream, MS_NONE, fault));
        else if (stays && life->bytes == held.bytes)
            life->held_by = leaks->n_traces;
    }
    return MS_OK;
}

ms_err ms_alloc_leaks_begin(ms_alloc_leaks *leaks,
                            const ms_recording *recording, ms_fault *fault)
{
    uint32_t n_sites = recording != NULL ? recording->n_sites : 0;
    leaks->n_traces++;
    leaks->site_of =
        ms_arena_take(leaks->arena, n_sites + 1u, sizeof *leaks->site_of);
    if (leaks->site_of == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n_sites; i++)
        MS_TRY(
            find_site(leaks, recording->sites[i], &leaks->site_of[i], fault));
    if (!leaks->of_traces)
        return MS_OK;
    if (recording != NULL)
        MS_TRY(hold(leaks, recording, false, fault));
    for (uint32_t i = 0; i < leaks->n_lives; i++)
        if (leaks->lives[i].end == UINT64_MAX &&
            leaks->lives[i].held_by != leaks->n_traces)
            leaks->lives[i].end = leaks->clock;
    return recording != NULL ? hold(leaks, recording, true, fault) : MS_OK;
}

/* ---- steps --------------------------------------------------------------- */

static bool same_life(const ms_alloc_leaks *leaks, uint32_t i, uint32_t j)
{
    uint32_t last = leaks->n_lives - 1; /* positions count from the end */
    const ms_alloc_life *a = &leaks->lives[last - i];
    const ms_alloc_life *b = &leaks->lives[last - j];
    return a->group == b->group && a->bytes == b->bytes;
}

/* Finds the shortest period of the longest tail, by the prefix function of
 * Knuth, Morris and Pratt (1977) on the reversed sequence: border[i] is the
 * length of the longest proper prefix of the first i + 1 lives that is also
 * their suffix. A prefix of n with a border of b has the period n - b; it
 * counts where it holds LEAST_POINTS whole periods. */
static ms_err find_period(const ms_alloc_leaks *leaks, uint32_t *period,
                          uint32_t *length, ms_fault *fault)
{
    uint32_t n = leaks->n_lives;
    uint32_t *border = ms_arena_take(leaks->arena, n, sizeof *border);
    *period = *length = 0;
    if (border == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 1, b = 0; i < n; i++) {
        while (b > 0 && !same_life(leaks, i, b))
            b = border[b - 1];
        b += same_life(leaks, i, b);
        border[i] = b;
        if ((i + 1) / LEAST_POINTS >= i + 1 - b) {
            *period = i + 1 - b;
            *length = i + 1;
        }
    }
    return MS_OK;
}

static ms_err fail_steps(const ms_alloc_source *source, bool marked,
                         ms_fault *fault)
{
    const char *hint =
        source->is_recorded
            ? "record at least three steps that allocate the same"
            : "mark them in the trace: a line \"# step\" or \"P\" before each "
              "of at least four";
    if (marked)
        return ms_fail(fault, MS_EINPUT, source->name, hint,
                       "--leaks compares at least four marked steps, the first "
                       "of which sets up what stays");
    return ms_fail(fault, MS_EINPUT, source->name, hint,
                   "--leaks cannot tell steps: the last half of the "
                   "allocations is not three times the same");
}

/* Takes the instants at which what is alive is compared.  The first marked step
 * is left out: it allocates what stays.  Without marks the points lie a period
 * apart, behind the last allocation of each. */
static ms_err find_points(ms_alloc_leaks *leaks, const ms_alloc_source *source,
                          ms_fault *fault)
{
    uint32_t length, n;
    leaks->by = leaks->of_traces                      ? MS_ALLOC_TRACES
                : leaks->marks[MS_ALLOC_STEPS].n > 0  ? MS_ALLOC_STEPS
                : leaks->marks[MS_ALLOC_RESETS].n > 0 ? MS_ALLOC_RESETS
                                                      : MS_ALLOC_PERIOD;
    if (leaks->by != MS_ALLOC_PERIOD) {
        const ms_alloc_marks *marks = &leaks->marks[leaks->by];
        if (marks->n <= LEAST_POINTS && !leaks->of_traces)
            return fail_steps(source, true, fault);
        n = marks->n - !leaks->of_traces;
        n = n < MOST_POINTS ? n : MOST_POINTS;
        leaks->points = marks->at + marks->n - n;
        leaks->n_points = n;
        return MS_OK;
    }
    MS_TRY(find_period(leaks, &leaks->period, &length, fault));
    if (leaks->period == 0 || length < leaks->n_lives - length)
        return fail_steps(source, false, fault);
    n = length / leaks->period;
    n = n < MOST_POINTS ? n : MOST_POINTS;
    leaks->points = ms_arena_take_raw(leaks->arena, n, sizeof *leaks->points);
    if (leaks->points == NULL)
        return ms_fail_nomem(fault);
    leaks->n_points = n;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t row = leaks->n_lives - 1 - (n - 1 - k) * leaks->period;
        leaks->points[k] = leaks->lives[row].begin + 1;
    }
    return MS_OK;
}

/* ---- growth -------------------------------------------------------------- */

/* The number of points that are not later than an instant. */
static uint32_t points_until(const ms_alloc_leaks *leaks, uint64_t instant)
{
    uint32_t low = 0, high = leaks->n_points;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (leaks->points[middle] <= instant)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void count_life(ms_alloc_leaks *leaks, const ms_alloc_life *life)
{
    uint32_t from = points_until(leaks, life->begin);
    uint32_t to = points_until(leaks, life->end);
    ms_alloc_level *levels = ms_alloc_leaks_levels(leaks, life->group);
    for (uint32_t k = from; k < to; k++) {
        levels[k].count++;
        levels[k].bytes += life->bytes;
    }
}

/* A group grows where its bytes never fall and rise more than once. */
static bool grows(const ms_alloc_leaks *leaks, uint32_t group)
{
    const ms_alloc_level *levels = ms_alloc_leaks_levels(leaks, group);
    uint32_t rises = 0;
    for (uint32_t k = 1; k < leaks->n_points; k++) {
        if (levels[k].bytes < levels[k - 1].bytes)
            return false;
        rises += levels[k].bytes > levels[k - 1].bytes;
    }
    return rises > 1;
}

ms_alloc_level *ms_alloc_leaks_levels(const ms_alloc_leaks *leaks,
                                      uint32_t group)
{
    return leaks->levels + (size_t)group * leaks->n_points;
}

uint64_t ms_alloc_leaks_growth(const ms_alloc_leaks *leaks, uint32_t group)
{
    const ms_alloc_level *levels = ms_alloc_leaks_levels(leaks, group);
    return levels[leaks->n_points - 1].bytes - levels[0].bytes;
}

/* Keeps the groups sorted by growth, the largest first; of equal ones the
 * one that allocated first comes first. */
static void insert(ms_alloc_leaks *leaks, uint32_t group)
{
    uint32_t at = leaks->n_found++;
    uint64_t growth = ms_alloc_leaks_growth(leaks, group);
    for (;
         at > 0 && ms_alloc_leaks_growth(leaks, leaks->found[at - 1]) < growth;
         at--)
        leaks->found[at] = leaks->found[at - 1];
    leaks->found[at] = group;
}

ms_err ms_alloc_leaks_find(ms_alloc_leaks *leaks, const ms_alloc_source *source,
                           ms_fault *fault)
{
    MS_TRY(find_points(leaks, source, fault));
    leaks->levels =
        ms_arena_take(leaks->arena, (size_t)leaks->n_groups * leaks->n_points,
                      sizeof *leaks->levels);
    leaks->found =
        ms_arena_take_raw(leaks->arena, leaks->n_groups, sizeof(uint32_t));
    if (leaks->levels == NULL || leaks->found == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < leaks->n_lives; i++)
        count_life(leaks, &leaks->lives[i]);
    for (uint32_t g = 0; g < leaks->n_groups; g++)
        if (grows(leaks, g))
            insert(leaks, g);
    return MS_OK;
}
