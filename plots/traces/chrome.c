/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The trace is written piece by piece: a step of a million events would not
 * fit comfortably into one text. */

#include <string.h>

#include "plots/plots.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"

/* The levels of a rank, and the highest ones of the instant. */
struct levels {
    uint64_t total_bytes, bytes[MS_N_CATEGORIES];
    uint64_t highest_bytes, at_highest[MS_N_CATEGORIES];
    uint64_t pool_bytes[MS_N_POOLS];
    uint64_t pool_by_category[MS_N_POOLS][MS_N_CATEGORIES];
    bool device_changed, pool_changed[MS_N_POOLS];
};

/* Of a compute stream: why it stood still since its last slice. */
struct pause {
    uint64_t free_ns; /* end of its last op */
    uint64_t gap_ns[MS_N_CAUSES];
};

typedef enum part { HEAD, OPS, AGAIN, INSTANTS, TAIL, DONE } part;

struct trace {
    const ms_timeline *line;
    const ms_report *report;
    const ms_report_names *names;
    ms_waits waits;
    ms_text text; /* the piece */
    part part;
    uint32_t op, transfer, again; /* the next ones */
    ms_eventwalk events;
    struct pause *pauses;  /* per rank */
    struct levels *levels; /* per rank */
    bool shows[MS_N_POOLS][MS_N_CATEGORIES];
    /* Per op: of a send, the first slice of the other rank that waits for it,
     * where the arrow from its slice goes; else MS_NONE. */
    uint32_t *reader;
};

/* ---- words --------------------------------------------------------------- */

static void put(ms_text *text, const char *words)
{
    ms_text_put(text, words, strlen(words));
}

static void put_number(ms_text *text, const char *key, uint64_t value)
{
    put(text, key);
    ms_text_u64(text, value);
}

static void put_name(ms_text *text, const char *key, const char *name)
{
    put(text, key);
    ms_text_json(text, name);
}

static void put_time(ms_text *text, const char *key, uint64_t t_ns)
{
    char digits[] = {'.', (char)('0' + t_ns / 100 % 10),
                     (char)('0' + t_ns / 10 % 10), (char)('0' + t_ns % 10)};
    put_number(text, key, t_ns / 1000);
    ms_text_put(text, digits, sizeof digits);
}

/* tid 0 is the idle thread to some readers. */
static uint32_t thread_of(uint32_t stream)
{
    return stream + 1u;
}

/* ---- who is who ---------------------------------------------------------- */

static void put_process(ms_text *text, uint16_t rank)
{
    put_number(text,
               rank == 0 ? "\n{\"ph\":\"M\",\"pid\":"
                         : ",\n{\"ph\":\"M\",\"pid\":",
               rank);
    put_number(text, ",\"name\":\"process_name\",\"args\":{\"name\":\"rank ",
               rank);
    put_number(text, "\"}},\n{\"ph\":\"M\",\"pid\":", rank);
    put_number(text,
               ",\"name\":\"process_sort_index\",\"args\":"
               "{\"sort_index\":",
               rank);
    put(text, "}}");
}

static void put_thread(ms_text *text, uint16_t rank, uint32_t stream)
{
    uint32_t thread = thread_of(stream);
    put_number(text, ",\n{\"ph\":\"M\",\"pid\":", rank);
    put_number(text, ",\"tid\":", thread);
    put_name(text, ",\"name\":\"thread_name\",\"args\":{\"name\":",
             ms_names_stream[stream]);
    put_number(text, "}},\n{\"ph\":\"M\",\"pid\":", rank);
    put_number(text, ",\"tid\":", thread);
    put_number(text,
               ",\"name\":\"thread_sort_index\",\"args\":"
               "{\"sort_index\":",
               thread);
    put(text, "}}");
}

static bool is_slice(const ms_timeline *line, uint32_t op)
{
    return line->end_ns[op] > line->start_ns[op];
}

