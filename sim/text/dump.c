/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/text/dump.h"
#include "sim/graph.h"
#include "sim/online.h"
#include "sim/program.h"

#define KEY(name) (1u << MS_DUMP_##name)
#define WHEN (KEY(FRAME) | KEY(MICRO) | KEY(RANK))
#define GOES (WHEN | KEY(PEER) | KEY(TAG) | KEY(GROUP) | KEY(IN_LINE))
#define RUNS                                                                   \
    (KEY(UNIT) | KEY(KEEP) | KEY(HOLD) | KEY(SAVES) | KEY(PAIRS) | KEY(SIDE))

const ms_dump_verb ms_dump_verbs[MS_N_VERBS] = {
    [MS_RUN] = {"run", MS_DUMP_PASS, WHEN | RUNS},
    [MS_RERUN] = {"rerun", MS_DUMP_NO_OBJECT,
                  KEY(UNITS) | WHEN | KEY(WHOLE) | KEY(HOLD_OUTPUTS) |
                      KEY(STATE) | KEY(PART)},
    [MS_MOVE] = {"move", MS_DUMP_SET,
                 WHEN | KEY(TO) | KEY(LATER) | KEY(IN_LINE) | KEY(ADD) |
                     KEY(SIDE) | KEY(PAGEABLE) | KEY(STRAIGHT) | KEY(AHEAD) |
                     KEY(AS_IS) | KEY(BUFFER)},
    [MS_WAIT] = {"wait", MS_DUMP_SET, WHEN | KEY(BUFFER)},
    [MS_STATE] = {"state", MS_DUMP_NO_OBJECT, KEY(UNIT) | WHEN | KEY(TO)},
    [MS_STEP_SET] = {"step", MS_DUMP_SET,
                     WHEN | KEY(TO) | KEY(AHEAD) | KEY(LATER)},
    [MS_HOLD] = {"hold", MS_DUMP_SET,
                 KEY(UNITS) | WHEN | KEY(SAVES) | KEY(AGAIN)},
    [MS_DROP_SET] = {"drop", MS_DUMP_SET, KEY(UNITS) | WHEN},
    [MS_SYNC] = {"sync", MS_DUMP_NO_OBJECT,
                 WHEN | KEY(OF) | KEY(IN_LINE) | KEY(BUFFER)},
    [MS_MARK] = {"mark", MS_DUMP_MARK, WHEN},
    [MS_GATHER] = {"gather", MS_DUMP_SET,
                   WHEN | KEY(OUTER) | KEY(GROUP) | KEY(AHEAD) | KEY(LIMIT) |
                       KEY(BUFFER)},
    [MS_REDUCE] = {"reduce", MS_DUMP_SET,
                   WHEN | KEY(TO) | KEY(OUTER) | KEY(GROUP) | KEY(WHOLE) |
                       KEY(FILLED) | KEY(EXCHANGE) | KEY(IN_LINE) |
                       KEY(BUFFER) | KEY(TAG)},
    [MS_TAKE] = {"take", MS_DUMP_NO_OBJECT, WHEN | KEY(BUFFER)},
    [MS_WORK] = {"work", MS_DUMP_TASK, WHEN | KEY(OF)},
    [MS_SEND_SET] = {"send", MS_DUMP_SET,
                     GOES | KEY(AGAIN) | KEY(PAIRS) | KEY(BUFFER)},
    [MS_RECV_SET] = {"recv", MS_DUMP_SET,
                     GOES | KEY(SAVES) | KEY(BUFFER) | KEY(PART)},
    [MS_GIVE] = {"give", MS_DUMP_NO_OBJECT, WHEN | KEY(BUFFER)},
};

const size_t ms_dump_places[MS_N_VERBS] = {
    [MS_MOVE] = offsetof(ms_call, move.to),
    [MS_STATE] = offsetof(ms_call, state.to),
    [MS_STEP_SET] = offsetof(ms_call, step.part),
    [MS_REDUCE] = offsetof(ms_call, reduce.to),
};

