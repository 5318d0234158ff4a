/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim sweep: the points of a grid, simulated on all cores. */

#include "tools/cli/sweep/sweep.h"
#include "graphs/model.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "sim/names.h"
#include "sim/report.h"
#include "tools/cli/commands.h"
#include "tools/job/job.h"
#include "tools/job/outputs.h"
#include "tools/job/result.h"
#include "tools/job/settings.h"
#include "tools/options/options.h"
#include "tools/terminal/quantity.h"
#include "tools/terminal/screen.h"
#include "tools/words/words.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a thread works with: memory for the job of a point, a seat, and the rows
 * of the window that it has written. */
typedef struct desk {
    ms_points_seat seat;
    ms_arena words, rows;
} desk;

/* Points are simulated a window at a time, within it graph by graph
 * (sweep_order.c), and then written in the order of the grid. The first window
 * is small, so that first rows come soon; each one after it has twice as many
 * points, up to the largest, whose rows are some 16 MiB. */
#define FIRST_WINDOW 1024u
#define MOST_WINDOW 65536u

/* A thread takes a batch of points that share a graph, so that it alone learns
 * it: at most this many, and few enough that there are so many for each. */
#define MOST_BATCH 64u
#define BATCHES_EACH 4u

/* A point that was simulated. */
typedef struct slot {
    const char *row; /* NULL: not done */
    size_t length;
    bool fits, is_bare, is_refused;
} slot;

typedef struct run {
    const ms_hall *hall;
    ms_job base;
    ms_grid grid;
    ms_filters filters;
    ms_sweep sweep;
    ms_points points;
    ms_sweep_file file;
    ms_progress progress;
    const char *out; /* -o, or NULL */
    bool resume, quiet;
    uint32_t threads;
    uint64_t shard, shards; /* counted from 1 */
    desk *desks;
    ms_arena window;   /* what follows, of the window under way */
    uint32_t begin, n; /* its first item, and how many it has */
    ms_sweep_order order;
    slot *slots;          /* by item */
    pthread_mutex_t lock; /* of fault and err, which a thread may set */
    uint32_t n_simulated; /* of the window */
    uint32_t n_done, n_fit, n_refused;
    /* rows whose fits is of the live bytes alone, without a pool */
    uint32_t n_bare;
    ms_fault *fault;
    ms_err err;
} run;

/* ---- interrupts ---------------------------------------------------------- */

static volatile sig_atomic_t interrupt; /* the signal's number; 0: none came */

static void note_interrupt(int number)
{
    interrupt = number;
}

/* The first signal lets the rows that are done be written; the same signal
 * again ends the process at once. */
static void catch_interrupts(void)
{
    static const int signals[] = {SIGINT, SIGTERM};
    struct sigaction note = {.sa_handler = note_interrupt,
                             .sa_flags = (int)SA_RESETHAND},
                     now;
    sigemptyset(&note.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(signals[i], &note, NULL);
}

/* ---- options ------------------------------------------------------------- */

static ms_err read_shard(run *r, ms_fault *fault)
{
    const char *text = ms_options_value(r->hall->arguments, MS_OPTION_SHARD);
    char *slash, *end;
    r->shard = r->shards = 1;
    if (text == NULL)
        return MS_OK;
    bool good = ms_quantity_whole(text, &r->shard, &slash) && *slash == '/' &&
                ms_quantity_whole(slash + 1, &r->shards, &end) && *end == '\0';
    if (good && r->shard >= 1 && r->shard <= r->shards &&
        r->shards <= MS_GRID_POINTS)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "--shard",
                   "write i/n with i from 1 to n, e.g. --shard 1/4",
                   "\"%s\" is not a shard", text);
}

static ms_err read_options(run *r, ms_fault *fault)
{
    const ms_arguments *arguments = r->hall->arguments;
    r->out = ms_options_value(arguments, MS_OPTION_OUTPUT);
    r->resume = ms_options_value(arguments, MS_OPTION_RESUME) != NULL;
    r->quiet = ms_options_value(arguments, MS_OPTION_QUIET) != NULL;
    r->sweep.json = ms_options_value(arguments, MS_OPTION_JSON) != NULL;
    MS_TRY(ms_workers_read(ms_options_value(arguments, MS_OPTION_JOBS),
                           &r->threads, fault));
    MS_TRY(read_shard(r, fault));
    if (r->resume && (r->out == NULL || ms_outputs_is_stdout(r->out)))
        return ms_fail(fault, MS_EUSAGE, "--resume",
                       "name it with -o, e.g. -o sweep.csv",
                       "the file to continue is not named");
    return ms_outputs_check(&r->base, &r->out, 1, fault);
}

