/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libmemsim as its callers see it; tests/library.sh has it as installed. */
#include "tests/tests.h"
#include "tools/library/memsim.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static memsim_numbers evaluate(memsim_job *job)
{
    memsim_numbers numbers = {.size = sizeof numbers};
    ck_assert_msg(memsim_evaluate(job, &numbers) == MEMSIM_OK, "%s",
                  memsim_what(job));
    return numbers;
}

static bool same(const memsim_numbers *a, const memsim_numbers *b)
{
    bool alike = a->fits == b->fits && a->ranks == b->ranks &&
                 a->peak_allocated_bytes == b->peak_allocated_bytes &&
                 a->peak_reserved_bytes == b->peak_reserved_bytes &&
                 a->capacity_bytes == b->capacity_bytes &&
                 a->host_peak_bytes == b->host_peak_bytes &&
                 a->step_ns == b->step_ns && a->recompute_ns == b->recompute_ns;
    for (int i = 0; i < MEMSIM_CATEGORIES; i++)
        alike = alike && a->by_category[i] == b->by_category[i];
    return alike;
}

static void set(memsim_job *job, const char *key, const char *value)
{
    ck_assert_msg(memsim_set(job, key, value) == MEMSIM_OK, "%s",
                  memsim_what(job));
}

START_TEST(settings_are_those_of_the_command_line)
{
    memsim_job *job = memsim_open("gpt2"), *other = memsim_open("gpt2");
    memsim_numbers plain = evaluate(job), eight, sum;
    set(job, "batch", "8");
    set(job, "policy", "checkpoint:sqrt");
    set(job, "policy", "microbatch:2");
    eight = evaluate(job);
    set(other, "policy", "microbatch:2");
    set(other, "training.batch", "8");
    sum = evaluate(other);
    ck_assert(same(&eight, &sum));
    ck_assert(eight.peak_allocated_bytes > plain.peak_allocated_bytes);
    set(job, "batch", NULL);
    set(job, "policy", NULL);
    sum = evaluate(job);
    ck_assert(same(&plain, &sum));
    memsim_free(job);
    memsim_free(other);
}
END_TEST

/* One after the other, so that the later ones are folded. */
START_TEST(peaks_are_those_of_the_step)
{
    static const char *const policies[] = {NULL,
                                           "checkpoint:full",
                                           "checkpoint:sqrt",
                                           "checkpoint:every=3",
                                           "checkpoint:first=5",
                                           "swap:save_on_cpu",
                                           "checkpoint:selective"};
    memsim_job *job = memsim_open("gpt2"), *other = memsim_open("gpt2");
    set(other, "allocator", "exact");
    for (size_t i = 0; i < 3 * sizeof policies / sizeof *policies; i++) {
        const char *policy = policies[i % (sizeof policies / sizeof *policies)];
        memsim_brief brief = {.size = sizeof brief};
        set(job, "policy", policy);
        set(other, "policy", policy);
        ck_assert_int_eq(memsim_peak(job, &brief), MEMSIM_OK);
        memsim_numbers numbers = evaluate(other);
        ck_assert_uint_eq(brief.peak_allocated_bytes,
                          numbers.peak_allocated_bytes);
        ck_assert_uint_eq(brief.step_ns, numbers.step_ns);
        ck_assert_uint_eq(brief.recompute_ns, numbers.recompute_ns);
        ck_assert_int_eq(brief.fits, numbers.fits);
        ck_assert(memcmp(&brief.tokens_per_second, &numbers.tokens_per_second,
                         sizeof(double)) == 0);
    }
    ck_assert_int_eq(memsim_peak(NULL, NULL), MEMSIM_NO_MEMORY);
    set(job, "policy", "checkpoint:every=99");
    ck_assert_int_eq(memsim_peak(job, NULL), MEMSIM_USAGE);
    memsim_free(job);
    memsim_free(other);
}
END_TEST

