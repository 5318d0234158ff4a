/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of memsim run --json. */

#include "tools/job/settings_table.h"
#include "tools/results/keys.h"

/* ---- run: parts of a rank ------------------------------------------------ */

static const ms_key peak_rows[] = {
    MS_KEYS_COUNT("allocated_bytes"),
    MS_KEYS_COUNT("active_bytes"),
    MS_KEYS_COUNT("requested_bytes"),
    MS_KEYS_COUNT("reserved_bytes"),
    MS_KEYS_COUNT_OR_NULL("time_ns"),
    MS_KEYS_COUNT_OR_NULL("event"),
    {.name = "phase",
     .type = MS_KEY_WORD,
     .null = true,
     .names = ms_names_phase,
     .n_names = MS_N_PHASES},
    {.name = "pass",
     .type = MS_KEY_WORD,
     .null = true,
     .names = ms_names_pass,
     .n_names = MS_N_PASSES},
    MS_KEYS_TEXT_OR_NULL("op"),
    MS_KEYS_TEXT_OR_NULL("layer"),
    MS_KEYS_COUNT_OR_NULL("micro_batch"),
    MS_KEYS_COUNT("rank"),
    {.name = "by_category",
     MS_KEYS_CATEGORIES,
     .help = "what is alive then; sums to allocated_bytes"},
};
static const ms_keys peak = MS_KEYS_OBJECT("peak", peak_rows);

static const ms_key states_rows[] = {
    MS_KEYS_COUNT("parameters_bytes"), MS_KEYS_COUNT("gradients_bytes"),
    MS_KEYS_COUNT("optimizer_state_bytes"), MS_KEYS_COUNT("total_bytes")};
static const ms_keys states = MS_KEYS_OBJECT("model_states", states_rows);

static const ms_key levels_rows[] = {
    MS_KEYS_COUNT_OR_NULL("start_bytes"),
    MS_KEYS_COUNT_OR_NULL("before_loss_bytes"),
    MS_KEYS_COUNT_OR_NULL("after_forward_bytes"),
    MS_KEYS_COUNT_OR_NULL("after_backward_bytes"),
    MS_KEYS_COUNT_OR_NULL("end_bytes")};
static const ms_keys levels = MS_KEYS_OBJECT("levels", levels_rows);

static const ms_key phases_rows[] = {MS_KEYS_COUNT_OR_NULL("forward_bytes"),
                                     MS_KEYS_COUNT_OR_NULL("loss_bytes"),
                                     MS_KEYS_COUNT_OR_NULL("backward_bytes"),
                                     MS_KEYS_COUNT_OR_NULL("optimizer_bytes")};
static const ms_keys phases = MS_KEYS_OBJECT("phase_peaks", phases_rows);

static const ms_key phase_categories_rows[] = {
    {.name = "forward", MS_KEYS_CATEGORIES},
    {.name = "loss", MS_KEYS_CATEGORIES},
    {.name = "backward", MS_KEYS_CATEGORIES},
    {.name = "optimizer", MS_KEYS_CATEGORIES},
};
static const ms_keys phase_categories =
    MS_KEYS_OBJECT("phase_peaks_by_category", phase_categories_rows);

static const ms_key time_rows[] = {
    MS_KEYS_COUNT("step_ns"),        MS_KEYS_COUNT("forward_ns"),
    MS_KEYS_COUNT("backward_ns"),    MS_KEYS_COUNT("recompute_ns"),
    MS_KEYS_COUNT("optimizer_ns"),   MS_KEYS_COUNT("exposed_comm_ns"),
    MS_KEYS_COUNT("stall_ns"),       MS_KEYS_COUNT("bubble_ns"),
    MS_KEYS_COUNT("host_bound_ns"),  MS_KEYS_COUNT("page_wait_ns"),
    MS_KEYS_COUNT("memory_wait_ns"), MS_KEYS_COUNT("idle_ns")};
static const ms_keys times = MS_KEYS_OBJECT("time", time_rows);