const char *const ms_dump_keys[MS_DUMP_N_KEYS] = {
    [MS_DUMP_UNIT] = "unit",         [MS_DUMP_UNITS] = "units",
    [MS_DUMP_FRAME] = "frame",       [MS_DUMP_MICRO] = "micro",
    [MS_DUMP_RANK] = "rank",         [MS_DUMP_KEEP] = "keep",
    [MS_DUMP_HOLD] = "hold",         [MS_DUMP_TO] = "to",
    [MS_DUMP_WHOLE] = "whole",       [MS_DUMP_HOLD_OUTPUTS] = "hold-outputs",
    [MS_DUMP_SAVES] = "saves",       [MS_DUMP_LATER] = "later",
    [MS_DUMP_IN_LINE] = "in-line",   [MS_DUMP_STATE] = "state",
    [MS_DUMP_ADD] = "add",           [MS_DUMP_OUTER] = "outer",
    [MS_DUMP_AHEAD] = "ahead",       [MS_DUMP_LIMIT] = "limit",
    [MS_DUMP_PAGEABLE] = "pageable", [MS_DUMP_BUFFER] = "buffer",
    [MS_DUMP_FILLED] = "filled",     [MS_DUMP_OF] = "of",
    [MS_DUMP_SIDE] = "side",         [MS_DUMP_AGAIN] = "again",
    [MS_DUMP_EXCHANGE] = "exchange", [MS_DUMP_PART] = "part",
    [MS_DUMP_STRAIGHT] = "straight", [MS_DUMP_GROUP] = "group",
    [MS_DUMP_PEER] = "peer",         [MS_DUMP_TAG] = "tag",
    [MS_DUMP_PAIRS] = "pairs",       [MS_DUMP_AS_IS] = "as-is",
};

const char *const ms_dump_frees[2] = {"recorded", "waited"};
const char *const ms_dump_hooks[4][2] = {{"all", "no-parameters"},
                                         {"pinned", "pageable"},
                                         {"ahead", "waits"},
                                         {"each", "once"}};

/* A row for a bool of a verb's payload and the key that sets it. */
#define FLAG(verb, key, member)                                                \
    {                                                                          \
        verb, MS_DUMP_##key, offsetof(ms_call, member)                         \
    }
static const struct {
    uint8_t verb, key;
    size_t at;
} payload_flags[] = {
    FLAG(MS_RUN, SAVES, run.saves),
    FLAG(MS_RUN, PAIRS, run.pairs),
    FLAG(MS_RUN, SIDE, run.side),
    FLAG(MS_RERUN, WHOLE, rerun.whole),
    FLAG(MS_RERUN, HOLD_OUTPUTS, rerun.holds),
    FLAG(MS_RERUN, STATE, rerun.state),
    FLAG(MS_RERUN, PART, rerun.part),
    FLAG(MS_MOVE, LATER, move.later),
    FLAG(MS_MOVE, IN_LINE, move.in_line),
    FLAG(MS_MOVE, SIDE, move.side),
    FLAG(MS_MOVE, ADD, move.adds),
    FLAG(MS_MOVE, PAGEABLE, move.pageable),
    FLAG(MS_MOVE, STRAIGHT, move.straight),
    FLAG(MS_MOVE, AHEAD, move.ahead),
    FLAG(MS_MOVE, AS_IS, move.as_is),
    FLAG(MS_HOLD, SAVES, hold.saves),
    FLAG(MS_RECV_SET, SAVES, message.saves),
    FLAG(MS_HOLD, AGAIN, hold.again),
    FLAG(MS_SEND_SET, AGAIN, message.again),
    FLAG(MS_SEND_SET, PAIRS, message.pairs),
    FLAG(MS_SEND_SET, IN_LINE, message.in_line),
    FLAG(MS_RECV_SET, IN_LINE, message.in_line),
    FLAG(MS_RECV_SET, PART, message.parts),
    FLAG(MS_STEP_SET, AHEAD, step.norms),
    FLAG(MS_STEP_SET, LATER, step.behind),
    FLAG(MS_SYNC, IN_LINE, sync.compute),
    FLAG(MS_GATHER, AHEAD, gather.ahead),
    FLAG(MS_GATHER, LIMIT, gather.limit),
    FLAG(MS_REDUCE, WHOLE, reduce.whole),
    FLAG(MS_REDUCE, FILLED, reduce.filled),
    FLAG(MS_REDUCE, EXCHANGE, reduce.exchange),
    FLAG(MS_REDUCE, IN_LINE, reduce.in_line),
};

