/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Of random histories: what two sides hold differently at their peaks sums to
 * the difference of the peaks, nothing differs from itself, and the one way
 * round is the mirror of the other.  The oracle counts each allocation. */

#include "tests/laws/laws.h"
#include "tests/tests.h"
#include "tools/differences/pairings.h"

#include <string.h>

#define TRIALS 400
#define MOST 60

static const char *const words[] = {
    "layers.0.mlp:out, aten::mm (forward)",
    "layers.1.mlp:out, aten::mm (forward)", "loss:grad, aten::mm (grad_input)",
    "head:out, aten::mm (forward)", "head:exp_avg, step"};
static const uint8_t phases[] = {MS_PHASE_FORWARD, MS_PHASE_FORWARD,
                                 MS_PHASE_BACKWARD, MS_PHASE_FORWARD,
                                 MS_PHASE_OPTIMIZER};
#define N_WORDS 5u

static ms_arena arena;
static ms_fault fault = {.caret = -1};
#define MUST(call) ck_assert_msg((call) == MS_OK, "%s", fault.what)

/* Each state begins or ends one allocation. */
static ms_side random_side(uint64_t seed, bool is_recorded)
{
    laws_random random = {seed};
    ms_side side = {.name = "side",
                    .kind = is_recorded ? MS_SIDE_RECORDED : MS_SIDE_SIMULATED,
                    .tells_layers = !is_recorded,
                    .words = words,
                    .phases = phases,
                    .n_words = N_WORDS,
                    .phase_without = MS_N_PHASES};
    uint32_t events = 1 + laws_below(&random, MOST);
    side.lives = ms_arena_take(&arena, events + 1, sizeof *side.lives);
    ck_assert_ptr_nonnull(side.lives);
    for (uint32_t e = 0; e < events; e++) {
        uint32_t at = side.n > 0 ? laws_below(&random, side.n) : 0;
        side.n_states++;
        if (side.n > 0 && laws_chance(&random, 40) &&
            side.lives[at].to == MS_NONE) {
            side.lives[at].to = side.n_states;
            continue;
        }
        bool told = laws_chance(&random, 80);
        uint32_t category = laws_below(&random, 3) + MS_ACTIVATIONS;
        side.lives[side.n++] = (ms_pagelife){
            .bytes = 1 + laws_below(&random, 4) * 300,
            .from = side.n_states,
            .to = MS_NONE,
            .site =
                told || !is_recorded ? laws_below(&random, N_WORDS) : MS_NONE,
            .category = is_recorded ? MS_N_CATEGORIES : (uint8_t)category,
            .held = is_recorded && side.n == e && laws_chance(&random, 30)};
    }
    return side;
}

static void find(ms_side sides[2], ms_pairings *pairs)
{
    for (int s = 0; s < 2; s++)
        MUST(ms_side_measure(&sides[s], &arena, &fault));
    MUST(ms_pairings_find(sides, &arena, pairs, &fault));
    for (int s = 0; s < 2; s++)
        ms_side_categorize(&sides[s]);
}

/* ---- the laws ------------------------------------------------------------ */

static uint64_t naive_peak(const ms_side *side)
{
    uint64_t highest = 0;
    for (uint32_t s = 0; s <= side->n_states; s++) {
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < side->n; i++)
            if (side->lives[i].from <= s &&
                (side->lives[i].to == MS_NONE || side->lives[i].to > s))
                bytes += side->lives[i].bytes;
        highest = bytes > highest ? bytes : highest;
    }
    return highest;
}