static const ms_key stalls_rows[] = {MS_KEYS_COUNT("host"),
                                     MS_KEYS_COUNT("copy"),
                                     MS_KEYS_COUNT("comm"),
                                     MS_KEYS_COUNT("bubble"),
                                     MS_KEYS_COUNT("pages"),
                                     MS_KEYS_COUNT("memory"),
                                     MS_KEYS_COUNT("gather"),
                                     MS_KEYS_COUNT("reduce"),
                                     MS_KEYS_COUNT("copy_to_device"),
                                     MS_KEYS_COUNT("disk"),
                                     MS_KEYS_COUNT("copy_to_host"),
                                     MS_KEYS_COUNT("host_work"),
                                     MS_KEYS_COUNT("pack")};
static const ms_keys stalls = MS_KEYS_OBJECT("stalls", stalls_rows);

static const ms_key traffic_rows[] = {
    MS_KEYS_COUNT("h2d_bytes"),       MS_KEYS_COUNT("d2h_bytes"),
    MS_KEYS_COUNT("comm_bytes"),      MS_KEYS_COUNT("network_bytes"),
    MS_KEYS_COUNT("nvme_bytes"),      MS_KEYS_COUNT("nvme_read_bytes"),
    MS_KEYS_COUNT("nvme_write_bytes")};
static const ms_keys traffic = MS_KEYS_OBJECT("traffic", traffic_rows);

static const ms_key link_rows[] = {MS_KEYS_COUNT("bytes"),
                                   MS_KEYS_COUNT("network_bytes"),
                                   MS_KEYS_COUNT_OR_NULL("bytes_per_s"),
                                   MS_KEYS_COUNT("busy_ns"),
                                   MS_KEYS_COUNT("hidden_ns"),
                                   MS_KEYS_COUNT("exposed_ns")};
static const ms_keys link_keys = MS_KEYS_OBJECT("link", link_rows);

static const ms_key busy_rows[] = {MS_KEYS_COUNT("busy_ns"),
                                   MS_KEYS_COUNT("hidden_ns"),
                                   MS_KEYS_COUNT("exposed_ns")};
static const ms_keys busy = MS_KEYS_OBJECT("busy", busy_rows);
static const ms_key overlap_rows[] = {
    {.name = "comm", .type = MS_KEY_OBJECT, .of = &busy},
    {.name = "copies", .type = MS_KEY_OBJECT, .of = &busy}};
static const ms_keys overlap = MS_KEYS_OBJECT("overlap", overlap_rows);

static const ms_key rank_rows[] = {
    MS_KEYS_COUNT("rank"),
    MS_KEYS_COUNT_OR_NULL("stage"),
    {.name = "peak", .type = MS_KEY_OBJECT, .of = &peak},
    {.name = "category_peaks", MS_KEYS_CATEGORIES},
    {.name = "model_states", .type = MS_KEY_OBJECT, .of = &states},
    {.name = "levels", .type = MS_KEY_OBJECT, .of = &levels},
    {.name = "phase_peaks", .type = MS_KEY_OBJECT, .of = &phases},
    {.name = "time", .type = MS_KEY_OBJECT, .of = &times},
    {.name = "stalls", .type = MS_KEY_OBJECT, .of = &stalls},
    {.name = "traffic", .type = MS_KEY_OBJECT, .of = &traffic},
    {.name = "links",
     .type = MS_KEY_NAMED,
     .of = &link_keys,
     .names = ms_waits_links,
     .n_names = MS_N_LINKS},
    {.name = "overlap", .type = MS_KEY_OBJECT, .of = &overlap},
    MS_KEYS_COUNT("in_flight_micro_batches"),
};
static const ms_keys rank_keys = MS_KEYS_OBJECT("rank", rank_rows);

/* ---- run: the whole ------------------------------------------------------ */

static const ms_key unknown_rows[] = {MS_KEYS_TEXT("op"),
                                      MS_KEYS_COUNT("count")};
static const ms_keys unknown = MS_KEYS_OBJECT("unknown_op", unknown_rows);

static const ms_key lack_rows[] = {
    MS_KEYS_TEXT_OR_NULL("op"), MS_KEYS_TEXT_OR_NULL("layer"),
    MS_KEYS_COUNT("time_ns"), MS_KEYS_COUNT("missing_bytes")};
static const ms_keys lack = MS_KEYS_OBJECT("out_of_memory", lack_rows);

static const ms_key moment_rows[] = {
    MS_KEYS_COUNT("reserved_bytes"), MS_KEYS_COUNT("allocated_bytes"),
    MS_KEYS_COUNT("idle_bytes"),     MS_KEYS_COUNT("largest_idle_bytes"),
    MS_KEYS_COUNT("usable_bytes"),   MS_KEYS_COUNT("next_request_bytes")};