size_t ms_dump_flag(uint8_t verb, ms_dump_key key)
{
    for (size_t i = 0; i < sizeof payload_flags / sizeof *payload_flags; i++)
        if (payload_flags[i].verb == verb && payload_flags[i].key == key)
            return payload_flags[i].at;
    return 0;
}

/* Writes a name from a file so that it is harmless in a line of text. */
static void put_name(ms_text *text, const char *name)
{
    for (const char *c = name == NULL ? "" : name; *c != '\0'; c++) {
        bool control = (unsigned char)*c < 0x20 || *c == 0x7f;
        ms_text_put(text, control ? "?" : c, 1);
    }
}

static void put_storage(ms_text *text, const ms_graph *graph, uint32_t s)
{
    char buffer[MS_STORAGE_NAME];
    put_name(text, ms_graph_storage_name(graph, s, buffer));
}

static void put_word(ms_text *text, const char *word)
{
    ms_text_add(text, " %s", word);
}

static void put_number(ms_text *text, const char *word, uint64_t value)
{
    ms_text_add(text, " %s ", word);
    ms_text_u64(text, value);
}

/* ---- groups -------------------------------------------------------------- */

static void put_group_row(const ms_group *group, uint32_t id, ms_text *text)
{
    ms_text_add(text, "group %u = ", id);
    put_name(text, group->name);
    ms_text_add(text, " ranks %u stride %u node %u", group->ranks,
                group->stride, group->node_ranks);
    put_word(text, ms_names_stream[group->queue]);
    put_word(text, ms_group_algorithms[group->algorithm]);
}

static void put_rate(ms_text *text, const char *word, double bytes_per_s)
{
    if (bytes_per_s <= 0)
        return;
    ms_text_add(text, " %s ", word);
    ms_text_double(text, bytes_per_s);
}

/* Below a group of the graph's text: on how many nodes, by which links, and
 * what its ranks divide. */
static void put_group_links(const ms_graph *graph, const ms_group *group,
                            uint32_t id, ms_text *text)
{
    const ms_links *links = &group->links;
    put_number(text, "nodes", ms_group_nodes(group));
    put_rate(text, links->nvlink ? "nvlink" : "pcie", links->node_bytes_per_s);
    put_rate(text, "network", links->network_bytes_per_s);
    put_rate(text, "pair", links->peer_bytes_per_s);
    put_rate(text, "switch", links->nvls_share);
    if (links->n_curves > 0)
        put_number(text, "curves", links->n_curves);
    if (id >= MS_N_GROUP_ROLES || graph->share[id].parts == 0)
        return;
    put_number(text, "parts", graph->share[id].parts);
    put_number(text, "copies", graph->share[id].copies);
    if (graph->share[id].copies > 1)
        put_number(text, "again", graph->share[id].again);
}

/* ---- graph --------------------------------------------------------------- */

static const char *category_name(uint8_t category)
{
    return category == MS_BECOMES_GRAD ? "becomes_grad"
                                       : ms_names_category[category];
}

