/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The models and graphs that many variants of a job share.
 *
 * Both are entries of one table, each with an arena of its own. The first
 * thread that asks for an entry makes it, and the others wait for it; an entry
 * that failed stays in the table and fails again with the same message. Entries
 * in use are never dropped; of the others the table keeps at most MOST_BYTES,
 * and drops first what was used longest ago: callers come with all variants of
 * a graph before those of the next one (tools/cli/sweep), so that this is what
 * is used again last, if at all. */

#include "tools/points/points.h"
#include "graphs/device.h"
#include "graphs/model.h"
#include "graphs/modelgraph.h"
#include "graphs/training.h"
#include "sim/base/files.h"
#include "sim/graph.h"
#include "tools/job/job.h"
#include "tools/job/result.h"

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

/* A hundred graphs of a 7B model and more; with each of them that is new some
 * hundred pages come from the system. */
#define MOST_BYTES (UINT64_C(64) << 20)
#define INPUT_BYTES (UINT64_C(1) << 30) /* of a model on standard input */

typedef enum entry_state { MAKING, MADE, FAILED } entry_state;

struct ms_points_entry {
    struct ms_points_entry *next;           /* of its bucket */
    struct ms_points_entry *before, *after; /* by last use; before: older */
    uint64_t hash;                          /* of its key */
    /* of a graph: the model that it was lowered from */
    struct ms_points_entry *model;
    const char *key;
    size_t key_length;
    entry_state state;
    uint32_t users;
    ms_fault fault; /* of an entry in state FAILED */
    ms_arena arena; /* holds the entry itself, too */
    union {
        ms_model model;
        ms_graph graph;
    } made;
};
typedef struct ms_points_entry entry;

struct ms_points_cache {
    pthread_mutex_t lock; /* of the table and what stands in its entries but
                             for what is made */
    pthread_cond_t made;
    entry **buckets;
    uint32_t n_buckets, n_entries; /* n_buckets: a power of two */
    entry *oldest, *newest;        /* by last use */
    uint64_t bytes;
    ms_arena arena;
    char *input; /* standard input, which can be read only once */
    size_t input_length;
};
typedef struct ms_points_cache cache;

/* igraph has global state, so one thread of the process reads at a time. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

/* What lowering depends on. Shapes that differ only in their padding count as
 * different: that costs time and nothing else. */
typedef struct graph_key {
    const entry *model;
    const ms_device *device;
    ms_training training;
    ms_shape shape;
} graph_key;

/* What an entry's model or graph is made from. */
typedef struct request {
    cache *all;
    const ms_job *job;
    const ms_result *result; /* of a graph: its model, training and shape */
    entry *model;
} request;
typedef ms_err make_entry(const request *want, entry *it, ms_fault *fault);

/* ---- the table ----------------------------------------------------------- */

#define FIRST_BUCKETS 64u

/* What lies empty at the end of its last block has no pages yet. */
static uint64_t bytes_of(const entry *it)
{
    return it->arena.used_bytes;
}

static void drop(entry *it)
{
    ms_arena arena = it->arena;
    ms_arena_free(&arena);
}

/* FNV-1a (Fowler, Noll, Vo), eight bytes at a time. */
static uint64_t hash_of(const char *key, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325), word = 0;
    for (size_t i = 0; i < length; i += sizeof word) {
        size_t left = length - i;
        memcpy(&word, key + i, left < sizeof word ? left : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 32;
    }
    return hash;
}

static entry **bucket_of(const cache *all, uint64_t hash)
{
    return &all->buckets[hash & (all->n_buckets - 1)];
}

static void take_out(cache *all, entry *it)
{
    *(it->before != NULL ? &it->before->after : &all->oldest) = it->after;
    *(it->after != NULL ? &it->after->before : &all->newest) = it->before;
}

static void put_newest(cache *all, entry *it)
{
    it->before = all->newest;
    it->after = NULL;
    *(all->newest != NULL ? &all->newest->after : &all->oldest) = it;
    all->newest = it;
}