static const ms_keys moment = MS_KEYS_OBJECT("pool_moment", moment_rows);

static const ms_key oom_rows[] = {MS_KEYS_COUNT("step"),
                                  MS_KEYS_COUNT("rank"),
                                  MS_KEYS_COUNT("requested_bytes"),
                                  MS_KEYS_COUNT("total_bytes"),
                                  MS_KEYS_COUNT_OR_NULL("allowed_bytes"),
                                  MS_KEYS_COUNT("free_bytes"),
                                  MS_KEYS_COUNT("allocated_bytes"),
                                  MS_KEYS_COUNT("reserved_bytes")};
static const ms_keys oom = MS_KEYS_OBJECT("pool_oom", oom_rows);

static const ms_key pool_step_peak_rows[] = {MS_KEYS_COUNT("allocated_bytes"),
                                             MS_KEYS_COUNT("reserved_bytes")};
static const ms_keys pool_step_peak =
    MS_KEYS_OBJECT("pool_step_peak", pool_step_peak_rows);
static const ms_key step_end_rows[] = {MS_KEYS_COUNT("allocated_bytes"),
                                       MS_KEYS_COUNT("reserved_bytes"),
                                       MS_KEYS_COUNT("segments")};
static const ms_keys step_end = MS_KEYS_OBJECT("pool_step_end", step_end_rows);
static const ms_key pool_step_calls_rows[] = {MS_KEYS_COUNT("device_allocs"),
                                              MS_KEYS_COUNT("device_frees"),
                                              MS_KEYS_COUNT("retries")};
static const ms_keys pool_step_calls =
    MS_KEYS_OBJECT("pool_step_calls", pool_step_calls_rows);
static const ms_key pool_step_rows[] = {
    MS_KEYS_COUNT_OR_NULL("batch"),
    MS_KEYS_COUNT_OR_NULL("sequence"),
    {.name = "peak", .type = MS_KEY_OBJECT, .of = &pool_step_peak},
    {.name = "at_end", .type = MS_KEY_OBJECT, .of = &step_end},
    {.name = "calls", .type = MS_KEY_OBJECT, .of = &pool_step_calls}};
static const ms_keys pool_step = MS_KEYS_OBJECT("pool_step", pool_step_rows);

static const ms_key pool_rows[] = {
    {.name = "version",
     .type = MS_KEY_TEXT,
     .null = true,
     .help = "PyTorch's, of torch"},
    {.name = "kind",
     .type = MS_KEY_WORD,
     .words = "torch|bfc|buddy|contiguous|arena"},
    MS_KEYS_COUNT("steps"),
    MS_KEYS_COUNT("allocated_peak_bytes"),
    MS_KEYS_COUNT("segments"),
    MS_KEYS_COUNT("device_allocs"),
    MS_KEYS_COUNT("device_frees"),
    MS_KEYS_COUNT("retries"),
    MS_KEYS_COUNT("requests"),
    {.name = "reserved_most_bytes",
     .type = MS_KEY_COUNT,
     .help = "the highest of all steps"},
    {.name = "by_step",
     .type = MS_KEY_OBJECTS,
     .of = &pool_step,
     .help = "each step's own peaks, what is held at its end, its calls to the "
             "device"},
    {.name = "touched_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     .help =
         "of bfc, buddy and contiguous: reserved, up to the highest address "
         "that was ever handed out in each segment"},
    {.name = "moves",
     .type = MS_KEY_COUNT,
     .null = true,
     .help = "of contiguous: blocks that the step moves to defragment"},
    MS_KEYS_COUNT_OR_NULL("moved_bytes"),
    {.name = "at_peak",
     .type = MS_KEY_OBJECT,
     .of = &moment,
     .help = "when most was allocated: idle (reserved, not active), of it the "
             "largest block and what could serve the next request"},
    {.name = "oom",
     .type = MS_KEY_OBJECT,
     .null = true,
     .of = &oom,
     .help =
         "what the pool's message says; step 0 is construction; the rest is "
         "then of a device with memory enough"}};
static const ms_keys pool = MS_KEYS_OBJECT("pool", pool_rows);

