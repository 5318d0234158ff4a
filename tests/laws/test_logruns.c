/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Logs of runs through DTR, against a simulator that finds each cost anew and
 * calls itself for what is gone: random ops of several results, views and
 * releases. */
#include "graphs/lowering/nodegraph.h"
#include "graphs/model.h"
#include "policies/solve/evictor.h"
#include "sim/graph.h"
#include "tests/laws/laws.h"
#include "tests/tests.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOGS 150u
#define MOST_CLASSES 100000u
#define MOST_OPS 40u
#define MOST_TENSORS 200u
#define MOST_ARGS 3u

static ms_arena arena;
static ms_fault fault;

/* ---- a log --------------------------------------------------------------- */

/* What is made by op `op`; of a view, storage is another tensor's. */
typedef struct tensor {
    uint32_t op, storage;
    bool lives; /* the log has not released it */
} tensor;

typedef struct op {
    uint32_t n_args, args[MOST_ARGS], first, n_results; /* tensors */
    uint32_t n_released, released[MOST_TENSORS];        /* behind it */
    uint64_t ns;
    bool constant;
} op;

static op ops[MOST_OPS];
static tensor tensors[MOST_TENSORS];
static uint64_t bytes_of[MOST_TENSORS]; /* of a storage, by its first tensor */
static uint32_t n_ops, n_tensors;
static char text[1 << 17];
static size_t length;

static void put(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    length +=
        (size_t)vsnprintf(text + length, sizeof text - length, format, list);
    va_end(list);
    ck_assert_uint_lt(length, sizeof text);
}

static uint32_t any_living(laws_random *random)
{
    uint32_t t = laws_below(random, n_tensors);
    while (!tensors[t].lives)
        t = (t + 1) % n_tensors;
    return t;
}

static void draw_result(laws_random *random, op *o, bool view)
{
    uint32_t t = n_tensors++;
    tensors[t] = (tensor){n_ops, t, true};
    if (view)
        tensors[t].storage = tensors[o->args[0]].storage;
    else
        bytes_of[t] = 1 + laws_below(random, 3) * laws_below(random, 3);
    put("{\"INSTRUCTION\": \"MEMORY\", \"NAME\": \"t%u\", \"MEMORY\": "
        "\"%" PRIu64 "\"}\n",
        t, view ? 0 : bytes_of[t]);
    if (!o->constant)
        put("{\"INSTRUCTION\": \"ALIAS\", \"NAME\": \"t%u\", \"ALIAS\": "
            "\"%d\"}\n",
            t, view ? 0 : -1);
}

static void draw_releases(laws_random *random, op *o)
{
    uint32_t living = 0;
    for (uint32_t t = 0; t < n_tensors; t++)
        living += tensors[t].lives;
    while (living > 1 && laws_chance(random, 60)) {
        uint32_t t = any_living(random);
        tensors[t].lives = false;
        o->released[o->n_released++] = t;
        put("{\"INSTRUCTION\": \"RELEASE\", \"NAME\": \"t%u\"}\n", t);
        living--;
    }
}

static void draw_op(laws_random *random)
{
    op *o = &ops[n_ops];
    *o = (op){.first = n_tensors, .n_results = 1};
    o->constant = n_ops == 0 || laws_chance(random, 8);
    if (o->constant) {
        put("{\"INSTRUCTION\": \"CONSTANT\", \"NAME\": \"t%u\"}\n", n_tensors);
        draw_result(random, o, false);
    } else {
        bool view = laws_chance(random, 20);
        o->n_args = view ? 1 : 1 + laws_below(random, MOST_ARGS);
        o->n_results = 1 + laws_below(random, 3);
        o->ns = laws_below(random, 4);
        put("{\"INSTRUCTION\": \"CALL\", \"NAME\": \"f\", \"ARGS\": [");
        for (uint32_t i = 0; i < o->n_args; i++) {
            o->args[i] = any_living(random);
            put("%s\"t%u\"", i > 0 ? ", " : "", o->args[i]);
        }
        put("], \"RESULT\": [");
        for (uint32_t i = 0; i < o->n_results; i++)
            put("%s\"t%u\"", i > 0 ? ", " : "", n_tensors + i);
        put("], \"TIME\": \"%" PRIu64 "\"}\n", o->ns);
        for (uint32_t i = 0; i < o->n_results; i++)
            draw_result(random, o, view);
    }
    draw_releases(random, o);
    n_ops++;
}

