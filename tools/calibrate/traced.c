/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/calibrate/traced.h"

#include <stdlib.h>
#include <string.h>

const char *const ms_traced_phases[MS_TRACED_N_PHASES] = {"forward", "backward",
                                                          "optimizer", "apart"};

/* ---- what is kept of the events ------------------------------------------ */

typedef struct op {
    uint64_t external;
    int64_t t_ns;
    uint32_t shape, thread;
} op;

typedef struct kernel {
    uint64_t external, correlation;
    int64_t t_ns;
    uint32_t ns_low; /* up to 4 s */
    uint32_t name;   /* of the kernel, of callshapes */
    uint32_t shape;  /* where it has its own; else MS_NONE */
    uint16_t stream;
} kernel;

/* Within which ops are of a phase. */
typedef struct span {
    int64_t from_ns, to_ns;
    uint32_t thread;
} span;

typedef struct call_of_cuda {
    uint64_t correlation, external;
} call_of_cuda;

typedef struct list {
    void *rows;
    uint32_t n, capacity;
} list;

typedef struct reading {
    ms_measurements *all;
    ms_traced *traced;
    ms_callshapes shapes;
    list ops, kernels, cuda, backward, optimizer, launches;
    uint64_t streams[64];
    uint32_t n_streams;
    ms_fault *fault;
} reading;

/* Adds a row, which the caller fills. */
static void *add(reading *r, list *to, size_t size)
{
    to->rows =
        ms_arena_grow(r->all->arena, to->rows, &to->capacity, to->n + 1, size);
    if (to->rows == NULL) {
        ms_fail_nomem(r->fault);
        return NULL;
    }
    return (char *)to->rows + size * to->n++;
}

static bool begins(ms_kineto_slice s, const char *word)
{
    size_t n = strlen(word);
    return s.length >= n && memcmp(s.bytes, word, n) == 0;
}

static uint16_t stream_of(reading *r, uint64_t stream)
{
    uint32_t i = 0;
    while (i < r->n_streams && r->streams[i] != stream)
        i++;
    if (i == r->n_streams && i + 1 < sizeof r->streams / sizeof *r->streams)
        r->streams[r->n_streams++] = stream;
    return (uint16_t)i;
}

/* ---- events -------------------------------------------------------------- */

static ms_err take_span(reading *r, list *to, const ms_kineto_event *e)
{
    span *row = add(r, to, sizeof *row);
    if (row == NULL)
        return MS_ENOMEM;
    *row = (span){e->t_ns, e->t_ns + (int64_t)e->ns, (uint32_t)e->thread};
    return MS_OK;
}

static ms_err take_op(reading *r, const ms_kineto_event *e)
{
    if (begins(e->name, "autograd::engine::evaluate_function"))
        return take_span(r, &r->backward, e);
    if (e->external == 0)
        return MS_OK;
    op *row = add(r, &r->ops, sizeof *row);
    if (row == NULL)
        return MS_ENOMEM;
    *row = (op){e->external, e->t_ns, 0, (uint32_t)e->thread};
    return ms_callshapes_add(&r->shapes, e, &row->shape, r->fault);
}

static ms_err take_note(reading *r, const ms_kineto_event *e)
{
    if (begins(e->name, "Optimizer.step"))
        return take_span(r, &r->optimizer, e);
    if (begins(e->name, "ProfilerStep#")) {
        r->traced->n_steps++;
        if (e->t_ns > r->traced->step_ns)
            r->traced->step_ns = e->t_ns;
    }
    return MS_OK;
}

static ms_err take_call(reading *r, const ms_kineto_event *e)
{
    call_of_cuda *row = add(r, &r->cuda, sizeof *row);
    if (row == NULL)
        return MS_ENOMEM;
    *row = (call_of_cuda){e->correlation, e->external};
    if (!begins(e->name, "cudaLaunchKernel") &&
        !begins(e->name, "cuLaunchKernel"))
        return MS_OK;
    uint32_t *ns = add(r, &r->launches, sizeof *ns);
    if (ns == NULL)
        return MS_ENOMEM;
    *ns = e->ns < UINT32_MAX ? (uint32_t)e->ns : UINT32_MAX;
    return MS_OK;
}