/* The entry of the key, which is now the newest, or NULL. */
static entry *find(cache *all, uint64_t hash, const char *key, size_t length)
{
    entry *it = all->n_buckets > 0 ? *bucket_of(all, hash) : NULL;
    while (it != NULL && (it->hash != hash || it->key_length != length ||
                          memcmp(it->key, key, length) != 0))
        it = it->next;
    if (it == NULL)
        return NULL;
    take_out(all, it);
    put_newest(all, it);
    return it;
}

/* As many buckets as entries, or more. */
static bool make_buckets(cache *all)
{
    uint32_t n = all->n_buckets > 0 ? 2 * all->n_buckets : FIRST_BUCKETS;
    if (all->n_entries < all->n_buckets)
        return true;
    entry **buckets = ms_arena_take(&all->arena, n, sizeof(entry *));
    if (buckets == NULL)
        return false;
    all->buckets = buckets;
    all->n_buckets = n;
    for (entry *it = all->oldest; it != NULL; it = it->after) {
        entry **bucket = bucket_of(all, it->hash);
        it->next = *bucket;
        *bucket = it;
    }
    return true;
}

static entry *add(cache *all, uint64_t hash, const char *key, size_t length)
{
    ms_arena arena = {0};
    entry *it = ms_arena_take(&arena, 1, sizeof *it);
    char *copy = it == NULL ? NULL : ms_arena_text(&arena, key, length);
    if (copy == NULL || !make_buckets(all)) {
        ms_arena_free(&arena);
        return NULL;
    }
    it->arena = arena;
    it->key = copy;
    it->key_length = length;
    it->hash = hash;
    it->next = *bucket_of(all, hash);
    *bucket_of(all, hash) = it;
    all->n_entries++;
    put_newest(all, it);
    return it;
}

static void take_away(cache *all, entry *it)
{
    entry **link = bucket_of(all, it->hash);
    while (*link != it)
        link = &(*link)->next;
    *link = it->next;
    take_out(all, it);
    all->n_entries--;
    all->bytes -= bytes_of(it);
    if (it->model != NULL)
        it->model->users--;
    drop(it);
}

/* Drops unused entries until the rest is small enough. A graph uses its model,
 * so dropping a graph may free a model that is older: the search begins anew.
 * It passes no more entries than there are seats and models. */
static void make_room(cache *all)
{
    entry *it = all->oldest;
    while (it != NULL && all->bytes > MOST_BYTES) {
        if (it->users > 0) {
            it = it->after;
            continue;
        }
        take_away(all, it);
        it = all->oldest;
    }
}

static void leave(cache *all, entry *it)
{
    pthread_mutex_lock(&all->lock);
    it->users--;
    pthread_mutex_unlock(&all->lock);
}

/* Makes an entry that this thread added. The lock is held before and after, but
 * not while it is made. */
static void make(const request *want, entry *it, make_entry *how)
{
    cache *all = want->all;
    ms_fault fault = {.caret = -1};
    pthread_mutex_unlock(&all->lock);
    ms_err err = how(want, it, &fault);
    pthread_mutex_lock(&all->lock);
    it->state = err == MS_OK ? MADE : FAILED;
    it->fault = fault;
    it->model = want->model;
    if (it->model != NULL)
        it->model->users++;
    all->bytes += bytes_of(it);
    make_room(all);
    pthread_cond_broadcast(&all->made);
}

/* The entry of the key, made now if there is none, with one more user. */
static ms_err use(const request *want, const char *key, size_t length,
                  make_entry *how, entry **found, ms_fault *fault)
{
    cache *all = want->all;
    uint64_t hash = hash_of(key, length);
    pthread_mutex_lock(&all->lock);
    entry *it = find(all, hash, key, length);
    bool fresh = it == NULL;
    if (fresh && (it = add(all, hash, key, length)) == NULL) {
        pthread_mutex_unlock(&all->lock);
        return ms_fail_nomem(fault);
    }
    it->users++;
    if (fresh)
        make(want, it, how);
    while (it->state == MAKING)
        pthread_cond_wait(&all->made, &all->lock);
    ms_err err = MS_OK;
    if (it->state == FAILED) {
        err = it->fault.err;
        if (fault->err == MS_OK)
            *fault = it->fault;
        it->users--;
    }
    pthread_mutex_unlock(&all->lock);
    *found = it;
    return err;
}

