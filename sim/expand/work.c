/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Work of a policy's own, which is neither an op of the graph nor a copy. */
#include "sim/expand/books.h"

#define MOST_NS 1e15 /* 11 days; sums of many stay in 64 bits */

/* The rate at which a stream works off bytes; 0: they take no time. */
static double bytes_per_s(const ms_expand_opts *opts, uint8_t stream)
{
    const double rates[MS_N_STREAMS] = {
        [MS_STREAM_COMPUTE] = opts->hbm_bytes_per_s,
        [MS_STREAM_COMM] = opts->hbm_bytes_per_s,
        [MS_STREAM_OUTER] = opts->hbm_bytes_per_s,
        [MS_STREAM_NEXT] = opts->hbm_bytes_per_s,
        [MS_STREAM_BEFORE] = opts->hbm_bytes_per_s,
        [MS_STREAM_H2D] = opts->h2d_bytes_per_s,
        [MS_STREAM_D2H] = opts->d2h_bytes_per_s,
        [MS_STREAM_HOST] = opts->host_bytes_per_s,
        [MS_STREAM_NVME_READ] = opts->nvme_read_bytes_per_s,
        [MS_STREAM_NVME_WRITE] = opts->nvme_write_bytes_per_s,
    };
    return rates[stream];
}

static double duration_ns(const ms_expand_opts *opts, const ms_task *task)
{
    double rate = task->unit == MS_TASK_FLOPS ? opts->flops_per_s
                                              : bytes_per_s(opts, task->stream);
    if (task->unit == MS_TASK_NS)
        return (double)task->amount;
    return rate > 0 ? (double)task->amount / rate * 1e9 : 0;
}

ms_err ms_work_run(ms_books *books, const ms_books_at *at, const ms_task *task,
                   const uint32_t *storages, uint32_t n)
{
    double ns = duration_ns(books->opts, task);
    if (ns > MOST_NS)
        return ms_fail(books->fault, MS_EINPUT, books->graph->name,
                       "give it less to do",
                       "the task \"%s\" takes more than 11 days", task->name);
    MS_TRY(ms_books_reserve(books, 1, 0, n));
    ms_books_issue(books, at, MS_NONE, MS_COPY, task->stream,
                   (uint64_t)(ns + 0.5));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = ms_books_cell(books, at, storages[i]);
        uint32_t row = ms_books_found(books, c);
        uint32_t in = ms_books_in(books->packed, c);
        if (row == MS_NONE && in != MS_NONE)
            row = ms_books_buffer(books, at, in);
        if (row != MS_NONE)
            ms_books_write(books, row);
    }
    return MS_OK;
}