static void put_list(ms_text *text, const char *word, const uint32_t *at,
                     const uint32_t *values, uint32_t row)
{
    if (at[row] == at[row + 1])
        return;
    put_word(text, word);
    for (uint32_t i = at[row]; i < at[row + 1]; i++) {
        ms_text_put(text, " ", 1);
        ms_text_u64(text, values[i]);
    }
}

/* This rank's part of what a group's ranks share. */
static void put_part(const ms_graph *graph, uint32_t s, ms_text *text)
{
    if (s >= graph->n_persistent || graph->storage_shard_bytes == NULL ||
        graph->storage_shard_bytes[s] == MS_UNSHARED)
        return;
    put_number(text, "part", graph->storage_shard_bytes[s]);
    put_number(text, "group", ms_graph_group(graph, s));
}

static void dump_storage(const ms_graph *graph, uint32_t s, ms_text *text)
{
    ms_text_add(text, "storage %u bytes ", s);
    ms_text_u64(text, graph->storage_bytes[s]);
    put_word(text, category_name(graph->storage_category[s]));
    if (graph->storage_at_start[s])
        put_word(text, "at-start");
    if (graph->storage_maker[s] != MS_NONE)
        put_number(text, "maker", graph->storage_maker[s]);
    if (graph->storage_local_end[s] != MS_NONE)
        put_number(text, "local-end", graph->storage_local_end[s]);
    if (graph->storage_saved_end[s] != MS_NONE)
        put_number(text, "saved-end", graph->storage_saved_end[s]);
    if (graph->storage_grad[s] != MS_NONE)
        put_number(text, "grad", graph->storage_grad[s]);
    put_part(graph, s, text);
    ms_text_add(text, "  # ");
    put_storage(text, graph, s);
    ms_text_put(text, "\n", 1);
}

static void put_drops(const ms_graph *graph, uint32_t op, ms_text *text)
{
    if (graph->drop_at[op] == graph->drop_at[op + 1])
        return;
    put_word(text, "drop");
    for (uint32_t i = graph->drop_at[op]; i < graph->drop_at[op + 1]; i++) {
        uint32_t drop = graph->drop[i];
        ms_text_add(text, " %u%s", MS_DROP_STORAGE(drop),
                    drop & MS_DROP_SAVED ? "s" : "");
    }
}

static void put_op_flags(const ms_graph *graph, uint32_t op, ms_text *text)
{
    static const struct {
        uint8_t flag;
        const char *word;
    } rows[] = {{MS_OP_CORE, "core"},       {MS_OP_CLONES, "clones"},
                {MS_OP_HOST, "host"},       {MS_OP_SHARES, "shares"},
                {MS_OP_EMPTIES, "empties"}, {MS_OP_SPARES, "spares"}};
    uint8_t flags = graph->op_flags[op];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (flags & rows[i].flag)
            put_word(text, rows[i].word);
    if (flags & MS_OP_GATHERS) {
        put_word(text, "gathers");
        put_number(text, "group", graph->op_group ? graph->op_group[op] : 0);
    }
    if (graph->op_meets && graph->op_meets[op]) {
        uint8_t meets = graph->op_meets[op];
        put_word(text, ms_group_collectives[MS_MEETS_COLLECTIVE(meets)]);
        put_number(text, "group", MS_MEETS_GROUP(meets));
    }
}

static void dump_op(const ms_graph *graph, uint32_t op, ms_text *text)
{
    ms_text_add(text, "op %u ", op);
    put_name(text, graph->op_name[op]);
    put_word(text, ms_names_pass[graph->op_pass[op]]);
    if (graph->op_unit[op] != MS_NONE)
        put_number(text, "unit", graph->op_unit[op]);
    if (graph->op_node[op] != MS_NONE)
        put_number(text, "node", graph->op_node[op]);
    put_op_flags(graph, op, text);
    if (graph->op_stream[op] != MS_STREAM_COMPUTE)
        put_word(text, ms_names_stream[graph->op_stream[op]]);
    put_number(text, "ns", graph->op_ns[op]);
    if (graph->op_flops[op] > 0) {
        ms_text_add(text, " flops ");
        ms_text_double(text, graph->op_flops[op]);
    }
    put_list(text, "in", graph->in_at, graph->in, op);
    put_list(text, "out", graph->out_at, graph->out, op);
    put_drops(graph, op, text);
    if (graph->op_layer[op] != MS_NONE) {
        ms_text_add(text, "  # ");
        put_name(text, graph->layer_name[graph->op_layer[op]]);
    }
    ms_text_put(text, "\n", 1);
}