static void put_rank(struct trace *trace, uint16_t rank)
{
    const ms_plan *plan = trace->line->plan;
    bool works[MS_N_STREAMS] = {[MS_STREAM_COMPUTE] = true};
    for (uint32_t op = 0; op < plan->n_ops; op++)
        if (plan->op[op].rank == rank && is_slice(trace->line, op))
            works[plan->op[op].stream] = true;
    put_process(&trace->text, rank);
    for (uint32_t stream = 0; stream < MS_N_STREAMS; stream++)
        if (works[stream])
            put_thread(&trace->text, rank, stream);
    const ms_peak *peak = &trace->report->ranks[rank].peak;
    put_number(&trace->text, ",\n{\"ph\":\"i\",\"s\":\"p\",\"pid\":", rank);
    put_number(&trace->text, ",\"tid\":", thread_of(MS_STREAM_COMPUTE));
    put_time(&trace->text, ",\"ts\":", peak->t_ns);
    put_number(&trace->text,
               ",\"name\":\"peak\",\"args\":"
               "{\"allocated_bytes\":",
               peak->allocated_bytes);
    put(&trace->text, "}}");
}

static void put_head(struct trace *trace)
{
    ms_text *text = &trace->text;
    put_name(text, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"memsim\":",
             MS_VERSION);
    put_name(text, ",\"model\":", trace->names->model);
    put_name(text, ",\"device\":", trace->names->device);
    put_name(text, ",\"policy\":", trace->names->policy);
    put(text, "},\"traceEvents\":[");
    for (uint16_t rank = 0; rank < trace->line->plan->n_ranks; rank++)
        put_rank(trace, rank);
}

/* ---- slices -------------------------------------------------------------- */

static const char *const gap_keys[MS_N_CAUSES] = {
    [MS_CAUSE_HOST] = ",\"waited_for_host_ns\":",
    [MS_CAUSE_GATHER] = ",\"waited_for_gather_ns\":",
    [MS_CAUSE_REDUCE] = ",\"waited_for_reduce_ns\":",
    [MS_CAUSE_MEETING] = ",\"waited_for_activations_ns\":",
    [MS_CAUSE_TO_DEVICE] = ",\"waited_for_copy_to_device_ns\":",
    [MS_CAUSE_TO_HOST] = ",\"waited_for_copy_to_host_ns\":",
    [MS_CAUSE_DISK] = ",\"waited_for_disk_ns\":",
    [MS_CAUSE_HOST_WORK] = ",\"waited_for_host_work_ns\":",
    [MS_CAUSE_PACK] = ",\"waited_for_pack_ns\":",
    [MS_CAUSE_RANK] = ",\"waited_for_rank_ns\":",
    [MS_CAUSE_PAGES] = ",\"waited_for_pages_ns\":",
    [MS_CAUSE_MEMORY] = ",\"waited_for_memory_ns\":",
    [MS_CAUSE_IDLE] = ",\"idle_ns\":",
};

/* What moves bytes, by ms_transfer_kind: the slice's name, its category and
 * the key of its bytes. */
static const struct {
    const char *name, *category, *bytes_key;
} transfers[MS_N_TRANSFERS] = {
    {"copy to device", "copy", ",\"copied_bytes\":"},
    {"copy to host", "copy", ",\"copied_bytes\":"},
    {"disk read", "copy", ",\"copied_bytes\":"},
    {"disk write", "copy", ",\"copied_bytes\":"},
    {"all-gather", "collective", ",\"sent_bytes\":"},
    {"reduce-scatter", "collective", ",\"sent_bytes\":"},
    {"all-reduce", "collective", ",\"sent_bytes\":"},
    {"all-reduce", "collective", ",\"sent_bytes\":"},
    {"all-to-all", "collective", ",\"sent_bytes\":"},
    {"collective", "collective", ",\"sent_bytes\":"}, /* the op's name */
    {"send", "collective", ",\"sent_bytes\":"},
};

static const char *category_of(const struct trace *trace, uint32_t op)
{
    uint8_t kind = ms_waits_kind(&trace->waits, op);
    return kind < MS_N_TRANSFERS
               ? transfers[kind].category
               : ms_names_pass[trace->line->plan->op[op].pass];
}

/* Other ops without one of the graph: work of the host's cores, copies into
 * buffers of the program and out of them. */
static const char *name_of(const struct trace *trace, uint32_t op)
{
    const ms_plan *plan = trace->line->plan;
    uint8_t kind = ms_waits_kind(&trace->waits, op);
    if (kind == MS_TRANSFER_MEETING)
        return plan->graph->op_name[plan->op[op].of];
    if (kind < MS_N_TRANSFERS)
        return transfers[kind].name;
    if (plan->op[op].of != MS_NONE)
        return plan->graph->op_name[plan->op[op].of];
    if (plan->op[op].stream == MS_STREAM_HOST)
        return "add on host";
    return plan->op[op].pass == MS_COPY ? "copy within device"
                                        : ms_names_pass[plan->op[op].pass];
}