/* Elements of NCCL's types, by the name that Kineto gives them. */
static double element_bytes(ms_kineto_slice type)
{
    return begins(type, "BFloat16") || begins(type, "Half") ? 2
           : begins(type, "Float8") || begins(type, "Byte") ? 1
                                                            : 4;
}

static ms_err own_collective(reading *r, const ms_kineto_event *e,
                             uint32_t *shape)
{
    bool reduces = begins(e->collective, "allreduce") ||
                   begins(e->collective, "all_reduce");
    bool is_told = e->ranks > 1 && e->ranks <= UINT16_MAX && e->n_elements > 0;
    const ms_measured row = {.kind = MS_RATE_ALL_REDUCE,
                             .ranks = (uint32_t)(is_told ? e->ranks : 0),
                             .bytes = element_bytes(e->dtype) *
                                      (double)e->n_elements};
    r->traced->has_waits = true;
    return ms_callshapes_own(
        &r->shapes, e->name, &row,
        reduces ? is_told ? NULL : "without its size and ranks"
                : "a device's file has curves of all-reduces alone",
        shape, r->fault);
}

/* Between memories; false: it stays on the device. */
static bool is_transfer(const ms_kineto_event *e, ms_measured *row)
{
    bool to_host = begins(e->name, "Memcpy DtoH");
    *row = (ms_measured){.kind = to_host ? MS_RATE_TO_HOST : MS_RATE_TO_DEVICE,
                         .to_host = to_host,
                         .bytes = (double)e->bytes};
    for (uint32_t i = 0; i + 8 <= e->name.length; i++)
        if (memcmp(e->name.bytes + i, "Pageable", 8) == 0)
            row->kind = MS_RATE_PAGEABLE;
    return e->kind == MS_KINETO_COPY && e->bytes > 0 &&
           (to_host || begins(e->name, "Memcpy HtoD"));
}

static void count_kernel(ms_traced *t, const ms_kineto_event *e)
{
    int64_t end_ns = e->t_ns + (int64_t)e->ns;
    if (t->n_kernels == 0 || e->t_ns < t->from_ns)
        t->from_ns = e->t_ns;
    if (t->n_kernels == 0 || end_ns > t->to_ns)
        t->to_ns = end_ns;
    t->n_kernels++;
    t->kernels_ns += (double)e->ns;
}

static ms_err take_kernel(reading *r, const ms_kineto_event *e)
{
    uint32_t shape = MS_NONE;
    ms_measured copy;
    count_kernel(r->traced, e);
    if (is_transfer(e, &copy))
        MS_TRY(ms_callshapes_own(&r->shapes, e->name, &copy, NULL, &shape,
                                 r->fault));
    else if (begins(e->name, "nccl"))
        MS_TRY(own_collective(r, e, &shape));
    kernel *row = add(r, &r->kernels, sizeof *row);
    if (row == NULL)
        return MS_ENOMEM;
    *row = (kernel){.external = shape == MS_NONE ? e->external : 0,
                    .correlation = shape == MS_NONE ? e->correlation : 0,
                    .t_ns = e->t_ns,
                    .ns_low = e->ns < UINT32_MAX ? (uint32_t)e->ns : UINT32_MAX,
                    .shape = shape,
                    .stream = stream_of(r, e->stream)};
    return ms_callshapes_kernel(&r->shapes, e->name, &row->name, r->fault);
}

static ms_err take_event(reading *r, const ms_kineto_event *e)
{
    switch (e->kind) {
    case MS_KINETO_OP:
        return take_op(r, e);
    case MS_KINETO_NOTE:
        return take_note(r, e);
    case MS_KINETO_RUNTIME:
        return take_call(r, e);
    case MS_KINETO_KERNEL:
    case MS_KINETO_COPY:
    case MS_KINETO_FILL:
        return take_kernel(r, e);
    default:
        return MS_OK;
    }
}

/* ---- kernels and their ops ----------------------------------------------- */

static int compare_ops(const void *a, const void *b)
{
    const op *x = a, *y = b;
    return (x->external > y->external) - (x->external < y->external);
}

static int compare_cuda(const void *a, const void *b)
{
    const call_of_cuda *x = a, *y = b;
    return (x->correlation > y->correlation) -
           (x->correlation < y->correlation);
}