static void check_sums(const ms_side sides[2], const ms_pairings *pairs)
{
    int64_t gap = (int64_t)(pairs->rounding[1] - pairs->rounding[0]);
    uint64_t bytes[2] = {pairs->same_bytes, pairs->same_bytes -
                                                pairs->rounding[0] +
                                                pairs->rounding[1]};
    for (uint32_t g = 0; g < pairs->n; g++) {
        gap += pairs->groups[g].gap;
        for (int s = 0; s < 2; s++)
            bytes[s] += pairs->groups[g].bytes[s];
    }
    ck_assert_int_eq(gap, (int64_t)(sides[1].peak_bytes - sides[0].peak_bytes));
    for (int s = 0; s < 2; s++) {
        uint64_t sum = 0;
        for (uint32_t c = 0; c < MS_PAGE_CATEGORIES; c++)
            sum += sides[s].by_category[c];
        ck_assert_uint_eq(sum, sides[s].peak_bytes);
        ck_assert_uint_eq(bytes[s], sides[s].peak_bytes);
        ck_assert_uint_eq(naive_peak(&sides[s]), sides[s].peak_bytes);
    }
}

static void check_mirror(const ms_pairings *one, const ms_pairings *other)
{
    ck_assert_uint_eq(one->n, other->n);
    ck_assert_uint_eq(one->same_count, other->same_count);
    ck_assert_uint_eq(one->step_same, other->step_same);
    ck_assert_uint_eq(one->rounding[0], other->rounding[1]);
    ck_assert_uint_eq(one->rounding[1], other->rounding[0]);
    for (uint32_t g = 0; g < one->n; g++) {
        const ms_pairings_group *x = &one->groups[g], *y = &other->groups[g];
        ck_assert_str_eq(x->name, y->name);
        ck_assert_uint_eq(x->category, y->category);
        ck_assert_int_eq(x->gap, -y->gap);
        for (int s = 0; s < 2; s++) {
            ck_assert_uint_eq(x->count[s], y->count[1 - s]);
            ck_assert_uint_eq(x->bytes[s], y->bytes[1 - s]);
            ck_assert_uint_eq(x->made[s], y->made[1 - s]);
        }
    }
}

/* How many allocations both hold at their peaks, of equal name, category and
 * bytes: each one of A takes one of B that is left. */
static uint32_t naive_same(const ms_side sides[2])
{
    bool taken[MOST + 1] = {false};
    uint32_t n = 0;
    for (uint32_t i = 0; i < sides[0].n; i++) {
        const ms_pagelife *x = &sides[0].lives[i];
        for (uint32_t j = 0; j < sides[1].n; j++) {
            const ms_pagelife *y = &sides[1].lives[j];
            /* both layers are one name */
            uint32_t a = x->site == 1 ? 0 : x->site;
            uint32_t b = y->site == 1 ? 0 : y->site;
            if (taken[j] || a != b || x->bytes != y->bytes ||
                x->category != y->category ||
                !ms_side_is_alive(x, sides[0].peak_state) ||
                !ms_side_is_alive(y, sides[1].peak_state))
                continue;
            taken[j] = true;
            n++;
            break;
        }
    }
    return n;
}

START_TEST(differences_sum_and_mirror)
{
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        laws_seed = 1000 + trial;
        bool first = trial % 3 == 1, second = trial % 3 > 0;
        uint64_t a = 2 * laws_seed, b = a + 1;
        ms_side sides[2] = {random_side(a, first), random_side(b, second)};
        ms_side turned[2] = {random_side(b, second), random_side(a, first)};
        ms_pairings one, other;
        find(sides, &one);
        find(turned, &other);
        check_sums(sides, &one);
        check_mirror(&one, &other);
        if (!first && !second)
            ck_assert_uint_eq(one.same_count, naive_same(sides));
        ms_arena_reset(&arena);
    }
}
END_TEST

START_TEST(nothing_differs_from_itself)
{
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        laws_seed = trial;
        ms_side sides[2] = {random_side(trial, trial % 2 > 0),
                            random_side(trial, trial % 2 > 0)};
        ms_pairings pairs;
        find(sides, &pairs);
        ck_assert_uint_eq(pairs.n, 0);
        ck_assert_uint_eq(pairs.rounding[0] + pairs.rounding[1], 0);
        ck_assert_uint_eq(pairs.step_same, pairs.step_count[0]);
        ms_arena_reset(&arena);
    }
}
END_TEST

/* ---- by hand ------------------------------------------------------------- */

