/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads that work on items, whose results come in order.
 *
 * Items are handed out in ascending order; the calling thread waits for the
 * next one in line and calls `done`. No thread runs more than MS_WORKERS_AHEAD
 * items ahead of it, so that the results in between fit into a ring. */

/* sched_getaffinity: the cores that taskset and Slurm leave us */
#define _GNU_SOURCE

#include "tools/points/points.h"
#include "tools/terminal/quantity.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS 50000000 /* time between two ticks */
#define NS_PER_S 1000000000

typedef struct pool {
    pthread_mutex_t lock; /* protects all members below it */
    pthread_cond_t finished, room;
    uint32_t n, next; /* next: the first item that is not begun */
    uint32_t first;   /* the first item that is not done */
    uint32_t threads; /* threads that have a number */
    bool stop;
    bool ready[MS_WORKERS_AHEAD]; /* is item first + i (modulo) finished? */
    ms_workers_do *work;
    void *of;
} pool;

uint32_t ms_workers_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (uint32_t)cores : 1;
}

ms_err ms_workers_read(const char *jobs, uint32_t *threads, ms_fault *fault)
{
    char hint[64], *end;
    uint64_t n = ms_workers_cores();
    bool whole = jobs == NULL || (ms_quantity_whole(jobs, &n, &end) &&
                                  end > jobs && *end == '\0');
    snprintf(hint, sizeof hint, "without it all cores work, here %u",
             ms_workers_cores());
    if (!whole || n < 1 || n > MS_WORKERS_MOST)
        return ms_fail(fault, MS_EUSAGE, "--jobs", hint,
                       "expected a number of threads from 1 to %u, not \"%s\"",
                       MS_WORKERS_MOST, jobs);
    *threads = (uint32_t)n;
    return MS_OK;
}

/* ---- a thread ------------------------------------------------------------ */

/* The next item to begin, or n when this thread has none any more. The lock is
 * held. */
static uint32_t take_item(pool *p)
{
    while (!p->stop && p->next < p->n && p->next - p->first >= MS_WORKERS_AHEAD)
        pthread_cond_wait(&p->room, &p->lock);
    return p->stop || p->next >= p->n ? p->n : p->next++;
}

static void *run_thread(void *of)
{
    pool *p = of;
    pthread_mutex_lock(&p->lock);
    uint32_t thread = p->threads++;
    for (uint32_t i; (i = take_item(p)) < p->n;) {
        pthread_mutex_unlock(&p->lock);
        p->work(p->of, i, thread);
        pthread_mutex_lock(&p->lock);
        p->ready[i % MS_WORKERS_AHEAD] = true;
        if (i == p->first)
            pthread_cond_signal(&p->finished);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Starts up to n threads and returns how many were started. Signals go to the
 * calling thread. */
static uint32_t start_threads(pool *p, pthread_t *threads, uint32_t n)
{
    sigset_t all, before;
    uint32_t started = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < n &&
           pthread_create(&threads[started], NULL, run_thread, p) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* ---- the calling thread -------------------------------------------------- */

static struct timespec next_tick(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += TICK_NS;
    if (t.tv_nsec >= NS_PER_S) {
        t.tv_nsec -= NS_PER_S;
        t.tv_sec++;
    }
    return t;
}

/* Waits until the first item is finished; false: tick asked to stop. The lock
 * is held, except while tick runs. */
static bool await_first(pool *p, ms_workers_tick *tick)
{
    while (!p->ready[p->first % MS_WORKERS_AHEAD]) {
        const struct timespec until = next_tick();
        int late = pthread_cond_timedwait(&p->finished, &p->lock, &until);
        if (late == 0 || tick == NULL)
            continue;
        pthread_mutex_unlock(&p->lock);
        bool goes_on = tick(p->of);
        pthread_mutex_lock(&p->lock);
        if (!goes_on)
            return false;
    }
    return true;
}

static void collect(pool *p, ms_workers_done *done, ms_workers_tick *tick)
{
    pthread_mutex_lock(&p->lock);
    while (!p->stop && p->first < p->n) {
        bool goes_on = await_first(p, tick);
        if (goes_on) {
            uint32_t first = p->first;
            pthread_mutex_unlock(&p->lock);
            goes_on = done(p->of, first);
            pthread_mutex_lock(&p->lock);
            p->ready[first % MS_WORKERS_AHEAD] = false;
            p->first++;
        }
        p->stop = !goes_on;
        pthread_cond_broadcast(&p->room);
    }
    pthread_mutex_unlock(&p->lock);
}

static void open_pool(pool *p)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->finished, &monotonic);
    pthread_cond_init(&p->room, NULL);
    pthread_condattr_destroy(&monotonic);
}

static void close_pool(pool *p)
{
    pthread_cond_destroy(&p->room);
    pthread_cond_destroy(&p->finished);
    pthread_mutex_destroy(&p->lock);
}

/* Works on all items without another thread. */
static void run_alone(const pool *p, ms_workers_done *done,
                      ms_workers_tick *tick)
{
    for (uint32_t i = 0; i < p->n; i++) {
        p->work(p->of, i, 0);
        if (!done(p->of, i) || (tick != NULL && !tick(p->of)))
            return;
    }
}

ms_err ms_workers_run(uint32_t n, uint32_t threads, ms_workers_do *work,
                      ms_workers_done *done, ms_workers_tick *tick, void *of,
                      ms_fault *fault)
{
    pthread_t ids[MS_WORKERS_MOST];
    pool p = {.n = n, .work = work, .of = of};
    if (threads > MS_WORKERS_MOST)
        return ms_fail(fault, MS_EUSAGE, NULL, NULL,
                       "at most %u threads work side by side", MS_WORKERS_MOST);
    if (threads > n)
        threads = n;
    if (threads <= 1) {
        run_alone(&p, done, tick);
        return MS_OK;
    }
    open_pool(&p);
    uint32_t started = start_threads(&p, ids, threads);
    if (started > 0)
        collect(&p, done, tick);
    else
        run_alone(&p, done, tick);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(ids[i], NULL);
    close_pool(&p);
    return MS_OK;
}