static void dump_unit(const ms_graph *graph, uint32_t u, ms_text *text)
{
    ms_text_add(text, "unit %u forward %u-%u backward %u-%u", u,
                graph->forward_at[u], graph->forward_at[u + 1],
                graph->backward_at[u + 1], graph->backward_at[u]);
    put_list(text, "in", graph->unit_in_at, graph->unit_in, u);
    ms_text_add(text, "  # ");
    put_name(text, graph->unit_name[u]);
    if (graph->unit_block[u] != MS_NONE) {
        ms_text_add(text, " block ");
        put_name(text, graph->block_name[graph->unit_block[u]]);
    }
    ms_text_put(text, "\n", 1);
}

/* Without a graph (NULL), of a program: their links are not told. */
static void dump_groups(const ms_graph *graph, const ms_group *groups,
                        uint32_t n, ms_text *text)
{
    for (uint32_t id = 0; id < n; id++) {
        if (groups[id].ranks < 2)
            continue;
        put_group_row(&groups[id], id, text);
        if (graph != NULL)
            put_group_links(graph, &groups[id], id, text);
        ms_text_put(text, "\n", 1);
    }
}

void ms_dump_graph(const ms_graph *graph, const ms_group *groups,
                   uint32_t n_groups, ms_text *text)
{
    ms_text_add(text, "memsim-graph 1  # ");
    put_name(text, graph->name);
    ms_text_add(text, "\nparameters ");
    ms_text_u64(text, graph->parameters);
    ms_text_add(text,
                " units %u loss-unit %u ops %u step-first %u "
                "storages %u persistent %u\n",
                graph->n_units, graph->loss_unit, graph->n_ops,
                graph->step_first, graph->n_storages, graph->n_persistent);
    ms_text_add(text, "# ranges end before their second number; \"drop 7s\" "
                      "ends the saved reference of 7\n");
    if (graph->n_kept > 0)
        ms_text_add(text, "kept-to %s",
                    graph->keep_to_step ? "step" : "backward");
    for (uint32_t i = 0; i < graph->n_kept; i++)
        ms_text_add(text, " %u", graph->kept[i]);
    if (graph->n_kept > 0)
        ms_text_put(text, "\n", 1);
    dump_groups(graph, groups, n_groups, text);
    for (uint32_t u = 0; u < graph->n_units; u++)
        dump_unit(graph, u, text);
    for (uint32_t s = 0; s < graph->n_storages; s++)
        dump_storage(graph, s, text);
    for (uint32_t op = 0; op < graph->n_ops; op++)
        dump_op(graph, op, text);
}

/* ---- program ------------------------------------------------------------- */

#define NAMES_PER_SET 4u

static void dump_set(const ms_graph *graph, const ms_program *program,
                     uint32_t set, ms_text *text)
{
    uint32_t first = program->set_at[set], end = program->set_at[set + 1];
    ms_text_add(text, "set %u =", set);
    for (uint32_t i = first; i < end; i++) {
        ms_text_put(text, " ", 1);
        ms_text_u64(text, program->set_item[i]);
    }
    ms_text_put(text, "  #", 3);
    for (uint32_t i = first; i < end && i < first + NAMES_PER_SET; i++) {
        ms_text_put(text, " ", 1);
        put_storage(text, graph, program->set_item[i]);
    }
    ms_text_add(text, "%s\n", end - first > NAMES_PER_SET ? " ..." : "");
}