/* ---- which points -------------------------------------------------------- */

/* A key that the model does not have is a fault of the whole sweep, not of each
 * single point. */
static ms_err check_model_keys(run *r, ms_fault *fault)
{
    ms_model other;
    for (uint32_t a = 0; a < r->grid.n_axes; a++) {
        const ms_axis *axis = &r->grid.axes[a];
        ms_fault inner = {.caret = -1};
        ms_job job = r->base;
        if (strncmp(axis->key, "model.", 6) != 0)
            continue;
        MS_TRY(ms_settings_put(&job, axis->key, axis->values[0], r->hall->keep,
                               fault));
        ms_err err = ms_points_model(&r->points, &job, &other, &inner);
        if (err == MS_EUSAGE)
            return ms_fail(fault, err, "--grid", inner.hint, "%s", inner.what);
    }
    return MS_OK;
}

/* A filter may ask for a setting that only the model decides: it has the
 * model's value, unless the grid varies it. */
static ms_err read_filters(run *r, const ms_model *model, ms_fault *fault)
{
    ms_fault inner = {.caret = -1};
    ms_job base = r->base;
    bool varies = false;
    for (uint32_t a = 0; a < r->grid.n_axes; a++)
        varies |= strncmp(r->grid.axes[a].key, "model.", 6) == 0;
    if (!varies)
        ms_resolve_training(&base.training, model, &inner);
    return ms_filter_read(r->hall->arguments, &r->grid, &base, r->hall->keep,
                          &r->filters, fault);
}

/* Finds the points that pass the filters; *n is their number. */
static ms_err keep_points(run *r, uint64_t *n, ms_fault *fault)
{
    uint32_t *kept = NULL, capacity = 0, passed = 0;
    *n = r->grid.n_points;
    if (r->filters.n == 0)
        return MS_OK;
    for (uint64_t point = 0; point < r->grid.n_points; point++) {
        if (!ms_filter_holds(&r->filters, &r->grid, point))
            continue;
        kept = ms_arena_grow(r->hall->keep, kept, &capacity, passed + 1,
                             sizeof *kept);
        if (kept == NULL)
            return ms_fail_nomem(fault);
        kept[passed++] = (uint32_t)point;
    }
    r->sweep.kept = kept;
    *n = passed;
    if (passed > 0)
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, "--filter", "loosen the filters",
                   "none of the %" PRIu64 " points passes", r->grid.n_points);
}

/* Shards are cut by multiplication, not by a rounded size, so that they differ
 * by one point at most. No overflow: at most 10^8 points and shards. */
static void cut_shard(run *r, uint64_t n)
{
    uint64_t end = n * r->shard / r->shards;
    r->sweep.first = n * (r->shard - 1) / r->shards;
    r->sweep.n = (uint32_t)(end - r->sweep.first);
}

/* By combination of policies the canonical spelling, with the policies that all
 * points have joined. */
static ms_err spell_policies(run *r, ms_fault *fault)
{
    ms_sweep *sweep = &r->sweep;
    uint32_t n = r->grid.n_specs;
    ms_arena *keep = r->hall->keep;
    ms_sweep_shapes known = {0};
    uint32_t *shapes = ms_arena_take(keep, n, sizeof *shapes);
    sweep->policies = ms_arena_take(keep, n, sizeof *sweep->policies);
    sweep->shapes = shapes;
    if (sweep->policies == NULL || shapes == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < n; i++) {
        ms_spec spec;
        ms_grid_spec(&r->grid, i, &r->base, &spec);
        MS_TRY(ms_sweep_order_policy(&r->base, &spec, keep, &known, &shapes[i],
                                     fault));
        sweep->policies[i] = ms_spec_print(&spec, keep);
        if (sweep->policies[i] == NULL)
            return ms_fail_nomem(fault);
    }
    return MS_OK;
}

static ms_err choose_points(run *r, ms_fault *fault)
{
    const ms_arguments *arguments = r->hall->arguments;
    ms_model model;
    uint64_t n;
    MS_TRY(ms_grid_read(arguments, &r->base, r->hall->keep, &r->grid, fault));
    if (r->grid.n_axes == 0)
        return ms_fail(fault, MS_EUSAGE, NULL,
                       "e.g. --grid 'batch=1..64*2'; see memsim help grid",
                       "\"memsim sweep\" needs a --grid");
    r->sweep.grid = &r->grid;
    r->sweep.base = &r->base;
    MS_TRY(spell_policies(r, fault));
    MS_TRY(ms_points_model(&r->points, &r->base, &model, fault));
    MS_TRY(check_model_keys(r, fault));
    MS_TRY(read_filters(r, &model, fault));
    MS_TRY(keep_points(r, &n, fault));
    cut_shard(r, n);
    return MS_OK;
}