static const ms_key overheads_rows[] = {
    {.name = "context_and_kernels_bytes",
     .type = MS_KEY_COUNT,
     .help = "CUDA context and the kernels loaded with it"},
    {.name = "nccl_bytes",
     .type = MS_KEY_COUNT,
     .help = "NCCL's kernels, and buffers of its communicators"},
    {.name = "nccl_communicators", .type = MS_KEY_COUNT},
    {.name = "nccl_channels", .type = MS_KEY_COUNT},
    {.name = "library_workspaces_bytes",
     .type = MS_KEY_COUNT,
     .help = "what cuBLAS keeps in the pool; part of allocated"},
    {.name = "library_workspaces",
     .type = MS_KEY_COUNT,
     .help = "how many these are: one per thread that multiplies"}};
const ms_keys ms_keys_run_overheads =
    MS_KEYS_OBJECT("overheads", overheads_rows);

static const ms_key flops_rows[] = {
    {.name = "forward", .type = MS_KEY_NUMBER},
    {.name = "backward", .type = MS_KEY_NUMBER},
    {.name = "recompute", .type = MS_KEY_NUMBER},
    {.name = "optimizer", .type = MS_KEY_NUMBER},
    {.name = "total", .type = MS_KEY_NUMBER}};
static const ms_keys flops = MS_KEYS_OBJECT("flops", flops_rows);

/* What ms_training_fields gives to "settings". */
/* Row i of the table that "settings" of a result has, or NULL. */
static const ms_setting *told_setting(uint32_t i)
{
    for (uint32_t row = 0; row < ms_settings_table_n; row++)
        if (ms_settings_table[row].json != MS_SETTING_UNTOLD && i-- == 0)
            return &ms_settings_table[row];
    return NULL;
}

static ms_key setting_key(const ms_setting *row)
{
    static const ms_key_type types[] = {[MS_SETTING_TEXT] = MS_KEY_TEXT,
                                        [MS_SETTING_COUNT] = MS_KEY_COUNT,
                                        [MS_SETTING_BYTES] = MS_KEY_COUNT,
                                        [MS_SETTING_WORD] = MS_KEY_WORD,
                                        [MS_SETTING_BOOL] = MS_KEY_BOOL};
    return (ms_key){.name = row->key,
                    .type = types[row->type],
                    .words = row->words,
                    .null = row->json == MS_SETTING_OR_NULL,
                    .optional =
                        row->json == MS_SETTING_IF_SAID || row->before != NULL};
}

static bool training_key(uint32_t i, ms_arena *arena, ms_key *key)
{
    static const ms_key_type types[] = {
        [MS_INT] = MS_KEY_INTEGER, [MS_FLOAT] = MS_KEY_NUMBER,
        [MS_BOOL] = MS_KEY_BOOL,   [MS_WORD] = MS_KEY_WORD,
        [MS_NAME] = MS_KEY_TEXT,   [MS_INTS] = MS_KEY_TEXT,
        [MS_TEXT] = MS_KEY_TEXT};
    if (i >= ms_training_n_fields)
        return false;
    const ms_field *field = &ms_training_fields[i];
    *key = (ms_key){.name = ms_arena_format(arena, "%s.%s",
                                            ms_training_group(i), field->name),
                    .type = types[field->type],
                    .words = field->words,
                    .help = field->help};
    return key->name != NULL;
}

/* Those of the job, which are not given, those of training. */
static bool setting(uint32_t i, ms_arena *arena, ms_key *key)
{
    const ms_setting *row = told_setting(i);
    uint32_t n = 0;
    while (told_setting(n) != NULL)
        n++;
    if (i > n)
        return training_key(i - n - 1, arena, key);
    *key = row != NULL ? setting_key(row)
                       : (ms_key){.name = "defaults", .type = MS_KEY_TEXTS};
    return true;
}

const ms_keys ms_keys_run_settings = {
    .name = "settings", .more = setting, .any = "^model\\."};

