/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim fit: what the search leaves out cannot change its answer, and what
 * it reports is what a run reports. */
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tests/tests.h"
#include "tools/cli/commands.h"
#include "tools/job/allocator.h"
#include "tools/job/job.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/search/fit.h"
#include "tools/terminal/screen.h"

#include <stdio.h>
#include <string.h>

#define MAX_WORDS 16
#define MOST_MALLOCS 3000

/* A file below tests/golden/files, or a built-in model. */
static const char *const jobs[][MAX_WORDS] = {
    {"tiny16.json", "--batch=8", "--memory=610MiB"},
    {"tiny.json", "--batch=6", "--gpus=4", "--memory=2190MiB"},
    {"tiny16.json", "--gpus=2", "--memory=1887MiB"},
    {"tiny16.json", "--batch=2", "--memory=504MiB"}, /* nothing fits */
    {"tiny.json", "--gpus=8", "--memory=2105MiB"},   /* nothing fits */
    {"tiny-llama.json", "--batch=6", "--gpus=8", "-p", "zero:3"},
    {"moe.json", "--batch=2", "--framework=torch-1.13"},
    {"ops.json", "--memory=600MiB"},
    {"gpt3-small", "--set=model.layers=3", "--gpus=8", "--batch=4",
     "--device=v100"},
    {"gpt3-small", "--set=model.layers=4", "--gpus=16", "--memory=3100MiB",
     "-p", "swap:te=2", "--device=a100"},
    {"gpt3-small", "--set=model.layers=4", "--memory=3GiB", "-p",
     "checkpoint:every=2", "--precision=fp32"},
    {"tiny16.json", "--batch=2", "-p", "zero:3,dp=4,impl=deepspeed",
     "--memory=2190MiB"},
    {"tiny16.json", "-p", "fsdp:dp=4,impl=1", "--memory=2180MiB"},
    {"tiny16.json", "-p", "checkpoint:full", "--set=training.device=cpu"},
    {"tiny16.json", "-p", "swap:layers+offload:optimizer"},
    {"tiny16.json", "-p", "zero:2,dp=4+offload:optimizer,impl=deepspeed"},
    {"resnet18", "--batch=6", "--memory=900MiB", "--device=3090"},
    {"gpt2", "--gpus=8", "--set=training.mode=inference", "-p", "ddp"},
    {"gpt3-small", "--set=model.layers=2", "-p", "uvm", "--memory=3GiB"},
    {"gpt3-small", "--set=model.layers=4", "--gpus=8", "--batch=4",
     "--allocator=torch", "--memory=4672MiB", "--steps=2"},
    {"tiny16.json", "--batch=1", "--lengths=16,8", "--memory=600MiB",
     "--allocator=torch,expandable_segments:True"},
    {"gpt3-small", "--set=model.layers=2", "--set=model.positions=8192",
     "--sequence=8192", "--gpus=4", "--global-batch=8", "--kernels=flash"},
};
#define N_JOBS ((int)(sizeof jobs / sizeof jobs[0]))

typedef struct found {
    ms_arena keep;
    ms_arguments arguments;
    ms_job job;
    ms_points points;
    ms_fit fit;
} found;

static ms_fault fault;

static void demand(ms_err err)
{
    ck_assert_msg(err == MS_OK, "%s: %s", fault.where, fault.what);
}

static ms_err read_job(const char *const *job, found *f)
{
    static char path[TESTS_PATH];
    const char *words[MAX_WORDS];
    char below[128];
    uint32_t n = 1;
    fault = (ms_fault){.caret = -1};
    words[0] = job[0];
    if (strchr(job[0], '.') != NULL) {
        snprintf(below, sizeof below, "tests/golden/files/%s", job[0]);
        tests_source(below, path);
        words[0] = path;
    }
    for (; n < MAX_WORDS && job[n] != NULL; n++)
        words[n] = job[n];
    MS_TRY(ms_options_parse(MS_FOR_FIT, words, n, &f->keep, &f->arguments,
                            &fault));
    return ms_settings_read(&f->arguments, &f->keep, &f->job, &fault);
}