static void put_set(ms_text *text, uint32_t set)
{
    if (set == MS_ALL)
        put_word(text, "all");
    else if (set == MS_NOTHING)
        put_word(text, "nothing");
    else
        ms_text_add(text, " %u", set);
}

static void put_object(const ms_call *call, ms_text *text)
{
    switch (ms_dump_verbs[call->verb].object) {
    case MS_DUMP_PASS:
        put_word(text, call->run.half ? ms_names_pass[call->run.pass]
                       : call->run.pass == MS_FORWARD ? "forward"
                                                      : "backward");
        break;
    case MS_DUMP_SET:
        put_set(text, call->set);
        break;
    case MS_DUMP_MARK:
        put_word(text, ms_names_mark[call->mark.mark]);
        break;
    case MS_DUMP_TASK:
        ms_text_add(text, " %u", call->work.task);
        break;
    case MS_DUMP_NO_OBJECT:
        break;
    }
}

/* An exchange always says: it had groups before there were rows of them. */
static void put_group(const ms_call *call, ms_text *text)
{
    bool reduces = call->verb == MS_REDUCE;
    uint8_t group = ms_program_group(call);
    if (group != MS_GROUP_DATA || (reduces && call->reduce.exchange))
        put_number(text, "group", group);
}

/* Who does it, for which micro-batch; false: the key is another. */
static bool put_who(const ms_call *call, ms_dump_key key, ms_text *text)
{
    uint32_t tag;
    switch (key) {
    case MS_DUMP_FRAME:
        put_number(text, "frame", call->frame);
        return true;
    case MS_DUMP_MICRO:
        put_number(text, "micro", call->micro_batch);
        return true;
    case MS_DUMP_RANK:
        if (call->rank != 0)
            put_number(text, "rank", call->rank);
        return true;
    case MS_DUMP_PEER:
        put_number(text, "peer", call->message.peer);
        return true;
    case MS_DUMP_TAG:
        tag = call->verb == MS_REDUCE ? call->reduce.tag : call->message.tag;
        if (tag > 0)
            put_number(text, "tag", tag);
        return true;
    default:
        return false;
    }
}

/* A key at its default is left out, and is read back as the same. */
static void put_key(const ms_call *call, ms_dump_key key, ms_text *text)
{
    uint8_t place;
    size_t flag;
    if (put_who(call, key, text))
        return;
    switch (key) {
    case MS_DUMP_UNIT:
        put_number(text, "unit", call->unit);
        break;
    case MS_DUMP_UNITS:
        if (call->unit != MS_NONE)
            ms_text_add(text, " units %u-%u", call->unit, call->last);
        break;
    case MS_DUMP_KEEP:
    case MS_DUMP_HOLD:
        if (call->run.pass != MS_FORWARD)
            break;
        put_word(text, ms_dump_keys[key]);
        put_set(text, key == MS_DUMP_KEEP ? call->run.keep : call->set);
        break;
    case MS_DUMP_OF:
        if (call->set == MS_NOTHING)
            break;
        put_word(text, "of");
        put_set(text, call->set);
        break;
    case MS_DUMP_TO:
        place = ((const uint8_t *)call)[ms_dump_places[call->verb]];
        if (call->verb == MS_STEP_SET && place == MS_HERE)
            break;
        put_word(text, "to");
        put_word(text, ms_names_place[place]);
        break;
    case MS_DUMP_BUFFER:
        if (call->buffer != MS_NONE)
            put_number(text, "buffer", call->buffer);
        break;
    case MS_DUMP_GROUP:
        put_group(call, text);
        break;
    case MS_DUMP_OUTER:
        break;
    default:
        flag = ms_dump_flag(call->verb, key);
        if (((const bool *)call)[flag])
            put_word(text, ms_dump_keys[key]);
        break;
    }
}

