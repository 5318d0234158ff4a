/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Other kernels, a loss in chunks, a fused optimizer: settings that hardly ever
 * cost anything are decided once, by a few replays of set-ups that differ most,
 * instead of being multiplied with all other dimensions. */

#include "graphs/machines/accuracy.h"
#include "tools/search/fit.h"

#include <assert.h>
#include <string.h>

#define MOST_PROBES 4u /* without and with checkpoints, at two batches */

/* In this order: each is probed with the last option that was kept of those
 * before it. */
static const ms_fit_axis_id decided[] = {MS_FIT_OPTIMIZER, MS_FIT_KERNELS,
                                         MS_FIT_LOSS};
#define N_DECIDED (sizeof decided / sizeof decided[0])

typedef struct found {
    bool refused;
    uint64_t step_ns, bytes;
} found;

typedef struct probes {
    ms_fit *fit;
    ms_fit_point points[MOST_PROBES];
    uint32_t n;
} probes;

static uint16_t full_checkpoints(const ms_fit_axis *axis)
{
    for (uint32_t i = 0; i < axis->n; i++)
        if (axis->options[i].choice->label != NULL &&
            strcmp(axis->options[i].choice->label, "full") == 0)
            return (uint16_t)i;
    return 0;
}

/* The fewest ranks that split layers with which the job's samples divide. */
static uint16_t least_tensor(const ms_fit *fit)
{
    const ms_fit_axis *axis = &fit->axes[MS_FIT_TENSOR];
    for (uint16_t i = 0; i < axis->n && fit->job->global_batch > 0; i++) {
        uint32_t split =
            axis->options[i].value > 0 ? axis->options[i].value : 1;
        if (fit->ranks % split == 0 &&
            fit->job->global_batch % (fit->ranks / split) == 0)
            return i;
    }
    return 0;
}

/* On several GPUs the probes share as much as they can. */
static void open_probes(probes *p, ms_fit *fit)
{
    uint16_t full = full_checkpoints(&fit->axes[MS_FIT_CHECKPOINT]);
    uint16_t most = (uint16_t)(fit->axes[MS_FIT_BATCH].n - 1);
    uint16_t share = (uint16_t)(fit->axes[MS_FIT_SHARE].n - 1);
    *p = (probes){.fit = fit};
    for (uint32_t k = 0; k < MOST_PROBES; k++) {
        ms_fit_point *point = &p->points[p->n];
        if ((k % 2 > 0 && full == 0) || (k / 2 > 0 && most == 0))
            continue;
        point->option[MS_FIT_SHARE] = share;
        point->option[MS_FIT_TENSOR] = least_tensor(fit);
        point->option[MS_FIT_CHECKPOINT] = k % 2 > 0 ? full : 0;
        point->option[MS_FIT_BATCH] = k / 2 > 0 ? most : 0;
        p->n++;
    }
}

/* ---- what is no use ------------------------------------------------------ */

/* percent of time that less memory may cost */
#define SLOWER (MS_ACCURACY_UNKNOWN / 2)

static bool is_more(uint64_t a, uint64_t b, uint32_t percent)
{
    return a > b && a - b > b / 100 * percent;
}

/* Is a larger than b, or refused, at a probe that does not refuse b? */
static bool is_larger(const found *a, const found *b, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (!b[k].refused &&
            (a[k].refused || is_more(a[k].bytes, b[k].bytes, MS_FIT_TIE)))
            return true;
    return false;
}

static bool is_slower(const found *a, const found *b, uint32_t n,
                      uint32_t percent)
{
    for (uint32_t k = 0; k < n; k++)
        if (!a[k].refused && !b[k].refused &&
            is_more(a[k].step_ns, b[k].step_ns, percent))
            return true;
    return false;
}

/* Of two options that need the same memory: is a faster, or as fast and listed
 * first? */
static bool is_preferred(const found *a, const found *b, uint32_t n, bool first)
{
    bool slower = is_slower(a, b, n, MS_FIT_TIE);
    bool faster = is_slower(b, a, n, MS_FIT_TIE);
    return (faster && !slower) || (first && faster == slower);
}

static void drop_useless(ms_fit_axis *axis, found of[][MOST_PROBES], uint32_t n)
{
    for (uint32_t i = 0; i < axis->n; i++)
        for (uint32_t k = 0; k < axis->n; k++) {
            if (k == i || axis->dropped >> k & 1 ||
                is_larger(of[k], of[i], n) ||
                is_slower(of[k], of[i], n, SLOWER))
                continue;
            if (is_larger(of[i], of[k], n) ||
                is_preferred(of[k], of[i], n, k < i))
                axis->dropped |= 1u << i;
        }
}

static uint16_t last_kept(const ms_fit_axis *axis)
{
    uint32_t i = axis->n - 1;
    while (i > 0 && axis->dropped >> i & 1)
        i--;
    return (uint16_t)i;
}

/* ---- the replays --------------------------------------------------------- */

static ms_err probe_axis(probes *p, ms_fit_axis_id id, ms_fault *fault)
{
    ms_fit *fit = p->fit;
    ms_fit_axis *axis = &fit->axes[id];
    uint32_t n = 0;
    ms_fit_point *points =
        ms_arena_take(fit->arena, axis->n * MOST_PROBES, sizeof *points);
    found(*of)[MOST_PROBES] = ms_arena_take(fit->arena, axis->n, sizeof *of);
    if (points == NULL || of == NULL)
        return ms_fail_nomem(fault);
    assert(axis->n <= 32); /* axis->dropped has a bit for each */
    for (uint32_t i = 0; i < axis->n; i++)
        for (uint32_t k = 0; k < p->n; k++) {
            points[n] = p->points[k];
            points[n++].option[id] = (uint16_t)i;
        }
    MS_TRY(ms_fitsearch_probe(fit, points, n, fault));
    for (uint32_t i = 0; i < n; i++)
        of[i / p->n][i % p->n] =
            (found){points[i].state == MS_FIT_REFUSED, points[i].step_ns,
                    points[i].reserved_bytes};
    fit->n_decided += n;
    drop_useless(axis, of, p->n);
    for (uint32_t k = 0; k < p->n; k++)
        p->points[k].option[id] = last_kept(axis);
    return MS_OK;
}

ms_err ms_fitprobe_run(ms_fit *fit, ms_fault *fault)
{
    probes p;
    open_probes(&p, fit);
    fit->n_decided = 0;
    for (size_t i = 0; i < N_DECIDED; i++) {
        ms_fit_axis *axis = &fit->axes[decided[i]];
        if (fit->settled != NULL)
            axis->dropped = fit->settled->axes[decided[i]].dropped;
        else if (!axis->fixed)
            MS_TRY(probe_axis(&p, decided[i], fault));
    }
    return MS_OK;
}