/* The example of side.h: two steps of three phases. */
static ms_side two_steps(void)
{
    static const uint32_t sites[] = {0, 2, 4, 0, 2, 4};
    static const uint32_t bytes[] = {1, 2, 4, 1, 2, 4};
    static const uint32_t from[] = {1, 2, 4, 6, 7, 9};
    ms_side side = {.words = words,
                    .phases = phases,
                    .n_words = N_WORDS,
                    .tells_layers = true,
                    .n = 6,
                    .n_states = 10};
    side.lives = ms_arena_take(&arena, 6, sizeof *side.lives);
    ck_assert_ptr_nonnull(side.lives);
    for (uint32_t i = 0; i < 6; i++)
        side.lives[i] = (ms_pagelife){.bytes = bytes[i],
                                      .from = from[i],
                                      .to = i % 3 == 0 ? MS_NONE : from[i] + 1,
                                      .site = sites[i],
                                      .category = MS_N_CATEGORIES};
    return side;
}

START_TEST(steps_and_phases)
{
    static const uint64_t levels[] = {0, 1, 3, 1, 5, 1, 2, 4, 2, 6, 2};
    ms_side side = two_steps();
    MUST(ms_side_measure(&side, &arena, &fault));
    for (uint32_t s = 0; s <= 10; s++)
        ck_assert_uint_eq(side.bytes[s], levels[s]);
    ck_assert_uint_eq(side.n_steps, 2);
    ck_assert_uint_eq(side.from, 6);
    ck_assert_uint_eq(side.to, 11);
    ck_assert_uint_eq(side.peak_bytes, 6);
    ck_assert_uint_eq(side.peak_state, 9);
    ck_assert_uint_eq(side.peak_phase, MS_PHASE_OPTIMIZER);
    ck_assert_uint_eq(side.phase[MS_PHASE_FORWARD].peak_bytes, 2);
    ck_assert_uint_eq(side.phase[MS_PHASE_BACKWARD].peak_bytes, 4);
    ck_assert(side.phase[MS_PHASE_BACKWARD].from == 7 &&
              side.phase[MS_PHASE_BACKWARD].to == 9);
    ms_side_guess(&side);
    ck_assert_uint_eq(side.lives[3].category, MS_ACTIVATIONS);
    ck_assert_uint_eq(side.lives[4].category, MS_TEMPORARIES);
    ck_assert_uint_eq(side.lives[5].category, MS_TEMPORARIES);
}
END_TEST

/* Both steps have the same phases: edges at 1/5 and 3/5, and lines that meet.
 */
START_TEST(one_axis)
{
    ms_side sides[2] = {two_steps(), two_steps()};
    uint64_t edges[MS_N_PHASES];
    for (int s = 0; s < 2; s++)
        MUST(ms_side_measure(&sides[s], &arena, &fault));
    MUST(ms_side_align(sides, edges, &arena, &fault));
    ck_assert_uint_eq(edges[MS_PHASE_FORWARD], 200000);
    ck_assert_uint_eq(edges[MS_PHASE_BACKWARD], 600000);
    ck_assert_uint_eq(edges[MS_PHASE_OPTIMIZER], MS_SIDE_AXIS);
    ck_assert_uint_eq(sides[0].n_line, 5);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(sides[1].line[i].at, 200000 * i);
        ck_assert_uint_eq(sides[1].line[i].bytes, sides[0].bytes[6 + i]);
    }
}
END_TEST

static void done(void)
{
    ms_arena_free(&arena);
}

Suite *suite_diffs(void)
{
    Suite *suite = suite_create("diffs");
    TCase *tcase = tcase_create("diffs");
    tcase_add_checked_fixture(tcase, NULL, done);
    tcase_add_test(tcase, differences_sum_and_mirror);
    tcase_add_test(tcase, nothing_differs_from_itself);
    tcase_add_test(tcase, steps_and_phases);
    tcase_add_test(tcase, one_axis);
    suite_add_tcase(suite, tcase);
    return suite;
}