static ms_err open_fit(const char *const *job, found *f)
{
    memset(f, 0, sizeof *f);
    MS_TRY(read_job(job, f));
    MS_TRY(ms_points_open(&f->points, &fault));
    f->fit = (ms_fit){.job = &f->job,
                      .points = &f->points,
                      .arena = &f->keep,
                      .goal = MS_FIT_STEP};
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++)
        f->fit.frozen[a] = ms_fitchoices_all[a].key != NULL;
    return ms_fitspace_open(&f->fit, &fault);
}

static ms_err search(const char *const *job, bool exhaustive, uint32_t threads,
                     found *f)
{
    MS_TRY(open_fit(job, f));
    f->fit.exhaustive = exhaustive;
    f->fit.threads = threads;
    return ms_fitsearch_run(&f->fit, &fault);
}

/* With the settings that a probe would decide multiplied with all else. */
static ms_err search_settings(const char *const *job, ms_fit_goal goal,
                              bool exhaustive, found *f)
{
    memset(f, 0, sizeof *f);
    MS_TRY(read_job(job, f));
    MS_TRY(ms_points_open(&f->points, &fault));
    f->fit = (ms_fit){.job = &f->job,
                      .points = &f->points,
                      .arena = &f->keep,
                      .threads = 2,
                      .goal = goal,
                      .exhaustive = exhaustive};
    MS_TRY(ms_fitspace_open(&f->fit, &fault));
    return ms_fitsearch_run(&f->fit, &fault);
}

static void leave(found *f)
{
    if (f->fit.points != NULL)
        ms_fitspace_close(&f->fit);
    ms_points_close(&f->points);
    ms_arena_free(&f->keep);
}

/* ---- pruning ------------------------------------------------------------- */

static void check_bounds(const ms_fit *fit)
{
    for (uint32_t i = 0; i < fit->n_all; i++) {
        const ms_fit_point *point = &fit->all[i];
        if (point->state != MS_FIT_REPLAYED)
            continue;
        ck_assert_uint_le(point->bound.peak_bytes, point->peak_bytes);
        ck_assert_uint_le(point->bound.step_ns, point->step_ns);
    }
}

static void check_same(const ms_fit *all, const ms_fit *pruned)
{
    ck_assert_uint_eq(pruned->fastest, all->fastest);
    ck_assert_uint_eq(pruned->best, all->best);
    ck_assert_uint_eq(pruned->on_device, all->on_device);
    ck_assert_uint_eq(pruned->n_front, all->n_front);
    for (uint32_t k = 0; k < all->n_front; k++)
        ck_assert_uint_eq(pruned->front[k], all->front[k]);
    if (all->best == MS_NONE)
        ck_assert_uint_eq(pruned->smallest, all->smallest);
}

/* ---- the front and the best ---------------------------------------------- */

static bool is_on_front(const ms_fit *fit, uint32_t i)
{
    for (uint32_t k = 0; k < fit->n_front; k++)
        if (fit->front[k] == i)
            return true;
    return false;
}

/* Is the point beaten by another of the front, that is no slower and no larger?
 */
static bool is_beaten(const ms_fit *fit, const ms_fit_point *point)
{
    for (uint32_t k = 0; k < fit->n_front; k++) {
        const ms_fit_point *other = &fit->all[fit->front[k]];
        if (ms_fitjudge_cost(other) <= ms_fitjudge_cost(point) &&
            other->reserved_bytes <= point->reserved_bytes)
            return true;
    }
    return false;
}

static void check_front(const ms_fit *fit)
{
    for (uint32_t k = 1; k < fit->n_front; k++) {
        const ms_fit_point *before = &fit->all[fit->front[k - 1]];
        const ms_fit_point *point = &fit->all[fit->front[k]];
        ck_assert_uint_lt(ms_fitjudge_cost(before), ms_fitjudge_cost(point));
        ck_assert_uint_gt(before->reserved_bytes, point->reserved_bytes);
    }
    for (uint32_t i = 0; i < fit->n_all; i++) {
        const ms_fit_point *point = &fit->all[i];
        bool counts = point->state == MS_FIT_REPLAYED && point->fits;
        ck_assert(counts || !is_on_front(fit, i));
        if (counts && !is_on_front(fit, i))
            ck_assert(is_beaten(fit, point) || ms_fitjudge_is_far(fit, point));
    }
}

