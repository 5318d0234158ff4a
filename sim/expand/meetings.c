/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Collectives of ranks that are in one plan: each waits for the last. */
#include "sim/expand/books.h"
#include "sim/graph.h"
#include "sim/plan.h"
#include "sim/program.h"

struct ms_meetings {
    const ms_program *program;
    uint32_t n;       /* tags; that of 0 has no calls */
    uint32_t *at;     /* n + 1 */
    uint32_t *call;   /* by tag, in the order of the program */
    uint32_t *post;   /* of each of these: its op, or MS_NONE */
    uint32_t *n_come; /* per tag */
    ms_group *group;  /* per tag */
};
typedef struct ms_meetings meetings;

static bool meets(const ms_call *call)
{
    return call->verb == MS_REDUCE && call->reduce.tag > 0;
}

static uint64_t bytes_of(const ms_books *books, const ms_program *program,
                         const ms_call *call)
{
    uint64_t bytes = 0;
    if (call->set == MS_NOTHING && call->buffer != MS_NONE)
        return program->buffers[call->buffer].bytes;
    if (call->set >= program->n_sets)
        return 0;
    for (uint32_t i = program->set_at[call->set];
         i < program->set_at[call->set + 1]; i++)
        bytes += books->graph->storage_bytes[program->set_item[i]];
    return bytes;
}

/* ---- who meets ----------------------------------------------------------- */

static ms_err count(ms_books *books, const ms_program *program, uint32_t *n,
                    uint32_t *most)
{
    *n = *most = 0;
    for (uint32_t i = 0; i < program->n_calls; i++) {
        const ms_call *call = &program->calls[i];
        if (!meets(call))
            continue;
        if (call->reduce.tag > program->n_calls)
            return ms_fail(books->fault, MS_EINPUT, books->graph->name,
                           "number them from 1 on",
                           "call %u has tag %u; the program has %u calls", i,
                           call->reduce.tag, program->n_calls);
        *n += 1;
        if (call->reduce.tag > *most)
            *most = call->reduce.tag;
    }
    return MS_OK;
}

static ms_err take_tables(ms_books *books, meetings *m, uint32_t n_calls)
{
    ms_arena *arena = books->arena;
    m->at = ms_arena_take(arena, m->n + 2u, sizeof *m->at);
    m->call = ms_arena_take_raw(arena, n_calls, sizeof *m->call);
    m->post = ms_arena_take_raw(arena, n_calls, sizeof *m->post);
    m->n_come = ms_arena_take(arena, m->n, sizeof *m->n_come);
    m->group = ms_arena_take(arena, m->n, sizeof *m->group);
    if (!m->at || !m->call || !m->post || !m->n_come || !m->group)
        return ms_fail_nomem(books->fault);
    for (uint32_t i = 0; i < n_calls; i++)
        m->post[i] = MS_NONE;
    return MS_OK;
}

/* Sorts the calls by tag: at[t + 1] is where the next one of tag t goes. */
static void list_calls(meetings *m)
{
    const ms_program *program = m->program;
    for (uint32_t i = 0; i < program->n_calls; i++)
        if (meets(&program->calls[i]))
            m->at[program->calls[i].reduce.tag + 2]++;
    for (uint32_t t = 1; t <= m->n; t++)
        m->at[t + 1] += m->at[t];
    for (uint32_t i = 0; i < program->n_calls; i++)
        if (meets(&program->calls[i]))
            m->call[m->at[program->calls[i].reduce.tag + 1]++] = i;
}

/* of_rank: per rank, the last tag with which it was seen. */
static ms_err check(ms_books *books, const meetings *m, uint32_t tag,
                    uint32_t *of_rank)
{
    const ms_call *calls = m->program->calls;
    const char *name = books->graph->name;
    uint32_t first = m->at[tag], end = m->at[tag + 1];
    for (uint32_t i = first; i < end; i++) {
        const ms_call *a = &calls[m->call[first]], *b = &calls[m->call[i]];
        if (of_rank[b->rank] == tag)
            return ms_fail(books->fault, MS_EINPUT, name,
                           "give each collective a tag of its own",
                           "rank %u reduces twice with tag %u (call %u)",
                           (unsigned)b->rank, tag, m->call[i]);
        of_rank[b->rank] = tag;
        if (a->reduce.group != b->reduce.group ||
            bytes_of(books, m->program, a) != bytes_of(books, m->program, b))
            return ms_fail(books->fault, MS_EINPUT, name,
                           "let those that meet name one group and as many "
                           "bytes",
                           "ranks %u and %u (calls %u, %u) reduce otherwise "
                           "with tag %u",
                           (unsigned)a->rank, (unsigned)b->rank, m->call[first],
                           m->call[i], tag);
    }
    if (end - first != 1)
        return MS_OK;
    return ms_fail(books->fault, MS_EINPUT, name,
                   "write a call of another rank with the same tag",
                   "rank %u (call %u) reduces with tag %u, and no other does",
                   (unsigned)calls[m->call[first]].rank, m->call[first], tag);
}