static void draw_log(laws_random *random)
{
    uint32_t n = 4 + laws_below(random, MOST_OPS - 4);
    length = n_ops = n_tensors = 0;
    put("{\"INSTRUCTION\": \"ANNOTATE\", \"ANNOTATION\": \"START\"}\n");
    while (n_ops < n)
        draw_op(random);
}

/* ---- the naive simulator ------------------------------------------------- */

static struct {
    ms_evictor_heuristic h;
    uint64_t budget, now, again, level, peak;
    uint32_t n_runs, n_evictions, n_ops, n_pool, pool[MOST_TENSORS];
    bool oom;
    /* per storage, by its first tensor */
    bool here[MOST_TENSORS], pinned[MOST_TENSORS];
    uint32_t locks[MOST_TENSORS], refs[MOST_TENSORS], class[MOST_TENSORS];
    uint64_t used[MOST_TENSORS];
    int64_t class_ns[MOST_CLASSES];
    uint32_t n_classes;
    bool defined[MOST_TENSORS]; /* per tensor */
} s;

static bool is_root(uint32_t t)
{
    return tensors[t].storage == t;
}

static bool makes(uint32_t i, uint32_t storage)
{
    for (uint32_t k = 0; k < ops[i].n_results; k++)
        if (tensors[ops[i].first + k].storage == storage)
            return true;
    return false;
}

static bool reads(uint32_t i, uint32_t storage)
{
    for (uint32_t k = 0; k < ops[i].n_args; k++)
        if (tensors[ops[i].args[k]].storage == storage)
            return true;
    return false;
}

/* Of all ops that have run which make the storage or a view of it. */
static int64_t own_ns(uint32_t storage)
{
    int64_t ns = 0;
    for (uint32_t i = 0; i < s.n_ops; i++)
        ns += makes(i, storage) ? (int64_t)ops[i].ns : 0;
    return ns;
}

static void mark(uint32_t t, bool *near)
{
    uint32_t storage = tensors[t].storage;
    near[storage] = near[storage] || !s.here[storage];
}

/* Marks what is gone next to a storage: what it is made from, or that from
 * it. */
static void mark_next(uint32_t storage, bool *near)
{
    for (uint32_t i = 0; i < s.n_ops; i++) {
        for (uint32_t k = 0; k < ops[i].n_args && makes(i, storage); k++)
            mark(ops[i].args[k], near);
        for (uint32_t k = 0; k < ops[i].n_results && reads(i, storage); k++)
            mark(ops[i].first + k, near);
    }
    near[storage] = false;
}

static int64_t classes_ns(uint32_t storage)
{
    bool near[MOST_TENSORS] = {false};
    int64_t ns = 0;
    mark_next(storage, near);
    for (uint32_t t = 0; t < n_tensors; t++) {
        bool first = near[t];
        for (uint32_t u = 0; u < t && first; u++)
            if (near[u] && s.class[u] == s.class[t])
                first = false;
        ns += first ? s.class_ns[s.class[t]] : 0;
    }
    return ns;
}

static double cost_of(uint32_t t)
{
    int64_t ns = own_ns(t);
    uint64_t below = bytes_of[t] * (s.now - s.used[t]);
    if (s.h == MS_EVICTOR_LRU)
        return (double)s.used[t];
    if (s.h == MS_EVICTOR_SIZE)
        return 1 / (double)bytes_of[t];
    if (s.h == MS_EVICTOR_EQ)
        ns += classes_ns(t);
    return below > 0 ? (double)ns / (double)below : INFINITY;
}

static void new_class(uint32_t t, int64_t ns)
{
    ck_assert_uint_lt(s.n_classes, MOST_CLASSES);
    s.class[t] = s.n_classes;
    s.class_ns[s.n_classes++] = ns;
}