/* The numbers are those of memsim run. */
static void check_replay(const found *f, uint32_t i)
{
    const ms_fit_point *point = &f->fit.all[i];
    ms_arena keep = {0}, trial = {0};
    ms_result result;
    ms_job job = f->job;
    demand(ms_fitsetup_job(&f->fit, point, &keep, &job, &fault));
    if (point->proven)
        job = ms_fitsetup_proof(&f->fit, &job);
    demand(ms_jobway_run(&job, &keep, &trial, &result, &fault));
    const ms_rank_report *rank = &result.report->ranks[result.report->worst];
    ck_assert_uint_eq(rank->peak.reserved_bytes, point->reserved_bytes);
    ck_assert_uint_eq(rank->time.step_ns, point->step_ns);
    ck_assert_int_eq(result.report->headroom_bytes, point->headroom_bytes);
    ck_assert(point->fits == result.report->fits);
    ms_arena_free(&trial);
    ms_arena_free(&keep);
}

/* None that fits is faster than the fastest; of the equals none is smaller than
 * the best, nor by memory any. */
static void check_choice(const ms_fit *fit, const ms_fit_point *point)
{
    const ms_fit_point *best = &fit->all[fit->best];
    uint64_t least = ms_fitjudge_cost(&fit->all[fit->fastest]);
    uint64_t band = ms_fitjudge_band(&fit->all[fit->fastest]);
    ck_assert_uint_ge(ms_fitjudge_cost(point), least);
    if (fit->goal == MS_FIT_MEMORY ||
        ms_fitjudge_cost(point) <= least + least / 100 * (band - 1))
        ck_assert_uint_ge(point->reserved_bytes, best->reserved_bytes);
    if (fit->goal != MS_FIT_MEMORY)
        ck_assert_uint_le(ms_fitjudge_cost(best),
                          least + least / 100 * (band + 1));
}

/* f: of an exhaustive search. */
static void check_best(const found *f)
{
    const ms_fit *fit = &f->fit;
    uint32_t told = fit->best != MS_NONE ? fit->best : fit->smallest;
    ck_assert_uint_ne(told, MS_NONE);
    check_replay(f, told);
    for (uint32_t k = 0; k < fit->n_front; k += 3)
        check_replay(f, fit->front[k]);
    for (uint32_t i = 0; i < fit->n_all; i++) {
        const ms_fit_point *point = &fit->all[i];
        if (point->state != MS_FIT_REPLAYED)
            continue;
        if (fit->best == MS_NONE)
            ck_assert(!point->fits);
        if (fit->best == MS_NONE && !point->far_full)
            ck_assert_uint_ge(point->reserved_bytes,
                              fit->all[told].reserved_bytes);
        if (fit->best != MS_NONE && point->fits)
            check_choice(fit, point);
    }
}

START_TEST(pruned_is_exhaustive)
{
    found all, pruned;
    demand(search(jobs[_i], true, 2, &all));
    ck_assert_uint_eq(all.fit.count[MS_FIT_REPLAYED] +
                          all.fit.count[MS_FIT_REFUSED],
                      all.fit.n_all);
    check_bounds(&all.fit);
    check_front(&all.fit);
    check_best(&all);
    demand(search(jobs[_i], false, 1, &pruned));
    ck_assert_uint_eq(pruned.fit.n_all, all.fit.n_all);
    ck_assert_uint_eq(pruned.fit.count[MS_FIT_OPEN], 0);
    check_same(&all.fit, &pruned.fit);
    leave(&pruned);
    leave(&all);
}
END_TEST

/* All three rules are needed by some job, or the test above shows nothing. */
START_TEST(rules_are_used)
{
    uint32_t used[MS_FIT_N_STATES] = {0};
    for (int i = 0; i < N_JOBS; i++) {
        found f;
        demand(search(jobs[i], false, 1, &f));
        for (uint32_t state = 0; state < MS_FIT_N_STATES; state++)
            used[state] += f.fit.count[state];
        leave(&f);
    }
    for (uint32_t state = MS_FIT_OPEN + 1; state < MS_FIT_N_STATES; state++)
        ck_assert_msg(used[state] > 0, "state %u", state);
}
END_TEST