/* Those that meet as a group of their own, with the links of the call's: as far
 * apart as they are on average, and as many on a node as with the first.  The
 * ranks of a plan are the job's or, of a pipeline, its stages, which are that
 * group's members. */
static ms_group group_of(const ms_books *books, const meetings *m, uint32_t tag)
{
    const ms_call *calls = m->program->calls;
    const uint32_t *own = m->call + m->at[tag];
    uint32_t n = m->at[tag + 1] - m->at[tag], low = UINT32_MAX, high = 0;
    uint8_t row = calls[own[0]].reduce.group;
    ms_group group = *ms_books_group(books, row);
    bool members = row == MS_GROUP_PIPELINE || group.stride == 0;
    uint32_t node = group.node_ranks * (members ? 1 : group.stride);
    for (uint32_t i = 0; i < n; i++) {
        low = calls[own[i]].rank < low ? calls[own[i]].rank : low;
        high = calls[own[i]].rank > high ? calls[own[i]].rank : high;
    }
    group.ranks = n;
    group.stride = (high - low) / (n - 1);
    group.node_ranks = 0;
    for (uint32_t i = 0; i < n; i++)
        group.node_ranks += node > 0 && calls[own[i]].rank / node == low / node;
    return group;
}

ms_err ms_meetings_open(ms_books *books, const ms_program *program)
{
    uint32_t n, most;
    MS_TRY(count(books, program, &n, &most));
    if (n == 0)
        return MS_OK;
    meetings *m = ms_arena_take(books->arena, 1, sizeof *m);
    uint32_t *of_rank =
        ms_arena_take(books->arena, program->n_ranks, sizeof *of_rank);
    if (!m || !of_rank)
        return ms_fail_nomem(books->fault);
    *m = (meetings){.program = program, .n = most + 1};
    MS_TRY(take_tables(books, m, n));
    list_calls(m);
    for (uint32_t tag = 1; tag < m->n; tag++) {
        MS_TRY(check(books, m, tag, of_rank));
        if (m->at[tag] < m->at[tag + 1])
            m->group[tag] = group_of(books, m, tag);
    }
    books->meetings = m;
    return MS_OK;
}

/* ---- coming -------------------------------------------------------------- */

static uint32_t entry_of(const meetings *m, const ms_call *call)
{
    uint32_t i = m->at[call->reduce.tag];
    while (&m->program->calls[m->call[i]] != call)
        i++;
    return i;
}

bool ms_meetings_has_come(const ms_books *books, const ms_call *call)
{
    const meetings *m = books->meetings;
    return m->post[entry_of(m, call)] != MS_NONE;
}

uint32_t ms_meetings_awaited(const ms_books *books, const ms_call *call)
{
    const meetings *m = books->meetings;
    uint32_t tag = call->reduce.tag, i = m->at[tag];
    if (m->n_come[tag] == m->at[tag + 1] - m->at[tag])
        return MS_NONE;
    while (m->post[i] != MS_NONE)
        i++;
    return m->program->calls[m->call[i]].rank;
}

const uint32_t *ms_meetings_calls(const ms_books *books, const ms_call *call,
                                  uint32_t *n)
{
    const meetings *m = books->meetings;
    uint32_t first = m->at[call->reduce.tag];
    *n = m->at[call->reduce.tag + 1] - first;
    return m->call + first;
}

const ms_group *ms_meetings_group(const ms_books *books, const ms_call *call)
{
    return &books->meetings->group[call->reduce.tag];
}

void ms_meetings_come(ms_books *books, const ms_call *call)
{
    meetings *m = books->meetings;
    m->post[entry_of(m, call)] = books->plan->n_ops - 1;
    m->n_come[call->reduce.tag]++;
}

void ms_meetings_wait(ms_books *books, const ms_call *call)
{
    const meetings *m = books->meetings;
    uint32_t tag = call->reduce.tag;
    for (uint32_t i = m->at[tag]; i < m->at[tag + 1]; i++)
        books->plan->wait[books->n_wait++] = m->post[i];
}