static void dump_buffer(const ms_program *program, uint32_t id, ms_text *text)
{
    const ms_buffer *buffer = &program->buffers[id];
    ms_text_add(text, "buffer %u = ", id);
    ms_text_u64(text, buffer->bytes);
    put_word(text, ms_names_category[buffer->category]);
    put_word(text, ms_names_pool[buffer->pool]);
    put_word(text, buffer->home > MS_HOME_COMPUTE
                       ? ms_names_home[buffer->home]
                       : ms_names_stream[buffer->stream]);
    put_word(text, ms_dump_frees[buffer->waited]);
    ms_text_add(text, "  # ");
    put_name(text, buffer->name);
    ms_text_put(text, "\n", 1);
}

static void dump_task(const ms_program *program, uint32_t id, ms_text *text)
{
    const ms_task *task = &program->tasks[id];
    ms_text_add(text, "task %u = ", id);
    ms_text_u64(text, task->amount);
    put_word(text, ms_names_task_unit[task->unit]);
    put_word(text, ms_names_stream[task->stream]);
    ms_text_add(text, "  # ");
    put_name(text, task->name);
    ms_text_put(text, "\n", 1);
}

static void dump_stage(const ms_program *program, uint32_t id, ms_text *text)
{
    const ms_stage *stage = &program->stages[id];
    ms_text_add(text, "stage %u = rank %u units %u-%u\n", id,
                (unsigned)stage->rank, stage->first, stage->last);
}

static void dump_call(const ms_graph *graph, const ms_call *call, ms_text *text)
{
    const ms_dump_verb *verb = &ms_dump_verbs[call->verb];
    ms_text_add(text, "%s", verb->name);
    put_object(call, text);
    for (uint32_t key = 0; key < MS_DUMP_N_KEYS; key++)
        if (verb->keys & 1u << key)
            put_key(call, (ms_dump_key)key, text);
    if (verb->keys & KEY(UNIT)) {
        ms_text_add(text, "  # ");
        put_name(text, graph->unit_name[call->unit]);
    }
    ms_text_put(text, "\n", 1);
}

/* The hooks of a call: those of saves before op 40, of 1024 bytes up, ... */
static void dump_hooks(const ms_hooks *hooks, ms_text *text)
{
    const bool flags[] = {hooks->skips_parameters, hooks->pageable,
                          hooks->waits, hooks->once};
    if (!hooks->used)
        return;
    ms_text_add(text, "hooks before %u least ", hooks->ops);
    ms_text_u64(text, hooks->min_bytes);
    ms_text_add(text, " stash %u", hooks->stash);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        put_word(text, ms_dump_hooks[i][flags[i]]);
    ms_text_put(text, "\n", 1);
}

void ms_dump_program(const ms_graph *graph, const ms_program *program,
                     ms_text *text)
{
    ms_text_add(text,
                "memsim-program 1\nframes %u ranks %u micro-batches %u%s\n",
                (unsigned)program->n_frames, (unsigned)program->n_ranks,
                program->n_micro_batches, program->overlaps ? " overlap" : "");
    if (program->online)
        ms_text_add(text,
                    "# %s evicts while rows are taken: not in this text\n",
                    program->online->name);
    dump_hooks(&program->hooks, text);
    dump_groups(NULL, program->groups, program->n_groups, text);
    for (uint32_t set = 0; set < program->n_sets; set++)
        dump_set(graph, program, set, text);
    for (uint32_t buffer = 0; buffer < program->n_buffers; buffer++)
        dump_buffer(program, buffer, text);
    for (uint32_t task = 0; task < program->n_tasks; task++)
        dump_task(program, task, text);
    for (uint32_t stage = 0; stage < program->n_stages; stage++)
        dump_stage(program, stage, text);
    for (uint32_t i = 0; i < program->n_calls; i++)
        dump_call(graph, &program->calls[i], text);
}