/* ---- models -------------------------------------------------------------- */

static bool reads_once(const char *path)
{
    struct stat status;
    if (strcmp(path, "-") == 0)
        return true;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) &&
           !S_ISDIR(status.st_mode);
}

static ms_err read_bytes(cache *all, const char *path, ms_fault *fault)
{
    if (all->input != NULL)
        return MS_OK;
    return ms_files_read(path, INPUT_BYTES, &all->arena, &all->input,
                         &all->input_length, fault);
}

/* A pipe can be read once, under any name: so there is one such model per
 * process. */
static ms_err read_input(cache *all, const ms_job *job, entry *it,
                         ms_fault *fault)
{
    bool is_input = strcmp(job->model, "-") == 0;
    MS_TRY(read_bytes(all, job->model, fault));
    return ms_read_model_bytes(
        is_input ? "standard input" : job->model, all->input, all->input_length,
        job->overrides, job->n_overrides, &it->arena, &it->made.model, fault);
}

static ms_err read_and_order(cache *all, const ms_job *job, entry *it,
                             ms_fault *fault)
{
    if (reads_once(job->model))
        MS_TRY(read_input(all, job, it, fault));
    else
        MS_TRY(ms_read_model(job->model, job->overrides, job->n_overrides,
                             &it->arena, &it->made.model, fault));
    return ms_dag_order(&it->made.model, &it->arena, fault);
}

static ms_err make_model(const request *want, entry *it, ms_fault *fault)
{
    pthread_mutex_lock(&reading);
    ms_err err = read_and_order(want->all, want->job, it, fault);
    pthread_mutex_unlock(&reading);
    return err;
}

/* The key: "M" (that of a graph begins with an address, which is even), the
 * path and the overrides, each ended by a zero. */
static ms_err find_model(cache *all, const ms_job *job, ms_arena *trial,
                         entry **found, ms_fault *fault)
{
    ms_text key = {.arena = trial};
    ms_text_put(&key, "M", 1);
    ms_text_put(&key, job->model, strlen(job->model) + 1);
    for (uint32_t i = 0; i < job->n_overrides; i++) {
        const ms_override *set = &job->overrides[i];
        ms_text_put(&key, set->key, strlen(set->key) + 1);
        ms_text_put(&key, set->value, strlen(set->value) + 1);
    }
    if (key.failed)
        return ms_fail_nomem(fault);
    const request want = {.all = all, .job = job};
    return use(&want, key.bytes, key.length, make_model, found, fault);
}

/* ---- graphs -------------------------------------------------------------- */

static ms_err make_graph(const request *want, entry *it, ms_fault *fault)
{
    const ms_result *result = want->result;
    return ms_lower(&want->model->made.model, &result->training,
                    want->job->device, &result->shape, &it->arena,
                    &it->made.graph, fault);
}

static ms_err find_graph(cache *all, const ms_job *job, entry *model,
                         const ms_result *result, entry **found,
                         ms_fault *fault)
{
    graph_key key;
    memset(&key, 0, sizeof key);
    key.model = model;
    key.device = job->device;
    key.training = result->training;
    key.training.was_set = 0;
    memcpy(&key.shape, &result->shape, sizeof key.shape);
    /* Leaves out what matters only before lowering or after it; of unified
     * memory lowering asks only whether everything is in it. */
    key.shape.gpus = 0;
    key.shape.fixed = 0;
    memset(&key.shape.paging, 0, sizeof key.shape.paging);
    key.shape.paging.page_bytes = result->shape.paging.page_bytes > 0 &&
                                  result->shape.paging.managed == 0;
    const request want = {
        .all = all, .job = job, .result = result, .model = model};
    return use(&want, (const char *)&key, sizeof key, make_graph, found, fault);
}

/* ---- the whole way ------------------------------------------------------- */

/* Keeps the model in use throughout, and on success the graph, too. */
static ms_err lower(cache *all, const ms_job *job, entry *model, entry **graph,
                    ms_result *result, ms_fault *fault)
{
    result->model = model->made.model;
    ms_jobway_settings(job, &result->training);
    MS_TRY(ms_resolve_training(&result->training, &result->model, fault));
    MS_TRY(ms_jobway_shape(job, result, fault));
    MS_TRY(find_graph(all, job, model, result, graph, fault));
    result->graph = &(*graph)->made.graph;
    return MS_OK;
}