/* ---- a point ------------------------------------------------------------- */

/* Names the memories of a node that are too small, in fault->what. */
static void say_short(const ms_report *report, ms_fault *fault)
{
    for (int pool = MS_HOST_POOL; pool < MS_N_POOLS; pool++) {
        uint64_t bytes = ms_capacity_short(report, (ms_pool_kind)pool);
        size_t length = strlen(fault->what);
        if (bytes > 0)
            snprintf(fault->what + length, sizeof fault->what - length,
                     "%s%s of a node lacks %s", length > 0 ? ", " : "",
                     ms_room_names[pool], ms_quantity_size(bytes).s);
    }
}

static void read_report(const ms_job *job, const ms_report *report,
                        ms_outcome *outcome)
{
    const ms_rank_report *rank = &report->ranks[report->worst];
    const ms_lack *lack = &report->lack;
    ms_sweep_row *row = &outcome->row;
    outcome->status = report->status;
    row->has_numbers = true;
    row->fits_known = ms_defaultpool_is_told(job, report);
    row->fits = report->fits;
    row->fits_exact = ms_capacity_fits_exact(report);
    row->peak_allocated_bytes = rank->peak.allocated_bytes;
    row->peak_reserved_bytes = rank->peak.reserved_bytes;
    row->step_ns = rank->time.step_ns;
    row->recompute_ns = rank->time.recompute_ns;
    row->stall_ns = rank->time.stall_ns;
    row->exposed_comm_ns = rank->time.exposed_comm_ns;
    row->tokens_per_second = report->tokens_per_second;
    row->host_peak_bytes = report->host_peak_bytes;
    row->host_reserved_peak_bytes = report->far[MS_HOST_POOL].reserved_bytes;
    if (lack->missing_bytes == 0)
        say_short(report, &outcome->fault);
    else
        snprintf(outcome->fault.what, sizeof outcome->fault.what,
                 "%s%s%s lacks %s at %s", report->lack_op,
                 report->lack_layer != NULL ? " of " : "",
                 report->lack_layer != NULL ? report->lack_layer : "",
                 ms_quantity_size(lack->missing_bytes).s,
                 ms_quantity_time(lack->t_ns).s);
}

/* What a figure of the rows needs for its headings: the model, the set-up, the
 * sizes. */
static ms_err name_setup(const ms_job *job, const ms_result *result,
                         ms_arena *arena, ms_outcome *outcome)
{
    ms_text setup = {.arena = arena};
    const ms_shape *shape = &result->shape;
    uint64_t groups = shape->data_ranks > 1 ? shape->data_ranks : 1;
    ms_setupwords_put(result, "x", &setup);
    ms_text_add(&setup, ", %s", job->device->name);
    if (setup.failed)
        return ms_fail_nomem(&outcome->fault);
    snprintf(outcome->setup, sizeof outcome->setup, "%s", setup.bytes);
    snprintf(outcome->model, sizeof outcome->model, "%s", result->model.name);
    outcome->row.job_gpus = groups * ms_shape_model_ranks(shape);
    outcome->row.job_batch = (uint64_t)result->training.batch * groups;
    outcome->row.capacity_bytes = result->report->capacity_bytes;
    outcome->row.context_bytes = result->report->context_bytes;
    return MS_OK;
}

/* Is the fault the system's, not the point's? */
static bool ends_sweep(ms_err err)
{
    return err == MS_ESYSTEM || err == MS_ENOMEM || err == MS_EPROGRAM;
}

ms_err ms_sweep_item(const ms_sweep *sweep, uint32_t item, ms_points *points,
                     ms_points_seat *seat, ms_arena *trial, ms_outcome *outcome)
{
    ms_job job;
    ms_result result;
    bool folded;
    memset(outcome, 0, sizeof *outcome);
    ms_arena_reset(trial);
    ms_err err = ms_grid_job(sweep->grid, ms_sweep_rows_point(sweep, item),
                             sweep->base, trial, &job, &outcome->fault);
    job.brief = job.unmerged = true;
    if (err == MS_OK)
        err = ms_points_fold(points, seat, &job, &result, &folded,
                             &outcome->fault);
    if (err == MS_OK)
        read_report(&job, result.report, outcome);
    if (err == MS_OK && sweep->json)
        outcome->row.replayed_because =
            ms_foldstep_bar(&seat->fold, &job, &result);
    if (err == MS_OK)
        err = name_setup(&job, &result, trial, outcome);
    return ends_sweep(err) ? err : MS_OK;
}