START_TEST(numbers_are_those_of_the_result)
{
    memsim_job *job = memsim_open("gpt2");
    char peak[64];
    size_t n;
    set(job, "model.layers", "2");
    set(job, "allocator", "exact");
    memsim_numbers numbers = evaluate(job);
    uint64_t sum = 0, highest = 0;
    for (int i = 0; i < MEMSIM_CATEGORIES; i++)
        sum += numbers.by_category[i];
    ck_assert_uint_eq(sum, numbers.peak_allocated_bytes);
    const memsim_point *points = memsim_points(job, 0, &n);
    for (size_t i = 0; i < n; i++)
        highest = points[i].bytes > highest ? points[i].bytes : highest;
    ck_assert_uint_eq(highest, numbers.peak_allocated_bytes);
    ck_assert_ptr_null(memsim_points(job, 1, &n));
    ck_assert_uint_eq(n, 0);
    snprintf(peak, sizeof peak, "\"peak\": {\"allocated_bytes\": %llu,",
             (unsigned long long)highest);
    const char *text = memsim_run(job);
    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(strstr(text, peak));
    memsim_free(job);
}
END_TEST

/* One after the other, so that the later ones are folded, of which a job of its
 * own replays each; also after another batch, whose graph is like the others.
 */
START_TEST(evaluations_are_those_of_the_step)
{
    static const char *const batches[] = {"1", "2", "3", "5", "2"};
    memsim_job *job = memsim_open("gpt2");
    set(job, "allocator", "exact");
    for (size_t i = 0; i < 5 * 6; i++) {
        char policy[64];
        snprintf(policy, sizeof policy, "checkpoint:every=%zu%s", 2 + i % 4,
                 i % 6 == 5 ? "+microbatch:2" : "");
        set(job, "batch", i % 6 == 5 ? "4" : batches[i / 6]);
        set(job, "policy", i % 6 == 4 ? "none" : policy);
        memsim_numbers numbers = evaluate(job), alone;
        memsim_job *other = memsim_copy(job);
        alone = evaluate(other);
        ck_assert_msg(same(&numbers, &alone), "%zu", i);
        ck_assert_uint_gt(numbers.by_category[MEMSIM_ACTIVATIONS], 0);
        memsim_free(other);
    }
    memsim_free(job);
}
END_TEST

/* Points are of the step that was evaluated, whatever is set since. */
START_TEST(points_are_of_what_was_evaluated)
{
    memsim_job *job = memsim_open("gpt2");
    set(job, "allocator", "exact");
    for (size_t i = 0; i < 8; i++) {
        char value[16];
        snprintf(value, sizeof value, "%zu", i + 1);
        set(job, "batch", value);
        memsim_numbers numbers = evaluate(job);
        set(job, "batch", "9");
        set(job, "policy", i % 2 ? "none" : NULL);
        size_t n;
        uint64_t most_bytes = 0;
        const memsim_point *points = memsim_points(job, 0, &n);
        ck_assert_ptr_nonnull(points);
        for (size_t k = 0; k < n; k++)
            if (points[k].bytes > most_bytes)
                most_bytes = points[k].bytes;
        ck_assert_uint_eq(most_bytes, numbers.peak_allocated_bytes);
    }
    memsim_free(job);
}
END_TEST

START_TEST(faults_say_what_and_change_nothing)
{
    memsim_job *job = memsim_open("gpt2");
    memsim_numbers before = evaluate(job), after;
    ck_assert_int_eq(memsim_set(job, "polcy", "none"), MEMSIM_USAGE);
    ck_assert_str_eq(memsim_what(job), "unknown key \"polcy\"");
    ck_assert_str_eq(memsim_hint(job), "did you mean \"policy\"?");
    ck_assert_int_eq(memsim_set(job, "policy", "nil"), MEMSIM_USAGE);
    ck_assert_int_eq(memsim_set(job, "memory", "80G"), MEMSIM_USAGE);
    ck_assert_int_eq(memsim_set(job, "batch", "-1"), MEMSIM_USAGE);
    ck_assert_int_eq(memsim_set(job, NULL, "1"), MEMSIM_USAGE);
    after = evaluate(job);
    ck_assert_int_eq(memsim_fault(job), MEMSIM_OK);
    ck_assert_str_eq(memsim_what(job), "");
    ck_assert(same(&before, &after));
    memsim_free(job);
    job = memsim_open("no/such/model.json");
    ck_assert_ptr_null(memsim_run(job));
    ck_assert_int_eq(memsim_fault(job), MEMSIM_SYSTEM);
    ck_assert_str_ne(memsim_what(job), "");
    memsim_free(job);
}
END_TEST