static const ms_key run_rows[] = {
    {.name = "schema_version",
     .type = MS_KEY_VERSION,
     .help = "1; keys may be added, none change"},
    {.name = "memsim", .type = MS_KEY_TEXT, .help = "version of the program"},
    {.name = "status",
     .type = MS_KEY_WORD,
     .names = ms_names_status,
     .n_names = MS_INFEASIBLE + 1,
     .help = "ok, over, out_of_memory (of a wall) or infeasible"},
    {.name = "model", .type = MS_KEY_TEXT, .help = ""},
    {.name = "device", .type = MS_KEY_TEXT, .help = ""},
    {.name = "policy",
     .type = MS_KEY_TEXT,
     .help = "names; policy in canonical spelling"},
    {.name = "settings",
     .type = MS_KEY_OBJECT,
     .of = &ms_keys_run_settings,
     .help = "every setting; \"defaults\" lists those not given"},
    {.name = "parameters",
     .type = MS_KEY_COUNT,
     .help = "elements, tied ones once"},
    {.name = "unknown_ops",
     .type = MS_KEY_OBJECTS,
     .of = &unknown,
     .help = "op and count of each that has no rule (see graph.unknown_op)"},
    {.name = "fits",
     .type = MS_KEY_BOOL,
     .help = "reserved + context <= capacity, and a node has the host memory "
             "and the disk that its ranks need"},
    {.name = "exceeded",
     .type = MS_KEY_TEXTS,
     .optional = true,
     .help = "which are too small: device, host, nvme"},
    {.name = "capacity_bytes",
     .type = MS_KEY_COUNT,
     .help = "of the device, or --memory"},
    {.name = "context_bytes",
     .type = MS_KEY_COUNT,
     .help = "driver, kernels and NCCL, outside the pool"},
    {.name = "headroom_bytes",
     .type = MS_KEY_INTEGER,
     .help = "capacity - reserved - context"},
    {.name = "device_used_bytes",
     .type = MS_KEY_COUNT,
     .help = "reserved + context, as nvidia-smi reports"},
    {.name = "overheads",
     .type = MS_KEY_OBJECT,
     .of = &ms_keys_run_overheads,
     .help = "what context_bytes is of, and what libraries keep in the pool"},
    {.name = "out_of_memory",
     .type = MS_KEY_OBJECT,
     .null = true,
     .of = &lack,
     .help = "with --wall: op, layer, time_ns and missing_bytes where nothing "
             "helped; with a pool where it raises its error, if it does"},
    {.name = "pool",
     .type = MS_KEY_OBJECT,
     .optional = true,
     .of = &pool,
     .help = "not with --allocator exact: of the rank and step reported, in "
             "bytes of blocks; requests and retries of all steps"},
    {.name = "peak",
     .type = MS_KEY_OBJECT,
     .of = &peak,
     .help = "highest allocated, active, requested, reserved (_bytes); of the "
             "highest allocated its time_ns, event, phase, pass, op, layer, "
             "micro_batch, rank"},
    {.name = "category_peaks",
     MS_KEYS_CATEGORIES,
     .help = "highest level of each category on its own"},
    {.name = "model_states",
     .type = MS_KEY_OBJECT,
     .of = &states,
     .help = "highest parameters, gradients, optimizer state"},
    {.name = "levels",
     .type = MS_KEY_OBJECT,
     .of = &levels,
     .help = "start, before_loss, after_forward, after_backward, end; without "
             "workspace"},
    {.name = "phase_peaks",
     .type = MS_KEY_OBJECT,
     .of = &phases,
     .help = "highest level in forward, loss, backward, optimizer; without "
             "workspace"},
    {.name = "phase_peaks_with_workspace",
     .type = MS_KEY_OBJECT,
     .of = &phases,
     .help = "the same with workspace"},
    {.name = "phase_peaks_by_category",
     .type = MS_KEY_OBJECT,
     .of = &phase_categories,
     .help = "what makes these, by phase"},
    {.name = "optimizer_scratch_bytes",
     .type = MS_KEY_COUNT,
     .help = "highest temporaries of the optimizer"},
    {.name = "saved_for_backward_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     .help = "activations held after the loss"},
    {.name = "host_peak_bytes", .type = MS_KEY_COUNT, .help = ""},
    {.name = "nvme_peak_bytes",
     .type = MS_KEY_COUNT,
     .help = "highest levels outside the device, of this rank"},
    {.name = "host_by_category", MS_KEYS_CATEGORIES, .help = ""},
    {.name = "nvme_by_category",
     MS_KEYS_CATEGORIES,
     .help = "what makes these"},
    {.name = "host_node_bytes", .type = MS_KEY_COUNT, .help = ""},
    {.name = "nvme_node_bytes",
     .type = MS_KEY_COUNT,
     .help = "of all ranks of a node"},
    {.name = "host_pinned_bytes",
     .type = MS_KEY_COUNT,
     .optional = true,
     .help = "blocks of PyTorch's pinned host allocator"},
    {.name = "host_reserved_peak_bytes",
     .type = MS_KEY_COUNT,
     .optional = true,
     .help = ""},
    {.name = "nvme_reserved_peak_bytes",
     .type = MS_KEY_COUNT,
     .optional = true,
     .help = "what is taken for the highest levels: pinned blocks are powers "
             "of two and stay"},
    {.name = "host_node_reserved_bytes",
     .type = MS_KEY_COUNT,
     .optional = true,
     .help = ""},
    {.name = "nvme_node_reserved_bytes",
     .type = MS_KEY_COUNT,
     .optional = true,
     .help = "of all ranks of a node: what it must have"},
    {.name = "host_node_capacity_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     .help = ""},
    {.name = "nvme_node_capacity_bytes",
     .type = MS_KEY_COUNT,
     .null = true,
     .help = "what a node has, or --host-memory, --nvme; null: not known"},
    {.name = "host_headroom_bytes",
     .type = MS_KEY_INTEGER,
     .null = true,
     .optional = true,
     .help = ""},
    {.name = "nvme_headroom_bytes",
     .type = MS_KEY_INTEGER,
     .null = true,
     .optional = true,
     .help = "what a node has less what its ranks need"},
    {.name = "time",
     .type = MS_KEY_OBJECT,
     .of = &times,
     .help = "parts that sum to step_ns on the compute stream"},
    {.name = "stalls",
     .type = MS_KEY_OBJECT,
     .of = &stalls,
     .help = "ns of waiting by cause: host (it had not issued the op), copy, "
             "comm, bubble (another rank), pages, memory (full); of comm "
             "gather and reduce, of copy copy_to_device, copy_to_host, disk, "
             "host_work and pack (copies within the device)"},
    {.name = "page_faults",
     .type = MS_KEY_COUNT,
     .null = true,
     .help = "with uvm: blocks that ops waited for"},
    {.name = "revoked_prefetches",
     .type = MS_KEY_COUNT,
     .null = true,
     .help = "with --wall: copies whose memory was taken back before use, or "
             "put off"},
    {.name = "flops",
     .type = MS_KEY_OBJECT,
     .of = &flops,
     .help = "forward, backward, recompute, optimizer, total"},
    {.name = "recomputed_ops",
     .type = MS_KEY_COUNT,
     .help = "ops that ran again"},
    {.name = "traffic",
     .type = MS_KEY_OBJECT,
     .of = &traffic,
     .help = "bytes moved: h2d, d2h, comm (sent; of it between nodes: "
             "network), nvme (nvme_read + nvme_write)"},
    {.name = "links",
     .type = MS_KEY_NAMED,
     .of = &link_keys,
     .names = ms_waits_links,
     .n_names = MS_N_LINKS,
     .help = "for comm, outer (between groups), h2d, d2h, nvme_read, "
             "nvme_write, host (work of its cores): bytes, network_bytes, "
             "bytes_per_s while busy; busy_ns = hidden_ns + exposed_ns (what "
             "the compute stream waits for)"},
    {.name = "overlap",
     .type = MS_KEY_OBJECT,
     .of = &overlap,
     .help = "the same times of all collectives (comm) and of all copies"},
    {.name = "tokens_per_second",
     .type = MS_KEY_NUMBER,
     .null = true,
     .help = ""},
    {.name = "mfu",
     .type = MS_KEY_NUMBER,
     .null = true,
     .help = "null where they mean nothing"},
    {.name = "events",
     .type = MS_KEY_COUNT,
     .help = "allocations and frees replayed"},
    {.name = "repeats",
     .type = MS_KEY_COUNT,
     .optional = true,
     .help = "micro-batches that are counted but not in events"},
    {.name = "ranks",
     .type = MS_KEY_OBJECTS,
     .of = &rank_keys,
     .help = "the same for each rank"},
    {.name = "timeline",
     .type = MS_KEY_OBJECT,
     .null = true,
     .of = &ms_keys_timeline,
     .help = "what figures are drawn from: title, subtitle, data_ranks (that "
             "do what each of the ranks does), ranks and layers; tables are "
             "columns (their names) and rows"},
};
const ms_keys ms_keys_run = MS_KEYS_OBJECT("run", run_rows);