/* The first fault that ends the sweep stays. */
static void stop(run *r, const ms_fault *fault)
{
    pthread_mutex_lock(&r->lock);
    if (r->err == MS_OK) {
        r->err = fault->err;
        *r->fault = *fault;
    }
    pthread_mutex_unlock(&r->lock);
}

/* Simulates the item at a place of the order; false: the sweep ends. */
static bool simulate_item(run *r, uint32_t place, desk *own)
{
    slot *to = &r->slots[r->order.item[place]];
    uint32_t item = r->begin + r->order.item[place];
    ms_outcome outcome;
    ms_text row = {.arena = &own->rows};
    ms_err err = ms_sweep_item(&r->sweep, item, &r->points, &own->seat,
                               &own->words, &outcome);
    ms_sweep_rows_begin(&r->sweep, item, &row);
    ms_sweep_rows_end(&r->sweep, &outcome, &row);
    if (err == MS_OK && row.failed)
        err = ms_fail_nomem(&outcome.fault);
    if (err != MS_OK) {
        stop(r, &outcome.fault);
        return false;
    }
    bool simulated = outcome.fault.err == MS_OK;
    *to = (slot){
        .row = row.bytes,
        .length = row.length,
        .fits =
            outcome.row.fits_known ? outcome.row.fits : outcome.row.fits_exact,
        .is_bare = simulated && !outcome.row.fits_known,
        .is_refused = !simulated,
    };
    return true;
}

static void work(void *of, uint32_t i, uint32_t thread)
{
    run *r = of;
    desk *own = &r->desks[thread];
    const ms_sweep_batch *batch = &r->order.batches[i];
    bool goes_on = true;
    for (uint32_t k = 0; k < batch->n && goes_on && interrupt == 0; k++) {
        own->seat.coming = batch->coming - k;
        goes_on = simulate_item(r, batch->first + k, own);
    }
}

/* ---- rows as they come --------------------------------------------------- */

static bool has_failed(run *r)
{
    pthread_mutex_lock(&r->lock);
    bool failed = r->err != MS_OK;
    pthread_mutex_unlock(&r->lock);
    return failed;
}

static bool tick(void *of)
{
    run *r = of;
    ms_progress_show(&r->progress, r->begin + r->n_simulated);
    return !has_failed(r) && interrupt == 0;
}

static bool done(void *of, uint32_t i)
{
    run *r = of;
    r->n_simulated += r->order.batches[i].n;
    return tick(r);
}

/* Writes the rows of the window, up to the first that is not there. */
static ms_err write_window(run *r, ms_fault *fault)
{
    for (uint32_t i = 0; i < r->n && r->slots[i].row != NULL; i++) {
        const slot *it = &r->slots[i];
        ms_text_put(&r->file.rows, it->row, it->length);
        r->n_done++;
        r->n_fit += it->fits;
        r->n_bare += it->is_bare;
        r->n_refused += it->is_refused;
    }
    return ms_sweep_file_flush(&r->file, interrupt != 0, fault);
}

/* ---- the run ------------------------------------------------------------- */

/* Simulates the last row of a file again before it is continued: a file of
 * another model or of other settings has other numbers. */
static ms_err check_last(run *r, const ms_text *last, ms_fault *fault)
{
    ms_text row = {.arena = r->hall->trial};
    char where[256];
    uint32_t item = r->file.found - 1;
    ms_outcome outcome;
    ms_err err = ms_sweep_item(&r->sweep, item, &r->points, &r->desks->seat,
                               &r->desks->words, &outcome);
    if (err != MS_OK)
        *fault = outcome.fault;
    MS_TRY(err);
    ms_sweep_rows_begin(&r->sweep, item, &row);
    ms_sweep_rows_end(&r->sweep, &outcome, &row);
    if (row.failed)
        return ms_fail_nomem(fault);
    size_t at = 0;
    while (at < row.length && at < last->length &&
           row.bytes[at] == last->bytes[at])
        at++;
    if (at == row.length && at == last->length)
        return MS_OK;
    snprintf(where, sizeof where, "%.200s:%" PRIu32 ":%zu", r->file.path,
             item + 1 + !r->sweep.json, at + 1);
    ms_fail_quote(fault, last->bytes, last->length, at);
    return ms_fail(fault, MS_EINPUT, where,
                   "resume with the same model and settings, or write to "
                   "another file",
                   "this point has another result now");
}