static int compare_kernels(const void *a, const void *b)
{
    const kernel *x = a, *y = b;
    int order = (x->external > y->external) - (x->external < y->external);
    return order != 0 ? order : (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

static int compare_spans(const void *a, const void *b)
{
    const span *x = a, *y = b;
    int order = (x->thread > y->thread) - (x->thread < y->thread);
    return order != 0 ? order
                      : (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static void sort(list *l, size_t size, int (*order)(const void *, const void *))
{
    if (l->n > 1)
        qsort(l->rows, l->n, size, order);
}

/* Those of no op have one by the call of CUDA that launched them. */
static void link_kernels(reading *r)
{
    kernel *kernels = r->kernels.rows;
    sort(&r->cuda, sizeof(call_of_cuda), compare_cuda);
    for (uint32_t i = 0; i < r->kernels.n && r->cuda.n > 0; i++) {
        const call_of_cuda key = {.correlation = kernels[i].correlation};
        const call_of_cuda *found =
            kernels[i].external == 0 && key.correlation != 0
                ? bsearch(&key, r->cuda.rows, r->cuda.n, sizeof key,
                          compare_cuda)
                : NULL;
        if (found != NULL)
            kernels[i].external = found->external;
    }
    sort(&r->ops, sizeof(op), compare_ops);
    sort(&r->kernels, sizeof(kernel), compare_kernels);
    sort(&r->backward, sizeof(span), compare_spans);
    sort(&r->optimizer, sizeof(span), compare_spans);
}

/* Does the op begin within one of the spans of its thread?  They do not
 * overlap. */
static bool is_within(const list *spans, const op *of)
{
    const span *rows = spans->rows;
    uint32_t low = 0, high = spans->n;
    const span key = {.thread = of->thread, .from_ns = of->t_ns};
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_spans(&rows[middle], &key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && rows[low - 1].thread == of->thread &&
           of->t_ns <= rows[low - 1].to_ns;
}

static uint8_t phase_of(const reading *r, const op *of)
{
    if (is_within(&r->optimizer, of))
        return MS_TRACED_OPTIMIZER;
    return is_within(&r->backward, of) ? MS_TRACED_BACKWARD : MS_TRACED_FORWARD;
}

/* The kernels from `from` to `to` as one call. */
static void make_call(reading *r, uint32_t from, uint32_t to, const op *of)
{
    const kernel *kernels = r->kernels.rows;
    ms_traced_call *call = &r->traced->calls[r->traced->n_calls++];
    ms_traced_hint hint = {0};
    *call = (ms_traced_call){
        .t_ns = kernels[from].t_ns,
        .host_ns = of != NULL ? of->t_ns : kernels[from].t_ns,
        .stream = kernels[from].stream,
        .shape = kernels[from].shape,
        .phase = of != NULL ? phase_of(r, of) : MS_TRACED_APART};
    for (uint32_t i = from; i < to; i++) {
        ms_traced_hint told = r->shapes.kernels[kernels[i].name].hint;
        call->ns += kernels[i].ns_low;
        if (told.code > hint.code)
            hint.code = told.code;
        if (hint.width == 0)
            hint.width = told.width;
    }
    if (of != NULL)
        call->shape = ms_callshapes_hint(&r->shapes, of->shape, hint);
    call->op = call->shape != MS_NONE
                   ? r->shapes.rows[call->shape].op
                   : r->shapes.kernels[kernels[from].name].name;
    r->traced->n_unlinked += call->shape == MS_NONE;
}

static ms_err make_calls(reading *r)
{
    const kernel *kernels = r->kernels.rows;
    r->traced->calls =
        ms_arena_take(r->all->arena, r->kernels.n, sizeof *r->traced->calls);
    if (r->traced->calls == NULL)
        return ms_fail_nomem(r->fault);
    for (uint32_t from = 0, to; from < r->kernels.n; from = to) {
        const op key = {.external = kernels[from].external};
        const op *of =
            key.external != 0 && r->ops.n > 0
                ? bsearch(&key, r->ops.rows, r->ops.n, sizeof key, compare_ops)
                : NULL;
        for (to = from + 1; of != NULL && to < r->kernels.n &&
                            kernels[to].external == key.external;)
            to++;
        make_call(r, from, to, of);
    }
    return MS_OK;
}

/* ---- calls and their rows ------------------------------------------------ */

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int compare_shapes(const void *a, const void *b)
{
    const ms_traced_call *x = a, *y = b;
    int order = (x->shape > y->shape) - (x->shape < y->shape);
    return order != 0 ? order : (x->ns > y->ns) - (x->ns < y->ns);
}

static int compare_beginnings(const void *a, const void *b)
{
    const ms_traced_call *x = a, *y = b;
    int order = (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
    return order != 0 ? order : compare_shapes(a, b);
}

/* Calls of one shape, sorted by their times, as a sample that counts as many.
 */
static ms_err add_shape(reading *r, const ms_traced_call *calls, uint32_t n)
{
    const ms_callshape *shape = &r->shapes.rows[calls->shape];
    double total_ns = 0;
    for (uint32_t i = 0; i < n; i++)
        total_ns += calls[i].ns;
    r->traced->assumed_causal |= shape->assumed && shape->why == NULL;
    if (shape->why != NULL) {
        for (uint32_t i = 0; i < n; i++)
            MS_TRY(ms_measured_miss(r->all, calls->op, shape->why, calls[i].ns,
                                    r->fault));
        return MS_OK;
    }
    ms_measured row = shape->row;
    row.ns = n % 2 > 0 ? calls[n / 2].ns
                       : (calls[n / 2 - 1].ns + calls[n / 2].ns) / 2;
    row.count = n;
    row.total_ns = total_ns;
    return row.ns > 0 ? ms_measured_add(r->all, &row, r->fault) : MS_OK;
}

static ms_err add_rows(reading *r)
{
    ms_traced *t = r->traced;
    qsort(t->calls, t->n_calls, sizeof *t->calls, compare_shapes);
    for (uint32_t from = 0, to; from < t->n_calls; from = to) {
        for (to = from + 1;
             to < t->n_calls && t->calls[to].shape == t->calls[from].shape;)
            to++;
        if (t->calls[from].shape != MS_NONE)
            MS_TRY(add_shape(r, &t->calls[from], to - from));
    }
    qsort(t->calls, t->n_calls, sizeof *t->calls, compare_beginnings);
    return MS_OK;
}

static ms_err add_launches(reading *r)
{
    uint32_t n = r->launches.n;
    const uint32_t *ns = r->launches.rows;
    double *times = ms_arena_take(r->all->arena, n, sizeof *times);
    if (times == NULL)
        return ms_fail_nomem(r->fault);
    ms_measured row = {.op = "launch", .kind = MS_RATE_LAUNCH, .count = n};
    for (uint32_t i = 0; i < n; i++)
        row.total_ns += times[i] = ns[i];
    if (n == 0)
        return MS_OK;
    qsort(times, n, sizeof *times, compare_times);
    row.ns = times[n / 2];
    return row.ns > 0 ? ms_measured_add(r->all, &row, r->fault) : MS_OK;
}

static ms_err fail_nothing(const ms_kineto *trace, const reading *r,
                           ms_fault *fault)
{
    if (trace->is_simulated)
        return ms_fail(fault, MS_EINPUT, trace->name,
                       "record a step with torch.profiler on the device",
                       "memsim wrote this trace itself (run --trace): nothing "
                       "in it was measured");
    return ms_fail(fault, MS_EINPUT, trace->name,
                   "record with activities=[ProfilerActivity.CPU, "
                   "ProfilerActivity.CUDA]",
                   "there is no kernel in its %llu events, %u of them ops of "
                   "the host",
                   (unsigned long long)trace->n, r->ops.n);
}

ms_err ms_traced_read(ms_kineto *trace, ms_measurements *all, ms_traced *traced,
                      ms_fault *fault)
{
    ms_kineto_event event;
    bool more;
    *traced = (ms_traced){.device = trace->device};
    reading r = {.all = all,
                 .traced = traced,
                 .shapes = {.arena = all->arena},
                 .fault = fault};
    all->in_step = true;
    for (;;) {
        MS_TRY(ms_kineto_next(trace, &event, &more, fault));
        if (!more)
            break;
        MS_TRY(take_event(&r, &event));
    }
    traced->n_events = trace->n;
    if (r.kernels.n == 0 || trace->is_simulated)
        return fail_nothing(trace, &r, fault);
    link_kernels(&r);
    MS_TRY(make_calls(&r));
    MS_TRY(add_rows(&r));
    MS_TRY(add_launches(&r));
    traced->shapes = r.shapes.rows;
    return ms_measured_settle(all, fault);
}