/* ---- settings, goals, proofs --------------------------------------------- */

static const struct {
    const char *words[MAX_WORDS];
    ms_fit_goal goal;
} goals[] = {
    {{"gpt3-small", "--set=model.layers=1", "--memory=4GiB", "-p", "none"},
     MS_FIT_TOKENS},
    {{"gpt3-small", "--set=model.layers=2", "--gpus=4", "--global-batch=16",
      "-p", "zero:2", "-p", "checkpoint:full"},
     MS_FIT_TOKENS},
    {{"tiny-llama.json", "--optimizer=adam", "--kernels=eager", "-p",
      "checkpoint:full+offload:optimizer"},
     MS_FIT_STEP},
    {{"tiny16.json", "--batch=4", "-p", "microbatch:2"}, MS_FIT_MEMORY},
    {{"resnet18", "-p", "checkpoint:full"}, MS_FIT_TOKENS},
};
#define N_GOALS ((int)(sizeof goals / sizeof goals[0]))

/* The row that is no larger, and slower by no more than what a probe may take
 * for less memory. */
static bool has_as_good(const ms_fit *fit, const ms_fit_point *point)
{
    for (uint32_t k = 0; k < fit->n_whole; k++) {
        const ms_fit_point *row = &fit->all[fit->front[k]];
        double cost = (double)ms_fitjudge_cost(row);
        double bytes = (double)row->reserved_bytes;
        if (cost <= 1.17 * (double)ms_fitjudge_cost(point) &&
            bytes <= 1.02 * (double)point->reserved_bytes)
            return true;
    }
    return false;
}

/* Every set-up with every setting has one in the front of the pruned search
 * that is about as good, or it is far from the goal. */
START_TEST(settings_decided_once)
{
    found all, pruned;
    demand(search_settings(goals[_i].words, goals[_i].goal, true, &all));
    demand(search_settings(goals[_i].words, goals[_i].goal, false, &pruned));
    ck_assert_uint_le(pruned.fit.n_all, all.fit.n_all);
    check_front(&all.fit);
    check_best(&all);
    for (uint32_t i = 0; i < all.fit.n_all; i++) {
        const ms_fit_point *point = &all.fit.all[i];
        if (point->state != MS_FIT_REPLAYED || !point->fits ||
            ms_fitjudge_is_far(&all.fit, point))
            continue;
        ck_assert_msg(has_as_good(&pruned.fit, point), "point %u", i);
    }
    leave(&pruned);
    leave(&all);
}
END_TEST

/* The table: what run says, none beaten by another of its rows, the equals by
 * headroom before the others by time, the first the best. */
static void check_rows(const found *f)
{
    const ms_fit *fit = &f->fit;
    ck_assert_uint_gt(fit->n_rows, 0);
    ck_assert_uint_eq(fit->best, fit->rows[0]);
    for (uint32_t i = 0; i < fit->n_rows; i++) {
        const ms_fit_point *x = &fit->all[fit->rows[i]];
        check_replay(f, fit->rows[i]);
        ck_assert(x->fits && (x->proven || fit->proof == NULL));
        for (uint32_t k = 0; k < fit->n_rows; k++) {
            const ms_fit_point *y = &fit->all[fit->rows[k]];
            ck_assert(k == i || x->reserved_bytes < y->reserved_bytes ||
                      ms_fitjudge_cost(x) < ms_fitjudge_cost(y));
        }
        if (i == 0)
            continue;
        const ms_fit_point *before = &fit->all[fit->rows[i - 1]];
        if (i < fit->n_equal)
            ck_assert_int_ge(before->headroom_bytes, x->headroom_bytes);
        else if (i > fit->n_equal)
            ck_assert_uint_le(ms_fitjudge_cost(before), ms_fitjudge_cost(x));
    }
}

/* The first capacity is roomy; with the other what fits by its lifetimes alone
 * does not fit through the allocator. */