static ms_err take_rooms(run *r, ms_fault *fault)
{
    ms_arena *keep = r->hall->keep;
    r->desks = ms_arena_take(keep, r->threads, sizeof *r->desks);
    return r->desks == NULL ? ms_fail_nomem(fault) : MS_OK;
}

static ms_err open_file(run *r, ms_fault *fault)
{
    ms_text last = {.arena = r->hall->keep};
    MS_TRY(
        ms_sweep_file_open(&r->file, r->out, r->resume, r->hall->keep, fault));
    if (r->resume)
        MS_TRY(ms_sweep_file_resume(&r->file, &r->sweep, r->hall->trial, &last,
                                    fault));
    if (r->file.found > 0)
        MS_TRY(check_last(r, &last, fault));
    if (r->file.end_bytes == 0)
        ms_sweep_rows_header(&r->sweep, &r->file.rows);
    return MS_OK;
}

/* One line at the end where rows went into a file, or where a signal ended the
 * run. */
static void tell(const run *r)
{
    char what[256];
    const char *path = r->file.path != NULL ? r->file.path : "standard output";
    const char *how = "wrote";
    if (interrupt != 0)
        how = r->file.path != NULL ? "interrupted, --resume goes on: wrote"
                                   : "interrupted: wrote";
    if (interrupt == 0 && (r->quiet || r->file.path == NULL))
        return;
    snprintf(what, sizeof what, "%s %s row%s (%s fit%s, %s refused) to", how,
             ms_quantity_count(r->n_done).s, r->n_done == 1 ? "" : "s",
             ms_quantity_count(r->n_fit).s,
             r->n_bare > 0 ? " without a pool" : "",
             ms_quantity_count(r->n_refused).s);
    ms_complain_note(what, path);
}

static ms_err simulate_window(run *r, ms_fault *fault)
{
    ms_arena_reset(&r->window);
    for (uint32_t i = 0; i < r->threads; i++)
        ms_arena_reset(&r->desks[i].rows);
    uint32_t most = r->n / (BATCHES_EACH * r->threads);
    most = most > MOST_BATCH ? MOST_BATCH : most;
    MS_TRY(ms_sweep_order_find(&r->sweep, r->begin, r->n, most > 0 ? most : 1,
                               &r->window, &r->order, fault));
    r->slots = ms_arena_take(&r->window, r->n, sizeof *r->slots);
    if (r->slots == NULL)
        return ms_fail_nomem(fault);
    r->n_simulated = 0;
    MS_TRY(ms_workers_run(r->order.n, r->threads, work, done, tick, r, fault));
    return write_window(r, fault);
}

static ms_err simulate(run *r, ms_fault *fault)
{
    ms_err err = MS_OK;
    r->begin = r->file.found;
    r->fault = fault;
    ms_progress_open(&r->progress, r->quiet,
                     r->file.path == NULL && isatty(STDOUT_FILENO) == 1,
                     r->begin, r->sweep.n);
    for (uint32_t size = FIRST_WINDOW; r->begin < r->sweep.n; size *= 2) {
        uint32_t left = r->sweep.n - r->begin;
        size = size < MOST_WINDOW ? size : MOST_WINDOW;
        r->n = left < size ? left : size;
        err = simulate_window(r, fault);
        if (err != MS_OK || r->err != MS_OK || interrupt != 0)
            break;
        r->begin += r->n;
    }
    ms_progress_clear(&r->progress);
    if (err == MS_OK)
        err = ms_sweep_file_flush(&r->file, true, fault);
    return r->err != MS_OK ? r->err : err;
}

static ms_err sweep(run *r, ms_fault *fault)
{
    MS_TRY(
        ms_settings_read(r->hall->arguments, r->hall->keep, &r->base, fault));
    MS_TRY(read_options(r, fault));
    MS_TRY(choose_points(r, fault));
    MS_TRY(take_rooms(r, fault));
    catch_interrupts();
    MS_TRY(open_file(r, fault));
    return simulate(r, fault);
}

ms_err ms_sweep_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    run r = {.hall = hall, .file.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};
    MS_TRY(ms_points_open(&r.points, fault));
    ms_err err = sweep(&r, fault);
    ms_err closed = ms_sweep_file_close(&r.file, fault);
    for (uint32_t i = 0; r.desks != NULL && i < r.threads; i++) {
        ms_points_leave(&r.points, &r.desks[i].seat);
        ms_arena_free(&r.desks[i].words);
        ms_arena_free(&r.desks[i].rows);
    }
    ms_arena_free(&r.window);
    ms_points_close(&r.points);
    MS_TRY(err);
    MS_TRY(closed);
    tell(&r);
    *status = interrupt != 0 ? 128 + interrupt : 0;
    return MS_OK;
}