/* What an op of the model computes and touches. */
static void put_work(ms_text *text, const ms_graph *graph, uint32_t of)
{
    if (graph->op_layer[of] != MS_NONE)
        put_name(text, ",\"layer\":", graph->layer_name[graph->op_layer[of]]);
    if (graph->op_flops[of] >= 1.0 && graph->op_flops[of] < 0x1p63)
        put_number(text, ",\"flops\":", (uint64_t)graph->op_flops[of]);
    put_number(text, ",\"read_bytes\":", graph->op_read_bytes[of]);
    put_number(text, ",\"written_bytes\":", graph->op_write_bytes[of]);
}

/* A copy and a gather are named by what they bring. */
static void put_rows(struct trace *trace, uint32_t op)
{
    const ms_plan *plan = trace->line->plan;
    uint32_t from = plan->op[op].alloc_at, to = plan->op[op + 1].alloc_at;
    uint64_t bytes = 0;
    char name[MS_STORAGE_NAME];
    for (uint32_t row = from; row < to; row++)
        bytes += plan->row[row].bytes;
    if (from == to)
        return;
    put_number(&trace->text, ",\"allocated_bytes\":", bytes);
    if (plan->op[op].of != MS_NONE)
        return;
    put_name(&trace->text,
             ",\"first_storage\":", ms_dumpplan_row_name(plan, from, name));
    put_number(&trace->text, ",\"storages\":", to - from);
}

static void put_moved(struct trace *trace, uint32_t op)
{
    const ms_plan *plan = trace->line->plan;
    while (trace->transfer < plan->n_transfers &&
           plan->transfers[trace->transfer].op < op)
        trace->transfer++;
    for (; trace->transfer < plan->n_transfers &&
           plan->transfers[trace->transfer].op == op;
         trace->transfer++) {
        const struct ms_transfer *it = &plan->transfers[trace->transfer];
        put_number(&trace->text, transfers[it->kind].bytes_key, it->bytes);
        if (it->network_bytes > 0)
            put_number(&trace->text,
                       ",\"sent_between_nodes_bytes\":", it->network_bytes);
    }
}

/* Ops that take no time can wait, too. */
static void see_gap(struct trace *trace, uint32_t op)
{
    const ms_timeline *line = trace->line;
    struct pause *pause = &trace->pauses[line->plan->op[op].rank];
    ms_wait wait = ms_waits_before(&trace->waits, op, pause->free_ns);
    while (ms_waits_next(&trace->waits, &wait))
        pause->gap_ns[wait.cause] += wait.to_ns - wait.from_ns;
    pause->free_ns = line->end_ns[op];
}

static void put_pause(struct trace *trace, uint16_t rank)
{
    struct pause *pause = &trace->pauses[rank];
    for (int gap = 0; gap < MS_N_CAUSES; gap++)
        if (pause->gap_ns[gap] > 0) {
            put_number(&trace->text, gap_keys[gap], pause->gap_ns[gap]);
            pause->gap_ns[gap] = 0;
        }
}

static void open_slice(struct trace *trace, uint32_t op, uint64_t from_ns,
                       uint64_t to_ns)
{
    const ms_plan_op *row = &trace->line->plan->op[op];
    ms_text *text = &trace->text;
    const char *category = category_of(trace, op);
    put_number(text, ",\n{\"ph\":\"X\",\"pid\":", row->rank);
    put_number(text, ",\"tid\":", thread_of(row->stream));
    put_time(text, ",\"ts\":", from_ns);
    put_time(text, ",\"dur\":", to_ns - from_ns);
    put_name(text, ",\"name\":", name_of(trace, op));
    put_name(text, ",\"cat\":", category);
    put_name(text, ",\"args\":{\"pass\":", category);
    if (row->micro_batch != MS_NONE)
        put_number(text, ",\"micro_batch\":", row->micro_batch);
}

/* ---- arrows -------------------------------------------------------------- */

