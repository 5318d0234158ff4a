/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/expand/calls/matching.h"

#include "sim/graph.h"

static uint16_t sender(const ms_call *call)
{
    return call->verb == MS_SEND_SET ? call->rank : call->message.peer;
}

static uint16_t receiver(const ms_call *call)
{
    return call->verb == MS_SEND_SET ? call->message.peer : call->rank;
}

static bool same_way(const ms_call *a, const ms_call *b)
{
    return sender(a) == sender(b) && receiver(a) == receiver(b) &&
           a->message.tag == b->message.tag;
}

typedef struct matcher {
    const ms_program *program;
    ms_matching *matching;
    uint32_t n_buckets;
    uint32_t *buckets; /* the first message of each, + 1 */
    uint32_t *next;    /* per message: the next one in its bucket, + 1 */
} matcher;

static uint32_t bucket_of(const matcher *m, const ms_call *call)
{
    uint64_t key = (uint64_t)sender(call) << 16 | receiver(call);
    key = (key << 32 | call->message.tag) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(key >> 32) & (m->n_buckets - 1);
}

/* The other call of a message is the first of its way that has none yet: calls
 * of one rank come in its order. */
static void match(matcher *m, uint32_t i)
{
    const ms_call *calls = m->program->calls, *call = &calls[i];
    ms_matching *to = m->matching;
    uint32_t *link = &m->buckets[bucket_of(m, call)];
    bool sends = call->verb == MS_SEND_SET;
    for (; *link > 0; link = &m->next[*link - 1]) {
        ms_matched *it = &to->all[*link - 1];
        uint32_t *own = sends ? &it->send : &it->receive;
        uint32_t other = sends ? it->receive : it->send;
        if (*own != MS_NONE || !same_way(call, &calls[other]))
            continue;
        *own = i;
        to->of_call[i] = *link - 1;
        return;
    }
    to->of_call[i] = to->n;
    m->next[to->n] = 0;
    to->all[to->n++] = (ms_matched){.send = sends ? i : MS_NONE,
                                    .receive = sends ? MS_NONE : i};
    *link = to->n;
}

static ms_err fail_unmatched(const ms_graph *graph, const ms_program *program,
                             const ms_matched *it, ms_fault *fault)
{
    bool sends = it->send != MS_NONE;
    uint32_t i = sends ? it->send : it->receive;
    const ms_call *call = &program->calls[i];
    return ms_fail(fault, MS_EINPUT, graph->name,
                   "write a call of the peer with the same tag for each",
                   "rank %u %s set %u %s rank %u (call %u, tag %u, micro-batch "
                   "%u), which never %s it",
                   (unsigned)call->rank, sends ? "sends" : "receives",
                   call->set, sends ? "to" : "from",
                   (unsigned)call->message.peer, i, call->message.tag,
                   call->micro_batch, sends ? "receives" : "sends");
}

uint32_t ms_matching_length(const ms_program *program, const ms_call *call)
{
    uint32_t set = call->set;
    return set == MS_NOTHING ? 0
                             : program->set_at[set + 1] - program->set_at[set];
}

/* Of a message of nothing but a buffer. */
uint64_t ms_matching_bytes(const ms_program *program, const ms_call *call)
{
    return call->set == MS_NOTHING ? program->buffers[call->buffer].bytes : 0;
}

static ms_err check_sets(const ms_graph *graph, const ms_program *program,
                         const ms_matched *it, ms_fault *fault)
{
    const ms_call *sends = &program->calls[it->send];
    const ms_call *takes = &program->calls[it->receive];
    uint32_t a = sends->set, b = takes->set,
             n = ms_matching_length(program, sends);
    bool same = n == ms_matching_length(program, takes);
    if (n == 0 && same)
        same = a == b &&
               (a != MS_NOTHING || ms_matching_bytes(program, sends) ==
                                       ms_matching_bytes(program, takes));
    for (uint32_t i = 0; same && i < n; i++)
        same = program->set_item[program->set_at[a] + i] ==
               program->set_item[program->set_at[b] + i];
    if (same)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, graph->name,
                   "name the same storages in the same order, or buffers of "
                   "as many bytes",
                   "rank %u sends set %u (call %u), rank %u receives set %u "
                   "(call %u)",
                   (unsigned)program->calls[it->send].rank, a, it->send,
                   (unsigned)program->calls[it->receive].rank, b, it->receive);
}

static ms_err take_tables(matcher *m, ms_arena *arena, ms_fault *fault)
{
    ms_matching *to = m->matching;
    uint32_t n = m->program->n_calls;
    m->n_buckets = 1;
    while (m->n_buckets < n)
        m->n_buckets *= 2;
    to->all = ms_arena_take_raw(arena, n, sizeof *to->all);
    to->of_call = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    m->next = ms_arena_take_raw(arena, n, sizeof(uint32_t));
    m->buckets = ms_arena_take(arena, m->n_buckets, sizeof(uint32_t));
    return to->all && to->of_call && m->next && m->buckets
               ? MS_OK
               : ms_fail_nomem(fault);
}

ms_err ms_matching_find(const ms_graph *graph, const ms_program *program,
                        ms_arena *arena, ms_matching *matching, ms_fault *fault)
{
    matcher m = {.program = program, .matching = matching};
    *matching = (ms_matching){0};
    MS_TRY(take_tables(&m, arena, fault));
    for (uint32_t i = 0; i < program->n_calls; i++)
        if (ms_matching_has(&program->calls[i]))
            match(&m, i);
    for (uint32_t i = 0; i < matching->n; i++) {
        const ms_matched *it = &matching->all[i];
        if (it->send == MS_NONE || it->receive == MS_NONE)
            return fail_unmatched(graph, program, it, fault);
        MS_TRY(check_sets(graph, program, it, fault));
    }
    return MS_OK;
}
