/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim help traces and memsim help measurements. */

#include "tools/calibrate/measured.h"
#include "tools/cli/alloc/alloc_arena.h"
#include "tools/cli/help/help.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"

#define OPTION_INDENT 38u

static const char form[] =
    "A trace in text form has one operation a line:\n\n"
    "  # KEY VALUE      before the operations: total_bytes and base_used (of "
    "the\n"
    "                   device, taken by others), va, conf, version; others "
    "are\n"
    "                   comments\n"
    "  a ID SIZE [S]    malloc of SIZE bytes on stream S (default 0)\n"
    "  f ID             free\n"
    "  r ID S           record_stream: stream S uses the block, too\n"
    "  w S [N]          stream S has N (1) more pieces of work to do\n"
    "  c S [N]          stream S finishes N of them (all)\n"
    "  e                empty_cache\n"
    "  m F              set_per_process_memory_fraction(F)\n"
    "  x CONF           other allocator options from now on\n"
    "  b N              others take N bytes of the device from now on\n"
    "  P                reset_peak_memory_stats\n"
    "  s                snapshot\n\n"
    "A recorded history is a pickle of torch.cuda.memory._dump_snapshot, which "
    "is\n"
    "read and never run, or JSON: {\"conf\", \"expandable\", \"start\", "
    "\"events\", \"final\"}.\n"
    "It holds the device's answers, so --allocator torch (without options) "
    "replays\n"
    "it to the address and says what differs.\n\n"
    "--leaks compares what is alive at the same point of successive steps, the "
    "last\n64 of them, and lists the sites whose bytes never fall and rise "
    "more than once:\nby the frames of a snapshot, else by size and stream.  A "
    "line "
    "\"# step\" marks\nthe point, else P does; of the steps between marks the "
    "first is left out, as it\nsets up what stays.  Without marks the last "
    "allocations, half of all or more,\nmust be the same run of allocations at "
    "least three times.\n\n"
    "Several traces stand in a table, a row each, as those of the ranks of a "
    "job: which\nallocates most, and what it holds at its peak that the "
    "lowest one lacks.  With\n--leaks they are successive steps of one run, "
    "three or more in their order, and\nwhat is alive at the end of each is "
    "compared.  What a snapshot holds at its start\nkeeps the frames that an "
    "earlier one has of it: recording may begin anew between\nthem, or go "
    "on.\n\n"
    "Buffers with known lives, for arena, are CSV with the heading\n"
    "id,lower,upper,size[,alignment]: alive from lower up to before upper, as "
    "minimalloc\n"
    "has them.  Of the other forms arena takes the lives: time is the number "
    "of the\n"
    "operation, sizes are rounded up to 512 bytes, uses by other streams do "
    "not count.\n\n"
    "--csv has the columns i, op, id, ok (0: out of memory), addr; bytes "
    "allocated,\n"
    "active, reserved, requested, inactive_split; how many n_allocation, "
    "n_active,\n"
    "n_inactive_split, n_segment; retries, ooms, dev_used.  fragmentation is\n"
    "1 - peak allocated / peak reserved.\n\n";

static void put_option(ms_text *text, const char *name, const char *values,
                       const char *help)
{
    char *label = ms_arena_format(text->arena, "  %s=%s", name, values);
    if (label == NULL)
        text->failed = true;
    else
        ms_screen_fill(text, OPTION_INDENT, label, help);
}

static void put_conf(const ms_torchconf_row *row, ms_text *text)
{
    const char *since = ms_torchconf_versions[row->since];
    const char *until = ms_torchconf_versions[row->until];
    char *help = ms_arena_format(text->arena, "%s (%s%s%s)", row->help, since,
                                 row->since == row->until ? "" : " to ",
                                 row->since == row->until ? "" : until);
    if (help == NULL)
        text->failed = true;
    else
        put_option(text, row->name, row->values, help);
}

static void put_arena(ms_text *text)
{
    ms_textlines_prose(
        "\n--allocator arena[,option=value...]: one buffer for all, "
        "every offset planned\nahead, of a trace or, by greedy rules and "
        "best, of one step; --csv has id,\nlower, upper, size and offset "
        "of each:\n\n",
        text);
    for (uint32_t i = 0; i < MS_ALLOC_N_ORDERS; i++) {
        ms_alloc_order order = ms_alloc_plans_order(i);
        put_option(text, "order", order.name, order.help);
    }
    put_option(text, "capacity", "SIZE",
               "with exact: any plan that is no higher; the exit status is 6 "
               "if there is none, or none was found");
    put_option(text, "steps", "N",
               "with exact: give up after N placements (1,000,000, or any "
               "number if there is seconds); the same result every time");
    put_option(text, "seconds", "S",
               "with exact: give up after S seconds; what is found depends on "
               "the machine");
}