ms_err ms_points_lower(ms_points *points, ms_points_seat *seat,
                       const ms_job *job, ms_result *result, ms_fault *fault)
{
    cache *all = points->cache;
    entry *model, *graph;
    if (seat->held != NULL)
        leave(all, seat->held);
    seat->held = NULL;
    ms_arena_reset(&seat->arena);
    memset(result, 0, sizeof *result);
    MS_TRY(find_model(all, job, &seat->arena, &model, fault));
    ms_err err = lower(all, job, model, &graph, result, fault);
    leave(all, model); /* the graph uses the model */
    MS_TRY(err);
    seat->held = graph;
    return MS_OK;
}

ms_err ms_points_step(ms_points *points, ms_points_seat *seat,
                      const ms_job *job, ms_result *result, ms_fault *fault)
{
    MS_TRY(ms_points_lower(points, seat, job, result, fault));
    return ms_jobway_step(job, &seat->arena, result, fault);
}

/* A fold keeps the graph in use that it is of. */
static void fold_of_held(cache *all, ms_points_seat *seat)
{
    uint32_t i =
        ms_foldstep_turn(&seat->fold, &seat->held->made.graph, seat->coming);
    entry *before = seat->folds[i];
    if (before == seat->held)
        return;
    seat->folds[i] = seat->held;
    pthread_mutex_lock(&all->lock);
    seat->held->users++;
    if (before != NULL)
        before->users--;
    pthread_mutex_unlock(&all->lock);
}

ms_err ms_points_fold(ms_points *points, ms_points_seat *seat,
                      const ms_job *job, ms_result *result, bool *folded,
                      ms_fault *fault)
{
    *folded = false;
    MS_TRY(ms_points_lower(points, seat, job, result, fault));
    fold_of_held(points->cache, seat);
    return ms_foldstep_run(&seat->fold, job, &seat->arena, result, folded,
                           fault);
}

ms_err ms_points_model(ms_points *points, const ms_job *job, ms_model *model,
                       ms_fault *fault)
{
    ms_arena arena = {0};
    entry *it;
    ms_err err = find_model(points->cache, job, &arena, &it, fault);
    ms_arena_free(&arena);
    /* stays in use until points is closed, since model must last as long */
    MS_TRY(err);
    *model = it->made.model;
    return MS_OK;
}

ms_err ms_points_input(ms_points *points, ms_quote *text, ms_fault *fault)
{
    cache *all = points->cache;
    MS_TRY(read_bytes(all, "-", fault));
    *text = (ms_quote){"standard input", all->input, all->input_length, 0};
    return MS_OK;
}

void ms_points_leave(ms_points *points, ms_points_seat *seat)
{
    ms_foldstep_leave(&seat->fold);
    for (uint32_t i = 0; i < MS_FOLDSTEP_FAMILIES; i++) {
        if (seat->folds[i] != NULL)
            leave(points->cache, seat->folds[i]);
        seat->folds[i] = NULL;
    }
    if (seat->held != NULL)
        leave(points->cache, seat->held);
    seat->held = NULL;
    ms_arena_free(&seat->arena);
}

ms_err ms_points_open(ms_points *points, ms_fault *fault)
{
    ms_arena arena = {0};
    cache *all = ms_arena_take(&arena, 1, sizeof *all);
    points->cache = all;
    if (all == NULL)
        return ms_fail_nomem(fault);
    all->arena = arena;
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->made, NULL);
    return MS_OK;
}

void ms_points_close(ms_points *points)
{
    cache *all = points->cache;
    if (all == NULL)
        return;
    for (entry *it = all->oldest, *after; it != NULL; it = after) {
        after = it->after;
        drop(it);
    }
    pthread_cond_destroy(&all->made);
    pthread_mutex_destroy(&all->lock);
    ms_arena arena = all->arena;
    ms_arena_free(&arena);
    points->cache = NULL;
}