static void evict(uint32_t t)
{
    bool near[MOST_TENSORS] = {false};
    uint32_t i = 0;
    while (s.pool[i] != t)
        i++;
    memmove(s.pool + i, s.pool + i + 1, (s.n_pool - i) * sizeof *s.pool);
    s.n_pool--;
    s.n_evictions++;
    s.here[t] = false;
    s.level -= bytes_of[t];
    for (uint32_t u = 0; u < n_tensors; u++)
        if (tensors[u].storage == t)
            s.defined[u] = false;
    new_class(t, own_ns(t));
    mark_next(t, near);
    for (uint32_t u = 0; u < n_tensors; u++) {
        uint32_t from = s.class[u], to = s.class[t];
        if (!near[u] || from == to)
            continue;
        s.class_ns[to] += s.class_ns[from];
        for (uint32_t v = 0; v < n_tensors; v++)
            if (s.class[v] == from)
                s.class[v] = to;
    }
}

static void lock(uint32_t t)
{
    uint32_t i = 0;
    if (s.locks[t]++ > 0)
        return;
    while (s.pool[i] != t)
        i++;
    memmove(s.pool + i, s.pool + i + 1, (s.n_pool - i) * sizeof *s.pool);
    s.n_pool--;
}

static void evict_least(void)
{
    uint32_t best = s.pool[0];
    double least = INFINITY;
    for (uint32_t i = 0; i < s.n_pool; i++) {
        double cost = cost_of(s.pool[i]);
        if (cost <= least) {
            least = cost;
            best = s.pool[i];
        }
        if (cost == 0)
            break;
    }
    evict(best);
}

static void come(uint32_t t)
{
    s.pool[s.n_pool++] = t;
    s.class_ns[s.class[t]] -= own_ns(t);
    s.class[t] = UINT32_MAX;
}

/* The op runs for the sake of a tensor; what it makes besides comes first. */
static void run_op(uint32_t i, uint32_t asked, bool again)
{
    const op *o = &ops[i];
    uint32_t n = 0, came[MOST_ARGS + 1];
    s.now += o->ns;
    s.n_runs++;
    s.again += again ? o->ns : 0;
    for (uint32_t k = 0; k < o->n_results; k++)
        s.level += is_root(o->first + k) ? bytes_of[o->first + k] : 0;
    s.peak = s.level > s.peak ? s.level : s.peak;
    for (uint32_t k = 0; k < o->n_results; k++) {
        uint32_t t = o->first + k;
        if (is_root(t) && s.here[t])
            s.level -= bytes_of[t];
        else if (is_root(t) && t != asked)
            came[n++] = t;
    }
    if (is_root(asked) && !s.here[asked])
        came[n++] = asked;
    for (uint32_t k = 0; k < o->n_results; k++)
        s.defined[o->first + k] = s.here[tensors[o->first + k].storage] = true;
    for (uint32_t k = 0; k < n; k++)
        come(came[k]);
}

static void materialize(uint32_t asked, bool again)
{
    uint32_t i = tensors[asked].op;
    const op *o = &ops[i];
    uint64_t total = 0;
    bool gone[MOST_ARGS];
    for (uint32_t k = 0; k < o->n_args; k++) {
        s.used[tensors[o->args[k]].storage] = s.now;
        gone[k] = !s.defined[o->args[k]];
    }
    for (uint32_t k = 0; k < o->n_args; k++)
        if (!gone[k])
            lock(tensors[o->args[k]].storage);
    for (uint32_t k = 0; k < o->n_args && !s.oom; k++) {
        if (gone[k] && !s.defined[o->args[k]])
            materialize(o->args[k], true);
        if (gone[k] && !s.oom)
            lock(tensors[o->args[k]].storage);
    }
    for (uint32_t k = 0; k < o->n_results; k++)
        total += is_root(o->first + k) ? bytes_of[o->first + k] : 0;
    while (!s.oom && s.level + total > s.budget) {
        s.oom = s.n_pool == 0;
        if (!s.oom)
            evict_least();
    }
    if (s.oom)
        return;
    run_op(i, asked, again);
    for (uint32_t k = 0; k < o->n_args; k++)
        if (--s.locks[tensors[o->args[k]].storage] == 0)
            s.pool[s.n_pool++] = tensors[o->args[k]].storage;
}

static void pin(uint32_t storage)
{
    if (!s.pinned[storage])
        lock(storage);
    s.pinned[storage] = true;
}