static ms_err find_readers(struct trace *trace, ms_arena *arena,
                           ms_fault *fault)
{
    const ms_timeline *line = trace->line;
    const ms_plan *plan = line->plan;
    trace->reader =
        ms_arena_take_raw(arena, plan->n_ops, sizeof *trace->reader);
    if (trace->reader == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t op = 0; op < plan->n_ops; op++)
        trace->reader[op] = MS_NONE;
    for (uint32_t op = 0; op < plan->n_ops && plan->wait_at != NULL; op++)
        for (uint32_t w = plan->wait_at[op]; w < plan->wait_at[op + 1]; w++) {
            uint32_t by = plan->wait[w];
            if (trace->reader[by] == MS_NONE && is_slice(line, op) &&
                is_slice(line, by) && plan->op[op].rank != plan->op[by].rank &&
                plan->op[op].stream == MS_STREAM_COMPUTE &&
                ms_waits_kind(&trace->waits, by) == MS_TRANSFER_SEND)
                trace->reader[by] = op;
        }
    return MS_OK;
}

/* One end of a send's arrow, in the slice of this op. */
static void put_end(struct trace *trace, uint32_t op, uint32_t send,
                    const char *phase)
{
    const ms_plan_op *row = &trace->line->plan->op[op];
    ms_text *text = &trace->text;
    put(text, phase);
    put_number(text, ",\"id\":", send);
    put_number(text, ",\"pid\":", row->rank);
    put_number(text, ",\"tid\":", thread_of(row->stream));
    put_time(text, ",\"ts\":", trace->line->start_ns[op]);
    put(text, ",\"name\":\"send\",\"cat\":\"message\"}");
}

static void put_arrows(struct trace *trace, uint32_t op)
{
    const ms_plan *plan = trace->line->plan;
    if (trace->reader[op] != MS_NONE)
        put_end(trace, op, op, ",\n{\"ph\":\"s\"");
    for (uint32_t w = plan->wait_at != NULL ? plan->wait_at[op] : 0;
         plan->wait_at != NULL && w < plan->wait_at[op + 1]; w++)
        if (trace->reader[plan->wait[w]] == op)
            put_end(trace, op, plan->wait[w], ",\n{\"ph\":\"f\",\"bp\":\"e\"");
}

/* ---- a slice with them --------------------------------------------------- */

static void put_slice(struct trace *trace, uint32_t op)
{
    const ms_timeline *line = trace->line;
    const ms_plan_op *row = &line->plan->op[op];
    bool computes = row->stream == MS_STREAM_COMPUTE;
    if (computes)
        see_gap(trace, op);
    if (!is_slice(line, op))
        return;
    open_slice(trace, op, line->start_ns[op], line->end_ns[op]);
    if (row->of != MS_NONE)
        put_work(&trace->text, line->plan->graph, row->of);
    put_rows(trace, op);
    put_moved(trace, op);
    if (computes)
        put_pause(trace, row->rank);
    put(&trace->text, "}}");
    put_arrows(trace, op);
}

/* A prefetch whose memory went to others comes once more, for its user. */
static void put_again(struct trace *trace, const struct ms_revoked *it)
{
    if (!it->came || it->end_ns == it->start_ns)
        return;
    open_slice(trace, it->op, it->start_ns, it->end_ns);
    put_rows(trace, it->op);
    trace->transfer = 0;
    put_moved(trace, it->op);
    put(&trace->text, ",\"comes_again\":1}}");
}

/* ---- counters ------------------------------------------------------------ */

static void put_counter(struct trace *trace, uint16_t rank, uint64_t t_ns,
                        const char *name)
{
    put_number(&trace->text, ",\n{\"ph\":\"C\",\"pid\":", rank);
    put_time(&trace->text, ",\"ts\":", t_ns);
    put_name(&trace->text, ",\"name\":", name);
    put(&trace->text, ",\"args\":{");
}

static void put_level(struct trace *trace, uint16_t rank, uint64_t t_ns,
                      int pool, uint64_t total_bytes, const uint64_t *bytes)
{
    static const char *const names[MS_N_POOLS][2] = {
        {"device bytes", "device bytes by category"},
        {"host bytes", "host bytes by category"},
        {"nvme bytes", "nvme bytes by category"}};
    const char *before = "\"";
    put_counter(trace, rank, t_ns, names[pool][0]);
    put_number(&trace->text, "\"allocated\":", total_bytes);
    put(&trace->text, "}}");
    put_counter(trace, rank, t_ns, names[pool][1]);
    for (int c = 0; c < MS_N_CATEGORIES; c++) {
        if (!trace->shows[pool][c])
            continue;
        put(&trace->text, before);
        put(&trace->text, ms_names_category[c]);
        put_number(&trace->text, "\":", bytes[c]);
        before = ",\"";
    }
    put(&trace->text, "}}");
}

