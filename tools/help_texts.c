/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Help in prose: files, units, exit statuses, the keys of run --json. */

#include "tools/tools.h"

#define JSON_INDENT 36u

static void put(ms_text *text, const char *const *lines)
{
    for (; *lines != NULL; lines++)
        ms_text_add(text, "%s\n", *lines);
}

static void op_graphs(ms_text *text)
{
    static const char *const lines[] = {
        "A model that ran in PyTorch comes as an op graph, recognised by its",
        "\"format\" key: its forward's ops, tensors and storages as",
        "tools/export_torch.py writes them.  Backward is derived.  It keeps "
        "its",
        "batch and dtypes; \"microbatch:4\" runs it four times per step.  "
        "Its keys:",
        "",
        "    \"format\": any, \"meta\": {\"batch\": N}, \"loss_start\": node,",
        "    \"storages\": [[id, bytes, \"act|param|buffer|input\", name], "
        "...],",
        "    \"tensors\":  [[id, storage, shape, dtype, strides, offset], "
        "...],",
        "    \"nodes\":    [{\"op\": \"aten.add\", \"overload\": \"Tensor\", "
        "\"mod\": \"h.0\",",
        "                   \"in\": [id, ...], \"out\": [id, ...],",
        "                   \"args\": [\"T\", 1], \"flops\": N,",
        "                   \"ends\": [id, ...]}, ...]",
        "",
        "Ids count from 0.  Nodes stand in the order in which they ran; each "
        "tensor is",
        "made once, before it is read.  \"act\" storages are made by nodes, "
        "the "
        "others are",
        "there before the step.  \"T\" is the next tensor of \"in\".  "
        "\"ends\": tensors",
        "that lost their last name after the node; without it, with their "
        "last reader.",
        "Under autocast (--precision autocast-bf16) dtypes follow from the "
        "ops; the ops",
        "autocast.lower and autocast.to note what functions of several ops "
        "cast.",
        "",
        NULL};
    put(text, lines);
}

void ms_help_texts_files(ms_text *text)
{
    static const char *const lines[] = {
        "A model file is JSON: a family with a few numbers,",
        "",
        "    {\"memsim\": 1, \"name\": \"tiny\", \"family\": \"decoder\",",
        "     \"config\": {\"layers\": 2, \"hidden\": 64, \"heads\": 4,",
        "                \"vocab\": 1000, \"positions\": 128}}",
        "",
        "a count of parameters (model states only),",
        "",
        "    {\"memsim\": 1, \"name\": \"7.5B\", \"family\": \"parameters\",",
        "     \"count\": 7500000000}",
        "",
        "or a list of layers:",
        "",
        "    {\"memsim\": 1, \"name\": \"mlp\", \"input\": {\"shape\": [784]},",
        "     \"layers\": [",
        "       {\"repeat\": 8, \"name\": \"hidden\", \"layers\": [",
        "         {\"type\": \"linear\", \"out\": 1024}, {\"type\": "
        "\"relu\"}]},",
        "       {\"type\": \"linear\", \"name\": \"head\", \"out\": 10},",
        "       {\"type\": \"cross_entropy\"}]}",
        "",
        "A layer reads the layer before it unless \"inputs\" names others, so "
        "skips are",
        "{\"type\": \"add\", \"inputs\": [\"a\", \"b\"]}.  Each element of a "
        "\"repeat\" is a block:",
        "what checkpoint policies count.  The families are built from the "
        "same layers.",
        "",
        NULL};
    static const char *const topics[] = {
        "memsim help layers      layer types and their keys",
        "memsim help ops         ops of an op graph",
        "memsim help families    families and their keys", NULL};
    put(text, lines);
    op_graphs(text);
    put(text, topics);
}

void ms_help_texts_units(ms_text *text)
{
    static const char *const lines[] = {
        "Memory is read as 80GiB (80 x 2^30), 80GB (80 x 10^9) or plain "
        "bytes; also KiB,",
        "MiB, TiB, kB, MB, TB and decimals (79.5GiB).  80G could mean either "
        "and is an",
        "error.  Memory is printed in KiB, MiB, GiB and, from 10 TiB on, in "
        "TiB, rates in",
        "GB/s.  In JSON and CSV bytes and nanoseconds are integers; their "
        "keys end in",
        "_bytes and _ns.  A multiply-add counts as two FLOP.",
        NULL};
    put(text, lines);
}