START_TEST(rows_are_proven)
{
    static const char *const tight[][MAX_WORDS] = {
        {"tiny-llama.json", "--batch=64", "--sequence=128", "--memory=1GiB"},
        {"tiny-llama.json", "--batch=64", "--sequence=128", "--memory=600MiB"},
        {"gpt3-small", "--set=model.layers=2", "--gpus=4", "--global-batch=32",
         "-p", "checkpoint:full"}};
    uint32_t failed = 0;
    for (size_t i = 0; i < sizeof tight / sizeof *tight; i++) {
        found f;
        ms_allocator torch;
        demand(search(tight[i], false, 2, &f));
        demand(ms_allocator_read("torch", &f.keep, &torch, &fault));
        f.fit.proof = &torch;
        demand(ms_fitproof_run(&f.fit, &fault));
        check_rows(&f);
        failed += f.fit.n_failed;
        leave(&f);
    }
    ck_assert_uint_gt(failed, 0);
}
END_TEST

/* ---- threads ------------------------------------------------------------- */

START_TEST(threads_do_not_matter)
{
    static const uint32_t threads[] = {1, 5};
    char *texts[2];
    found f[2];
    for (int t = 0; t < 2; t++) {
        ms_fit_reply reply;
        demand(search(jobs[_i], false, threads[t], &f[t]));
        demand(ms_fitproof_run(&f[t].fit, &fault));
        ms_text text = {.arena = &f[t].keep};
        demand(
            ms_fitreply_of(&f[t].fit, NULL, &f[t].arguments, &reply, &fault));
        ms_fit_data_json(&reply, &text);
        ms_fit_text_write(&reply, ms_screen_style(1, "never"), &text);
        ms_fit_data_csv(&f[t].fit, &text);
        ck_assert(!text.failed);
        texts[t] = text.bytes;
    }
    ck_assert_str_eq(texts[0], texts[1]);
    for (int t = 0; t < 2; t++)
        leave(&f[t]);
}
END_TEST

/* ---- --max --------------------------------------------------------------- */

static uint64_t reserved_at(const found *f, const char *field, uint64_t value)
{
    char number[24];
    ms_arena keep = {0}, trial = {0};
    ms_result result;
    ms_job job = f->job;
    snprintf(number, sizeof number, "%llu", (unsigned long long)value);
    demand(ms_training_set(&job.training, field, number, &fault));
    demand(ms_jobway_run(&job, &keep, &trial, &result, &fault));
    const ms_report *report = result.report;
    uint64_t bytes = report->ranks[report->worst].peak.reserved_bytes;
    ms_arena_free(&trial);
    ms_arena_free(&keep);
    return bytes;
}

static const struct {
    const char *words[MAX_WORDS], *what, *field;
} maxima[] = {
    {{"tiny16.json", "-p", "none", "--memory=600MiB"},
     "batch",
     "training.batch"},
    {{"tiny16.json", "-p", "checkpoint:full", "--memory=600MiB"},
     "batch",
     "training.batch"},
    {{"tiny16.json", "-p", "checkpoint:every=3+swap:checkpoints",
      "--memory=600MiB"},
     "batch",
     "training.batch"},
    {{"tiny-llama.json", "-p", "zero:3,dp=4", "--memory=2166MiB"},
     "sequence",
     "training.sequence"},
};
#define N_MAXIMA ((int)(sizeof maxima / sizeof maxima[0]))

/* What fitmax assumes: with each value that is larger than the one before
 * nothing shrinks.  The value found is then that of trying all. */
START_TEST(max_is_the_largest)
{
    found f;
    ms_fit_max max;
    uint64_t before = 0;
    demand(open_fit(maxima[_i].words, &f));
    for (uint32_t a = 0; a < MS_FIT_N_AXES; a++)
        f.fit.frozen[a] = true;
    demand(ms_fitmax_find(&f.fit, maxima[_i].what, &max, &fault));
    ck_assert_uint_gt(max.value, 1);
    ck_assert_uint_eq(max.over, max.value + 1);
    uint64_t room = f.fit.capacity_bytes - f.fit.context_bytes;
    for (uint64_t value = 1; value <= max.over && value <= 300; value++) {
        uint64_t bytes = reserved_at(&f, maxima[_i].field, value);
        ck_assert_uint_ge(bytes, before);
        ck_assert_int_eq(bytes <= room, value <= max.value);
        before = bytes;
    }
    ck_assert_uint_le(reserved_at(&f, maxima[_i].field, max.value), room);
    ck_assert_uint_gt(reserved_at(&f, maxima[_i].field, max.over), room);
    leave(&f);
}
END_TEST