START_TEST(no_job_is_harmless)
{
    size_t n = 1;
    memsim_numbers numbers = {.size = sizeof numbers};
    ck_assert_int_eq(memsim_set(NULL, "batch", "1"), MEMSIM_NO_MEMORY);
    ck_assert_int_eq(memsim_evaluate(NULL, &numbers), MEMSIM_NO_MEMORY);
    ck_assert_ptr_null(memsim_run(NULL));
    ck_assert_ptr_null(memsim_points(NULL, 0, &n));
    ck_assert_ptr_null(memsim_points(NULL, 0, NULL));
    ck_assert_uint_eq(n, 0);
    ck_assert_ptr_null(memsim_copy(NULL));
    ck_assert_int_eq(memsim_fault(NULL), MEMSIM_NO_MEMORY);
    ck_assert_str_eq(memsim_where(NULL), "");
    memsim_free(NULL);
}
END_TEST

/* A caller that was compiled with fewer members gets these alone. */
START_TEST(older_callers_get_what_they_know)
{
    memsim_job *job = memsim_open("gpt2");
    memsim_numbers numbers = {.size = offsetof(memsim_numbers, capacity_bytes),
                              .capacity_bytes = 77};
    ck_assert_int_eq(memsim_evaluate(job, &numbers), MEMSIM_OK);
    ck_assert_uint_gt(numbers.peak_reserved_bytes, 0);
    ck_assert_uint_eq(numbers.capacity_bytes, 77);
    memsim_free(job);
}
END_TEST

/* ---- threads ------------------------------------------------------------- */

#define N_THREADS 8u

static const char *const policies[] = {"none", "checkpoint:full",
                                       "microbatch:2", "checkpoint:every=2"};
#define N_POLICIES (sizeof policies / sizeof policies[0])

typedef struct worker {
    pthread_t thread;
    const memsim_job *like; /* to be copied; NULL: a job of its own */
    memsim_numbers numbers[N_POLICIES];
} worker;

static void *work(void *of)
{
    worker *w = of;
    memsim_job *job = w->like ? memsim_copy(w->like) : memsim_open("gpt2");
    memsim_set(job, "batch", "2");
    for (size_t i = 0; i < N_POLICIES; i++) {
        w->numbers[i] = (memsim_numbers){.size = sizeof w->numbers[i]};
        memsim_set(job, "policy", policies[i]);
        memsim_evaluate(job, &w->numbers[i]);
    }
    memsim_free(job);
    return NULL;
}

START_TEST(threads_agree)
{
    memsim_job *like = memsim_open("gpt2");
    worker alone = {.like = like}, workers[N_THREADS] = {{0}};
    work(&alone);
    for (uint32_t i = 0; i < N_THREADS; i++) {
        workers[i].like = i % 2 ? like : NULL;
        ck_assert_int_eq(
            pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < N_THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        for (size_t k = 0; k < N_POLICIES; k++)
            ck_assert(same(&workers[i].numbers[k], &alone.numbers[k]));
    }
    ck_assert_uint_gt(alone.numbers[0].peak_allocated_bytes, 0);
    memsim_free(like);
}
END_TEST

Suite *suite_library(void)
{
    Suite *suite = suite_create("library");
    TCase *all = tcase_create("all");
    tcase_add_test(all, settings_are_those_of_the_command_line);
    tcase_add_test(all, peaks_are_those_of_the_step);
    tcase_add_test(all, numbers_are_those_of_the_result);
    tcase_add_test(all, evaluations_are_those_of_the_step);
    tcase_add_test(all, points_are_of_what_was_evaluated);
    tcase_add_test(all, faults_say_what_and_change_nothing);
    tcase_add_test(all, no_job_is_harmless);
    tcase_add_test(all, older_callers_get_what_they_know);
    tcase_add_test(all, threads_agree);
    suite_add_tcase(suite, all);
    return suite;
}