static void put_levels(struct trace *trace, uint16_t rank, uint64_t t_ns)
{
    struct levels *levels = &trace->levels[rank];
    if (levels->device_changed && levels->highest_bytes > levels->total_bytes)
        put_level(trace, rank, t_ns, MS_DEVICE_POOL, levels->highest_bytes,
                  levels->at_highest);
    if (levels->device_changed)
        put_level(trace, rank, t_ns, MS_DEVICE_POOL, levels->total_bytes,
                  levels->bytes);
    levels->device_changed = false;
    levels->highest_bytes = 0;
    for (int pool = MS_HOST_POOL; pool < MS_N_POOLS; pool++) {
        if (!levels->pool_changed[pool])
            continue;
        put_level(trace, rank, t_ns, pool, levels->pool_bytes[pool],
                  levels->pool_by_category[pool]);
        levels->pool_changed[pool] = false;
    }
}

static void count(struct trace *trace, const ms_event *event)
{
    const ms_plan *plan = trace->line->plan;
    const ms_row *row = &plan->row[event->row];
    struct levels *levels = &trace->levels[plan->op[row->op].rank];
    uint64_t change = event->op_act & 1u ? row->bytes : 0 - row->bytes;
    if (row->pool != MS_DEVICE_POOL) {
        levels->pool_bytes[row->pool] += change;
        levels->pool_by_category[row->pool][row->category] += change;
        levels->pool_changed[row->pool] = true;
        return;
    }
    levels->total_bytes += change;
    levels->bytes[row->category] += change;
    levels->device_changed = true;
    if (levels->total_bytes > levels->highest_bytes) {
        levels->highest_bytes = levels->total_bytes;
        memcpy(levels->at_highest, levels->bytes, sizeof levels->bytes);
    }
}

static void put_instant(struct trace *trace)
{
    const ms_timeline *line = trace->line;
    const ms_event *event = ms_timeline_peek(&trace->events);
    uint64_t t_ns = event->t_ns;
    for (; event != NULL && event->t_ns == t_ns;
         event = ms_timeline_peek(&trace->events)) {
        count(trace, event);
        trace->events.at++;
    }
    for (uint16_t rank = 0; rank < line->plan->n_ranks; rank++)
        put_levels(trace, rank, t_ns);
}

/* ---- pieces -------------------------------------------------------------- */

static void put_next(struct trace *trace)
{
    switch (trace->part) {
    case HEAD:
        put_head(trace);
        trace->part = OPS;
        break;
    case OPS:
        if (trace->op < trace->line->plan->n_ops)
            put_slice(trace, trace->op++);
        else
            trace->part = AGAIN;
        break;
    case AGAIN:
        if (trace->again < trace->line->n_revoked)
            put_again(trace, &trace->line->revoked[trace->again++]);
        else
            trace->part = INSTANTS;
        break;
    case INSTANTS:
        if (ms_timeline_peek(&trace->events) != NULL)
            put_instant(trace);
        else
            trace->part = TAIL;
        break;
    case TAIL:
        put(&trace->text, "\n]}\n");
        trace->part = DONE;
        break;
    case DONE:
        break;
    }
}

static ms_err put_more(void *of, bool *more)
{
    struct trace *trace = of;
    put_next(trace);
    *more = trace->part != DONE;
    return MS_OK;
}

ms_err ms_chrome_trace(const ms_timeline *line, const ms_report *report,
                       const ms_report_names *names, const char *path,
                       ms_arena *arena, ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    struct trace trace = {.line = line,
                          .report = report,
                          .names = names,
                          .text = {.arena = arena}};
    trace.pauses = ms_arena_take(arena, plan->n_ranks, sizeof(struct pause));
    trace.levels = ms_arena_take(arena, plan->n_ranks, sizeof(struct levels));
    if (trace.pauses == NULL || trace.levels == NULL)
        return ms_fail_nomem(fault);
    ms_timeline_walk(line, 0, &trace.events);
    MS_TRY(ms_waits_open(&trace.waits, line, arena, fault));
    MS_TRY(find_readers(&trace, arena, fault));
    for (uint32_t row = 0; row < plan->n_rows; row++)
        trace.shows[plan->row[row].pool][plan->row[row].category] = true;
    return ms_output_text(path, put_more, &trace, &trace.text, fault);
}