static void put_heaps(ms_text *text)
{
    static const char *const heads[MS_POOL_N_TYPES] = {
        [MS_POOL_BFC] =
            "\n--allocator bfc[,option=value...]: TensorFlow's.  Sizes are "
            "multiples of 256;\nthe smallest idle block that is large enough "
            "serves, and is cut only where\nit has twice the bytes or 128 MiB "
            "more.  va as above, and:\n\n",
        [MS_POOL_BUDDY] = "\n--allocator buddy[,option=value...]: powers of "
                          "two; an idle half "
                          "joins its other\nhalf:\n\n",
        [MS_POOL_CONTIGUOUS] =
            "\n--allocator contiguous[,option=value...]: DeepSpeed's: one "
            "buffer, no alignment;\nwhere no gap is large enough all moves "
            "down, which costs copies:\n\n"};
    for (uint32_t kind = 0; kind < MS_POOL_N_TYPES; kind++) {
        if (heads[kind] != NULL)
            ms_textlines_prose(heads[kind], text);
        for (uint32_t i = 0; i < ms_poolconf_n_rows; i++)
            if (ms_poolconf_rows[i].kind == kind)
                put_option(text, ms_poolconf_rows[i].name,
                           ms_poolconf_rows[i].values,
                           ms_poolconf_rows[i].help);
    }
    ms_textlines_prose(
        "\nIn these three all streams share what is idle, and a block that "
        "other streams\nuse is free when they are past it.  e and x of a trace "
        "do nothing to them, conf\nand version are not theirs, m bounds what "
        "they ask the device for from then on;\ninactive_split is 0.\n",
        text);
}

void ms_help_traces_write(ms_text *text)
{
    ms_textlines_prose(form, text);
    ms_textlines_prose("--allocator torch[,option=value...]; options of "
                       "memsim:\n\n",
                       text);
    put_option(
        text, "version", "V",
        "rules of PyTorch 1.13, 2.1, 2.4 (up to 2.6) or 2.11 (default; of a "
        "simulated step: as --framework says)");
    put_option(
        text, "va", "POLICY",
        "the device's addresses: bump (up, never again; default), down (of "
        "a simulated step), firstfit");
    put_option(text, "fraction", "F", "set_per_process_memory_fraction(F)");
    ms_textlines_prose("\nof PYTORCH_CUDA_ALLOC_CONF, over those of the "
                       "trace:\n\n",
                       text);
    for (uint32_t i = 0; i < ms_torchconf_n_rows; i++)
        put_conf(&ms_torchconf_rows[i], text);
    put_heaps(text);
    put_arena(text);
}

/* ---- measurements -------------------------------------------------------- */

static const char measured_form[] =
    "memsim calibrate reads one of three forms, and with -o writes a file for "
    "--device.\n\n"
    "A trace of torch.profiler, as export_chrome_trace or tensorboard_trace_"
    "handler\nwrite it, also compressed:\n\n"
    "  profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],\n"
    "          record_shapes=True)\n\n"
    "A step or a few suffice.  The kernels of a call of an op count together;\n"
    "its shapes are those of the op that launched them.  Of products the trace "
    "tells\nstep_share, and from 16 shapes on the parts of a product "
    "(product_...).\n\n"
    "A table of SimuMax (configs/system/*.json): of matmul, group_matmul, "
    "sdp_fwd and\nsdp_bwd the share of the peak by shape.\n\n"
    "A CSV with a line of headings, in any order; # begins a comment:\n\n"
    "  op          gemm, one of the words below, or an op of PyTorch "
    "(aten::gelu)\n"
    "  m n k       of a product, with dtype bf16, fp16, tf32 or fp32; batch "
    "(1)\n"
    "  heads queries keys channels causal pass\n"
    "              of attention: keys (as queries), causal 1 (0), pass forward "
    "or\n              backward\n"
    "  bytes       of what moves bytes: read and written, or sent\n"
    "  ranks       of an all-reduce, with bytes\n"
    "  us ms ns tflops gbps\n"
    "              the time, or the rate that stands for it (one of them)\n\n";

void ms_help_traces_measured(ms_text *text)
{
    ms_text words = {.arena = text->arena};
    for (uint32_t i = 0; i < MS_N_RATE_KINDS; i++)
        if (i != MS_RATE_PRODUCT && i != MS_RATE_FP32_PRODUCT)
            ms_text_add(&words, "%s%s", words.length > 0 ? ", " : "",
                        ms_measured_words[i]);
    ms_textlines_prose(measured_form, text);
    ms_screen_fill(text, 8, "Words:", words.bytes != NULL ? words.bytes : "");
    ms_textlines_prose(
        "\nEvery other shape of a kind is kept back: rates are fitted on the "
        "first, and the\nreport has the errors of both, before and after.  "
        "What was not measured stays.\n",
        text);
}