/* Without policies any set-up will do: no smaller than with one. */
START_TEST(max_of_all)
{
    static const char *const one[] = {"tiny16.json", "--memory=600MiB", NULL};
    found f;
    ms_fit_max max;
    demand(open_fit(one, &f));
    f.fit.threads = 2;
    f.fit.frozen[MS_FIT_MICROBATCH] = true;
    demand(ms_fitmax_find(&f.fit, "batch", &max, &fault));
    ck_assert_uint_eq(max.over, max.value + 1);
    ck_assert_uint_gt(reserved_at(&f, "training.batch", max.value),
                      f.fit.capacity_bytes - f.fit.context_bytes);
    leave(&f);
}
END_TEST

/* Where precision is searched, the values that --max tries search it, too. */
START_TEST(max_varies_precision)
{
    static const char *const one[] = {"tiny16.json", "-p", "none",
                                      "--memory=600MiB", NULL};
    uint64_t value[2];
    for (int vary = 0; vary < 2; vary++) {
        found f;
        ms_fit_max max;
        demand(open_fit(one, &f));
        for (uint32_t a = 0; a < MS_FIT_N_AXES; a++)
            f.fit.frozen[a] = a != MS_FIT_PRECISION;
        f.fit.vary_precision = vary > 0;
        demand(ms_fitmax_find(&f.fit, "batch", &max, &fault));
        value[vary] = max.value;
        leave(&f);
    }
    ck_assert_uint_gt(value[1], value[0]);
}
END_TEST

/* ---- memory that runs out ------------------------------------------------ */

static const char *const small[] = {"tiny.json", "--batch=2", "--gpus=2",
                                    "-p",        "swap:te=1", NULL};

static ms_err whole_way(uint32_t *best)
{
    found f;
    ms_fit_reply reply;
    ms_err err = search(small, false, 1, &f);
    if (err == MS_OK)
        err = ms_fitproof_run(&f.fit, &fault);
    if (err == MS_OK)
        err = ms_fitreply_of(&f.fit, NULL, &f.arguments, &reply, &fault);
    if (err == MS_OK) {
        ms_text text = {.arena = &f.keep};
        ms_fit_data_json(&reply, &text);
        ms_fit_text_write(&reply, ms_screen_style(1, "never"), &text);
        ms_fit_data_csv(&f.fit, &text);
        err = text.failed ? ms_fail_nomem(&fault) : MS_OK;
    }
    *best = f.fit.best;
    leave(&f);
    return err;
}

START_TEST(each_malloc_fails)
{
    uint32_t expected, best;
    long n = 1;
    demand(whole_way(&expected));
    for (; n < MOST_MALLOCS; n++) {
        ms_arena_fail_after(n);
        ms_err err = whole_way(&best);
        ms_arena_fail_after(0);
        ck_assert_int_eq(err, fault.err);
        if (err == MS_OK)
            break;
        ck_assert_int_eq(err, MS_ENOMEM);
    }
    ck_assert_int_gt(n, 10);
    ck_assert_int_lt(n, MOST_MALLOCS);
    ck_assert_uint_eq(best, expected);
}
END_TEST

Suite *suite_fit(void)
{
    Suite *suite = suite_create("fit");
    TCase *tcase = tcase_create("fit");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, pruned_is_exhaustive, 0, N_JOBS);
    tcase_add_test(tcase, rules_are_used);
    tcase_add_loop_test(tcase, settings_decided_once, 0, N_GOALS);
    tcase_add_test(tcase, rows_are_proven);
    tcase_add_loop_test(tcase, threads_do_not_matter, 0, 9);
    tcase_add_loop_test(tcase, max_is_the_largest, 0, N_MAXIMA);
    tcase_add_test(tcase, max_of_all);
    tcase_add_test(tcase, max_varies_precision);
    tcase_add_test(tcase, each_malloc_fails);
    suite_add_tcase(suite, tcase);
    return suite;
}
