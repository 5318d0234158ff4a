/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a rank's process takes of the host's memory: blocks of PyTorch's pinned
 * allocator, which are never given back, and besides what lies elsewhere.  A
 * block counts as free for a copy that starts when its streams have passed it:
 * a host that runs ahead may find fewer, by how much depends on how far it
 * may. */
#include "sim/graph.h"
#include "sim/machine.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/timeline.h"

typedef struct taken {
    const ms_plan *plan;
    const ms_machine *machine;
    const ms_timeline *line;
    ms_hostpool *pools; /* per rank */
    uint64_t *tail_ns;  /* per rank and stream: end of what is issued */
    struct unpooled {   /* what is in no pool: per rank, then of all */
        uint64_t level_bytes, peak_bytes;
    } * unpooled;
} taken;

static ms_host_memory memory_of(const taken *t, const ms_row *row)
{
    const ms_graph *graph = t->plan->graph;
    bool lasts = row->storage != MS_NONE && row->storage < graph->n_persistent;
    if (row->storage == MS_NONE)
        return MS_HOSTED_OWN;
    if (lasts && graph->storage_pool != NULL &&
        graph->storage_pool[row->storage] != MS_DEVICE_POOL)
        return graph->hosted.of == NULL
                   ? MS_HOSTED_OWN
                   : (ms_host_memory)graph->hosted.of[row->storage];
    if (t->plan->saved_in != NULL)
        return (ms_host_memory)t->plan->saved_in[row->storage];
    return (ms_host_memory)t->machine->host.saves;
}

static bool is_pooled(ms_host_memory memory)
{
    return memory == MS_HOSTED_PINNED || memory == MS_HOSTED_KEYED;
}

static void add(struct unpooled *of, uint64_t bytes)
{
    of->level_bytes += bytes;
    if (of->level_bytes > of->peak_bytes)
        of->peak_bytes = of->level_bytes;
}

static void add_unpooled(taken *t, uint16_t rank, uint64_t bytes)
{
    add(&t->unpooled[rank], bytes);
    add(&t->unpooled[t->plan->n_ranks], bytes);
}

static ms_err take(taken *t, uint32_t r, ms_fault *fault)
{
    const ms_row *row = &t->plan->row[r];
    uint16_t rank = t->plan->op[row->op].rank;
    if (row->pool != MS_HOST_POOL)
        return MS_OK;
    ms_host_memory memory = memory_of(t, row);
    if (memory == MS_HOSTED_FLAT)
        return MS_OK;
    if (is_pooled(memory))
        return ms_hostpool_take(&t->pools[rank], row->bytes,
                                t->line->start_ns[row->op], fault);
    add_unpooled(t, rank, row->bytes);
    return MS_OK;
}

/* The streams that have copied it out or in: each as far as it is issued. */
static ms_err give(taken *t, uint32_t r, ms_fault *fault)
{
    const ms_row *row = &t->plan->row[r];
    if (row->pool != MS_HOST_POOL)
        return MS_OK;
    const ms_plan_op *maker = &t->plan->op[row->op];
    const uint64_t *tail_ns = t->tail_ns + maker->rank * (uint32_t)MS_N_STREAMS;
    unsigned streams = row->streams | 1u << maker->stream;
    ms_host_memory memory = memory_of(t, row);
    uint64_t ready_ns = 0;
    if (memory == MS_HOSTED_FLAT)
        return MS_OK;
    if (!is_pooled(memory)) {
        add_unpooled(t, maker->rank, 0 - row->bytes);
        return MS_OK;
    }
    for (uint32_t s = 0; s < MS_N_STREAMS; s++)
        if (streams & 1u << s && tail_ns[s] > ready_ns)
            ready_ns = tail_ns[s];
    return ms_hostpool_give(&t->pools[maker->rank], row->bytes, ready_ns,
                            fault);
}

static ms_err walk(taken *t, ms_fault *fault)
{
    const ms_plan *plan = t->plan;
    for (uint32_t op = 0; op < plan->n_ops; op++) {
        const ms_plan_op *it = &plan->op[op];
        for (uint32_t r = it->alloc_at; r < plan->op[op + 1].alloc_at; r++)
            MS_TRY(take(t, r, fault));
        t->tail_ns[it->rank * (uint32_t)MS_N_STREAMS + it->stream] =
            t->line->end_ns[op];
        for (uint32_t i = it->release_at; i < plan->op[op + 1].release_at; i++)
            MS_TRY(give(t, plan->release[i], fault));
    }
    return MS_OK;
}

static ms_err open(taken *t, ms_arena *arena, ms_fault *fault)
{
    uint32_t n = t->plan->n_ranks;
    t->pools = ms_arena_take(arena, n, sizeof *t->pools);
    t->tail_ns =
        ms_arena_take(arena, (size_t)n * MS_N_STREAMS, sizeof *t->tail_ns);
    t->unpooled = ms_arena_take(arena, n + 1, sizeof *t->unpooled);
    if (t->pools == NULL || t->tail_ns == NULL || t->unpooled == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t rank = 0; rank < n; rank++)
        t->pools[rank] =
            (ms_hostpool){.arena = arena,
                          .options = t->machine->host.pinned,
                          .keyed = t->machine->host.saves == MS_HOSTED_KEYED};
    return MS_OK;
}

ms_err ms_hostmemory_measure(const ms_timeline *line, const ms_machine *machine,
                             ms_arena *arena, ms_report *report,
                             ms_fault *fault)
{
    const ms_plan *plan = line->plan;
    const ms_hostplace *hosted = &plan->graph->hosted;
    struct ms_far_memory *far = &report->far[MS_HOST_POOL];
    taken t = {
        .plan = plan,
        .machine = machine,
        .line = line,
    };
    if (far->peak_bytes == 0 && hosted->n_blocks == 0)
        return MS_OK;
    MS_TRY(open(&t, arena, fault));
    MS_TRY(walk(&t, fault));
    uint64_t blocks_bytes = 0;
    for (uint32_t i = 0; i < hosted->n_blocks; i++)
        blocks_bytes +=
            ms_hostpool_round(&machine->host.pinned, hosted->block_bytes[i]);
    for (uint32_t rank = 0; rank < plan->n_ranks; rank++) {
        uint64_t pinned_bytes =
            blocks_bytes + t.pools[rank].allocated_peak_bytes;
        far->pinned_bytes += pinned_bytes;
        report->ranks[rank].far[MS_HOST_POOL].reserved_bytes =
            pinned_bytes + t.unpooled[rank].peak_bytes;
    }
    far->reserved_bytes =
        far->pinned_bytes + t.unpooled[plan->n_ranks].peak_bytes;
    return MS_OK;
}