void ms_help_texts_exit(ms_text *text)
{
    static const struct {
        int status;
        const char *meaning;
    } rows[] = {
        {0, "done; with --check: it fits"},
        {1, "with --check: it does not fit"},
        {2, "usage: unknown option, command, policy, device or setting"},
        {3, "bad input: a model, program or trace file, a plugin"},
        {4, "system: a file cannot be read or written, out of memory"},
        {5, "gnuplot is missing or failed; data outputs are written"},
        {6, "no plan satisfies the request"},
        {130, "interrupted (143: terminated)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ms_text_add(text, "  %3d  %s\n", rows[i].status, rows[i].meaning);
}

typedef struct json_key {
    const char *key, *meaning; /* key NULL: the end */
} json_key;

static void put_keys(const json_key *row, ms_text *text)
{
    for (; row->key != NULL; row++) {
        const char *label = ms_arena_format(text->arena, "  %s", row->key);
        if (label == NULL)
            text->failed = true;
        else
            ms_screen_fill(text, JSON_INDENT, label, row->meaning);
    }
}

static void put_explain_keys(ms_text *text)
{
    static const json_key rows[] = {
        {"at", "the instant: time_ns, event, phase, op, layer"},
        {"total_bytes", "what is alive then; the groups sum to it"},
        {"groups", "tensors that differ in a number only, largest first: "
                   "category, layer, role, op (that made them), count, bytes "
                   "(all of them)"},
        {"groups[].why", "what keeps them alive"},
        {"groups[].next_reader", "op and layer that read them next"},
        {"groups[].remove", "policies and settings, found by replays, that "
                            "leave at most half of the bytes"},
        {NULL, NULL}};
    ms_text_add(text, "\nmemsim explain MODEL --json, beside schema_version, "
                      "memsim, model and policy:\n\n");
    put_keys(rows, text);
}

static void put_compare_keys(ms_text *text)
{
    static const json_key rows[] = {
        {"variants", "the object of run --json for each"},
        {"differences", "for the second variant on, each minus the first: "
                        "variant, against (numbers from 1), then the columns "
                        "of --csv that are bytes or ns"},
        {"explain", "null without --explain"},
        {"explain.variants", "at and total_bytes of the two, as in explain"},
        {"explain.groups", "tensors held differently, largest first: as in "
                           "explain, but difference_bytes, and variants with "
                           "bytes, why, next_reader of each; a tensor that is "
                           "not alive has 0 bytes, and why says where it went"},
        {NULL, NULL}};
    ms_text_add(text, "\nmemsim compare MODEL --json, beside schema_version, "
                      "memsim and model:\n\n");
    put_keys(rows, text);
}

static void put_run_keys(ms_text *text)
{
    static const json_key rows[] = {
        {"schema_version", "1; keys may be added, none change"},
        {"memsim", "version of the program"},
        {"status", "ok, over, out_of_memory or infeasible"},
        {"model, device, policy", "names; policy in canonical spelling"},
        {"settings", "every setting; \"defaults\" lists those not given"},
        {"parameters", "elements, tied ones once"},
        {"unknown_ops", "op and count of each that has no rule (see "
                        "graph.unknown_op)"},
        {"fits", "reserved + context <= capacity"},
        {"capacity_bytes", "of the device, or --memory"},
        {"context_bytes", "driver and kernels, outside the pool"},
        {"headroom_bytes", "capacity - reserved - context"},
        {"out_of_memory", "with --wall: op, layer, time_ns and missing_bytes "
                          "where nothing helped"},
        {"peak", "highest allocated, active, requested, reserved (_bytes); "
                 "of the highest allocated its time_ns, event, phase, pass, "
                 "op, layer, micro_batch, rank"},
        {"peak.by_category", "what is alive then; sums to allocated_bytes"},
        {"category_peaks", "highest level of each category on its own"},
        {"model_states", "highest parameters, gradients, optimizer state"},
        {"levels", "start, before_loss, after_forward, after_backward, end; "
                   "without workspace"},
        {"phase_peaks", "highest level in forward, loss, backward, optimizer; "
                        "without workspace"},
        {"phase_peaks_with_workspace", "the same with workspace"},
        {"optimizer_scratch_bytes", "highest temporaries of the optimizer"},
        {"saved_for_backward_bytes", "activations held after the loss"},
        {"host_peak_bytes, nvme_peak_bytes",
         "highest levels outside the device, of this rank"},
        {"host_by_category, nvme_by_category", "what makes these"},
        {"host_node_bytes, nvme_node_bytes",
         "of all ranks of a node; ..._node_capacity_bytes: what it has"},
        {"time", "parts that sum to step_ns on the compute stream"},
        {"stalls", "ns of waiting by cause: host (it had not issued the op), "
                   "copy, comm, bubble (another rank), pages, memory (full); "
                   "of comm gather and reduce, of copy copy_to_device, "
                   "copy_to_host, disk, host_work and pack (copies within the "
                   "device)"},
        {"page_faults", "with uvm: blocks that ops waited for"},
        {"revoked_prefetches", "with --wall: copies whose memory was taken "
                               "back before use, or put off"},
        {"flops", "forward, backward, recompute, optimizer, total"},
        {"recomputed_ops", "ops that ran again"},
        {"traffic", "bytes moved: h2d, d2h, comm (sent; of it between nodes: "
                    "network), nvme (nvme_read + nvme_write)"},
        {"links", "for comm, outer (between groups), h2d, d2h, nvme_read, "
                  "nvme_write, host (work of its cores): bytes, "
                  "network_bytes, bytes_per_s while busy; busy_ns = hidden_ns "
                  "+ exposed_ns (what the compute stream waits for)"},
        {"overlap", "the same times of all collectives (comm) and of all "
                    "copies"},
        {"tokens_per_second, mfu", "null where they mean nothing"},
        {"events", "allocations and frees replayed"},
        {"ranks", "the same for each rank"},
        {NULL, NULL}};
    ms_text_add(text, "memsim run MODEL --json prints one object:\n\n");
    put_keys(rows, text);
}

void ms_help_texts_json(ms_text *text)
{
    put_run_keys(text);
    put_explain_keys(text);
    put_compare_keys(text);
    ms_text_add(text, "\nA key that does not apply is null.\n");
}