static void first_run(uint32_t i)
{
    const op *o = &ops[i];
    s.n_ops = i + 1;
    for (uint32_t k = 0; k < o->n_results; k++) {
        uint32_t root = tensors[o->first + k].storage;
        s.refs[root]++;
        if (is_root(o->first + k))
            new_class(root, 0);
    }
    materialize(o->first, false);
    for (uint32_t k = 0; k < o->n_results && !s.oom; k++)
        s.used[tensors[o->first + k].storage] = s.now;
    if (o->constant && !s.oom)
        pin(o->first);
    for (uint32_t k = 0; k < o->n_released && !s.oom; k++) {
        uint32_t root = tensors[o->released[k]].storage;
        if (--s.refs[root] == 0 && s.here[root] && !s.pinned[root])
            evict(root);
    }
}

static void simulate(ms_evictor_heuristic h, uint64_t budget)
{
    memset(&s, 0, sizeof s);
    memset(s.class, 0xff, sizeof s.class);
    s.h = h;
    s.budget = budget;
    s.now = 1;
    for (uint32_t i = 0; i < n_ops && !s.oom; i++)
        first_run(i);
    for (uint32_t t = 0; t < n_tensors && !s.oom; t++) {
        if (!tensors[t].lives)
            continue;
        if (!s.defined[t])
            materialize(t, true);
        if (!s.oom)
            pin(tensors[t].storage);
    }
}

/* ---- both ---------------------------------------------------------------- */

static bool compare(const ms_graph *graph, ms_evictor_heuristic h,
                    uint64_t budget)
{
    ms_arena own = {0};
    ms_evictor_run made;
    const ms_evictor_setup setup = {
        .heuristic = h, .budget_bytes = budget, .most_again_ns = UINT64_MAX};
    ck_assert_int_eq(ms_evictor_find(graph, &setup, &own, &made, &fault),
                     MS_OK);
    simulate(h, budget);
    ms_arena_free(&own);
    ck_assert_int_eq(made.status == MS_EVICTOR_OOM, s.oom);
    ck_assert_msg(made.again_ns == s.again && made.peak_bytes == s.peak &&
                      made.n_runs == s.n_runs &&
                      made.n_evictions == s.n_evictions,
                  "log %" PRIu64 " h %d budget %" PRIu64 ": again %" PRIu64
                  ", %" PRIu64 " expected; evictions %" PRIu32 ", %" PRIu32,
                  laws_seed, (int)h, budget, made.again_ns, s.again,
                  made.n_evictions, s.n_evictions);
    return !s.oom && s.again > 0;
}

/* What is reached through all that is gone (h=dtr, msps, esize) simrd keeps
 * while an op is under way: its own logs are the test of that
 * (truth/test_dags.c). */
static const ms_evictor_heuristic looked_at[] = {
    MS_EVICTOR_EQ, MS_EVICTOR_LOCAL, MS_EVICTOR_LRU, MS_EVICTOR_SIZE};

START_TEST(logs_as_a_naive_simulator_runs_them)
{
    uint32_t made_again = 0;
    for (laws_seed = 1; laws_seed <= LOGS; laws_seed++) {
        laws_random random = {laws_seed};
        ms_model model;
        ms_graph graph;
        draw_log(&random);
        ck_assert_int_eq(ms_read_model_bytes("t.log", text, length, NULL, 0,
                                             &arena, &model, &fault),
                         MS_OK);
        ck_assert_int_eq(ms_nodegraph_lower(&model, &arena, &graph, &fault),
                         MS_OK);
        simulate(MS_EVICTOR_LRU, UINT64_MAX);
        uint64_t most = s.peak;
        for (uint32_t i = 0; i < sizeof looked_at / sizeof *looked_at; i++)
            for (uint64_t cut = 1; cut <= 3; cut++)
                made_again +=
                    compare(&graph, looked_at[i], most - cut * most / 8);
        ms_arena_reset(&arena);
    }
    ck_assert_uint_gt(made_again, LOGS);
    ms_arena_free(&arena);
}
END_TEST

Suite *suite_logruns(void)
{
    Suite *suite = suite_create("logruns");
    TCase *tcase = tcase_create("logruns");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, logs_as_a_naive_simulator_runs_them);
    suite_add_tcase(suite, tcase);
    return suite;
}
