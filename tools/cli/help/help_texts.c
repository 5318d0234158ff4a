/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Help in prose: files, units, exit statuses, the keys of run --json. */

#include "graphs/model.h"
#include "tools/cli/alloc/alloc_arena.h"
#include "tools/cli/alloc/alloc_keys.h"
#include "tools/cli/calibrate/calibrate_keys.h"
#include "tools/cli/check/gate.h"
#include "tools/cli/compare/compare_keys.h"
#include "tools/cli/diff/diff.h"
#include "tools/cli/explain/explain_keys.h"
#include "tools/cli/fit/fit_keys.h"
#include "tools/cli/help/help.h"
#include "tools/cli/inspect/inspect.h"
#include "tools/job/settings_table.h"
#include "tools/results/keys/keys.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"

#define KEY_INDENT 8u

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
    ms_textlines_lines(lines, text);
}

static void groups_of_layers(ms_text *text)
{
    static const char *const lines[] = {
        "Numbers of a layer list may be expressions (+ - * / // %, "
        "comparisons, a ? b : c,",
        "min, max, floor; 7 / 2 is 3.5, 7 // 2 is 3) of the numbers in "
        "\"config\", which",
        "--set model.NAME=N changes, and of what groups of layers bind; names "
        "may hold them",
        "in braces:",
        "",
        "    {\"memsim\": 1, \"name\": \"small\", \"input\": {\"shape\": "
        "[3, 32, 32]},",
        "     \"config\": {\"classes\": 10},",
        "     \"layers\": [",
        "       {\"each\": {\"width\": [64, 128], \"blocks\": [2, 3]},",
        "        \"index\": \"s\", \"name\": \"stage{s + 1}\", \"layers\": [",
        "         {\"repeat\": \"blocks\", \"index\": \"i\", \"name\": "
        "\"block\",",
        "          \"with\": {\"stride\": \"s > 0 && i == 0 ? 2 : 1\"}, "
        "\"layers\": [",
        "           {\"template\": \"conv\", \"name\": \"first\"},",
        "           {\"type\": \"conv2d\", \"name\": \"shortcut\", \"out\": "
        "\"width\", \"kernel\": 1,",
        "            \"stride\": \"stride\", \"inputs\": [\"input\"], "
        "\"when\": \"i == 0\"},",
        "           {\"type\": \"add\", \"inputs\": [\"first\", "
        "\"shortcut\"]}]}]},",
        "       {\"type\": \"adaptive_avg_pool2d\"}, {\"type\": "
        "\"flatten\"},",
        "       {\"type\": \"linear\", \"out\": \"classes\"}, {\"type\": "
        "\"cross_entropy\"}],",
        "     \"templates\": {\"conv\": [",
        "       {\"type\": \"conv2d\", \"out\": \"width\", \"kernel\": 3, "
        "\"padding\": 1,",
        "        \"stride\": \"stride\"},",
        "       {\"type\": \"batch_norm\"}, {\"type\": \"relu\", "
        "\"inplace\": true}]}}",
        "",
        NULL};
    ms_textlines_lines(lines, text);
}

static void rules_of_groups(ms_text *text)
{
    static const char *const lines[] = {
        "A group has \"layers\" or names a \"template\"; it reads the layer "
        "before it or its one",
        "of \"inputs\", which its layers call \"input\".  \"repeat\": so many "
        "blocks, NAME.0,",
        "NAME.1, ...; \"each\": once for the values of each list; \"index\": a "
        "variable that",
        "counts; \"with\": other variables.  \"when\": a layer or group that "
        "is "
        "left out where it",
        "is 0; its name then stands for what it would have read, and another "
        "may have it.",
        "A group's name stands for its last output, NAME.input for what it "
        "reads, NAME.*",
        "for the outputs of its repetitions so far, as DenseNet's \"cat\" "
        "needs them.  What",
        "a block, or a group that does not repeat, reads lives until its end, "
        "as the",
        "argument of a function.  \"block\": false on a repeat leaves the "
        "blocks to the groups",
        "in it, \"block\": true makes one of any group.",
        "",
        NULL};
    ms_textlines_lines(lines, text);
}

static void measured_chain(ms_text *text)
{
    static const char *const lines[] = {
        "A model may be a chain of stages that was measured (sizes in bytes, "
        "the "
        "last is the loss;",
        "saved_bytes: all that backward needs, the output included; "
        "backward_workspace_bytes:",
        "with the gradient of the stage's input; the workspaces may be left "
        "out),",
        "",
        "    {\"memsim\": 1, \"name\": \"mine\", \"family\": \"chain\", "
        "\"input_bytes\": 700,",
        "     \"stages\": [",
        "       {\"name\": \"conv\", \"forward_ns\": 10, \"backward_ns\": 8, "
        "\"output_bytes\": 800,",
        "        \"saved_bytes\": 900, \"forward_workspace_bytes\": 400,",
        "        \"backward_workspace_bytes\": 700},",
        "       {\"name\": \"loss\", \"forward_ns\": 0, \"backward_ns\": 2, "
        "\"output_bytes\": 0,",
        "        \"saved_bytes\": 0, \"backward_workspace_bytes\": 800}]}",
        "",
        NULL};
    ms_textlines_lines(lines, text);
}

static void measured_nodes(ms_text *text)
{
    static const char *const lines[] = {
        "Or a DAG of nodes that were measured, gradients among them: each can "
        "be made again,",
        "where all that it reads is there, with its output beside what is "
        "there,",
        "",
        "    {\"memsim\": 1, \"name\": \"mine\", \"family\": \"dag\", "
        "\"nodes\": [",
        "       {\"id\": \"f0\", \"cost_ns\": 10, \"bytes\": 800},",
        "       {\"id\": \"loss\", \"cost_ns\": 1, \"bytes\": 4, "
        "\"deps\": [\"f0\"]},",
        "       {\"id\": \"b0\", \"cost_ns\": 20, \"bytes\": 800, "
        "\"deps\": [\"loss\", \"f0\"],",
        "        \"backward\": true}]}",
        "",
        "or the log of a run that DTR's prototype has written "
        "(uwsampl/dtr-prototype, lines of",
        "JSON, gzip too).",
        "",
        NULL};
    ms_textlines_lines(lines, text);
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
        "a built-in model with other numbers of its \"config\",",
        "",
        "    {\"memsim\": 1, \"name\": \"wider\", \"like\": \"llama-3-8b\",",
        "     \"config\": {\"hidden\": 5120, \"heads\": 40}}",
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
    ms_textlines_lines(lines, text);
    groups_of_layers(text);
    rules_of_groups(text);
    measured_chain(text);
    measured_nodes(text);
    op_graphs(text);
    ms_textlines_lines(topics, text);
}

void ms_help_texts_huggingface(ms_text *text)
{
    static const char *const lines[] = {
        "MODEL may be a config.json of Hugging Face, or the folder that holds "
        "it:",
        "",
        "    memsim run Llama-3.1-8B/",
        "    memsim inspect config.json --set model.num_hidden_layers=4",
        "",
        "Sizes are the file's; where a key is absent, the default of its "
        "class, as below.",
        "Keys that change neither memory nor time are passed over.  --set "
        "model.KEY=VALUE",
        "changes a key for one run (null is a value).  \"architectures\" "
        "names the head;",
        "--set model.head=... chooses another: lm, mlm, pretraining (language "
        "models),",
        "classes:N (of a sequence), tokens:N (a label each), answers (start "
        "and end),",
        "choice (a score for each of the batch), next, pooler, encoder, none "
        "(their mean",
        "is the loss).  --set model.mtp=N trains N layers of multi-token "
        "prediction, too,",
        "as Megatron-LM does with --mtp-num-layers; default 0, whatever the "
        "file has.",
        "Ops are those of transformers' modelling code, one by one: norms in "
        "fp32, silu",
        "and its product apart.  --kernels eager is its eager attention, and "
        "experts are",
        "looped over; flash: flash_attention_2; efficient: sdpa.  BLOOM, MPT "
        "and T5 have",
        "eager attention only; sdpa knows neither soft caps nor sinks.",
        "--set model.loss_shift=logits copies the logits, as transformers "
        "before 4.46 did.",
        "Experts: model.experts_run=grouped|loop|each (each: Megatron-LM "
        "without grouped",
        "products); model.imbalance=1.3 gives the busiest rank that many times "
        "the rows of",
        "an even routing.",
        "Headers of model.safetensors (or the files of its index) beside "
        "config.json are",
        "held against it.  memsim inspect MODEL --dump model writes the "
        "model as layers,",
        "to edit.",
        "",
        "A model_type that is not here: --page FILE, or TYPE.json in the "
        "folder "
        "that",
        "MEMSIM_PAGES names, says what its keys mean and which layers it has "
        "(graphs/",
        "README.md, 6).",
        "",
        "model_type, its heads, keys with class defaults, other names of keys:",
        NULL};
    ms_textlines_lines(lines, text);
    ms_huggingface_describe(text);
}

/* Lists the keys that a grid can vary. */
static void put_keys(ms_text *text)
{
    ms_text keys = {.arena = text->arena};
    const char *between = "";
    for (uint32_t i = 0; i < ms_settings_table_n; i++) {
        if (!ms_settings_table[i].in_grid)
            continue;
        ms_text_add(&keys, "%s%s", between, ms_settings_table[i].key);
        between = ", ";
    }
    ms_text_add(&keys, "; a policy's name, whose values are its arguments or "
                       "none (tensor=1,2,4); batch, sequence and the other "
                       "settings of memsim help training; graph.KEY; "
                       "model.KEY.");
    text->failed |= keys.failed;
    if (!keys.failed)
        ms_screen_fill(text, KEY_INDENT, "KEY", keys.bytes);
}

void ms_help_texts_grid(ms_text *text)
{
    static const char *const head[] = {
        "memsim sweep MODEL --grid KEY=LIST [--grid KEY=LIST]... simulates "
        "each point of",
        "the product; the last key varies fastest.", "", NULL};
    static const char *const lines[] = {
        "        It takes the place of the option of that name, but policies",
        "        join those of -p.",
        "LIST    VALUE,VALUE,... or, where values have commas, "
        "VALUE;VALUE;... (one with",
        "        commas: VALUE;): policies, allocators, and always lengths",
        "VALUE   a word, a number, or a range of whole numbers (of sizes for "
        "memory):",
        "        A..B      A, A+1, ... up to B",
        "        A..B+S    A, A+S, A+2S, ... not beyond B",
        "        A..B*F    A, A*F, A*F*F, ... not beyond B",
        "",
        "--filter CONDITION, repeated, keeps the points for which all hold.  "
        "A condition",
        "is SIDE<=SIDE (or <, >, >=, =, !=), a side a number, a key or a "
        "product of",
        "these; KEY=WORD, KEY!=WORD, or KEY~PART (the value contains it).",
        "",
        "--shard I/N simulates the I-th of N parts; the rows of all parts, "
        "one behind the",
        "other, are the rows of the whole.",
        "",
        "A row has point (from 1, of the product, filtered ones counted), the "
        "keys with",
        "their values (memory in bytes), policy, status, message and numbers; "
        "a point",
        "that cannot be simulated is a row with status refused or infeasible, "
        "a message",
        "and no numbers.  Rows come in the order of the points and are the "
        "same whatever",
        "--jobs is.  The exit status is 0 also where points do not fit.",
        "",
        "A point goes through no pool, which takes a fraction of the time: "
        "fits_exact is",
        "of bare lifetimes, and fits, as memsim run says it, is empty.  "
        "--allocator torch",
        "fills it.",
        "",
        "    memsim sweep llama-2-7b -o out.csv \\",
        "        --grid 'policy=none;checkpoint:sqrt;zero:3,dp=8' \\",
        "        --grid 'batch=1..64*2' --grid sequence=1024,2048,4096 \\",
        "        --filter 'batch*sequence<=65536'",
        "    memsim sweep gpt2 --grid "
        "'allocator=torch;torch,max_split_size_mb:128' \\",
        "        --grid 'lengths=512,1024,768;1024' --grid steps=6",
        "",
        "With -o FILE rows are added to FILE as they come; after an "
        "interruption the same",
        "command with --resume goes on behind the last whole row.",
        NULL};
    ms_textlines_lines(head, text);
    put_keys(text);
    ms_textlines_lines(lines, text);
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
        "_bytes and _ns.",
        "",
        "FLOP are those of all ops, a multiply-add counting as two.  MAC are "
        "the",
        "multiply-adds of matrix products, convolutions and attention alone: "
        "biases, "
        "norms,",
        "activations and poolings have none.  Both are per micro-batch; "
        "backward of a",
        "product is two of them, one where its input or weight needs no "
        "gradient.",
        "",
        "Parameters are elements of trained and frozen weights, without "
        "buffers.  One that",
        "layers share counts once, at the first of them: a head tied to the "
        "embedding adds",
        "none, and without the head there are as many.  Active is what one "
        "token meets: of",
        "experts those that it is sent to and those that all share, and all "
        "of the rest.",
        "Saved is what a layer's forward keeps for its backward.",
        NULL};
    ms_textlines_lines(lines, text);
}

const struct ms_help_exit ms_help_texts_exits[] = {
    {0, "done; with --check: it fits"},
    {1, "with --check: it does not fit"},
    {2, "usage: unknown option, command, policy, device or setting"},
    {3, "bad input: a model, program, result or trace file, a plugin"},
    {4, "system: a file cannot be read or written, out of memory"},
    {5, "gnuplot is missing or failed; data outputs are written"},
    {6, "no plan satisfies the request, or none was found"},
    {130, "interrupted (143: terminated)"},
};
const uint32_t ms_help_texts_n_exits =
    sizeof ms_help_texts_exits / sizeof ms_help_texts_exits[0];

void ms_help_texts_exit(ms_text *text)
{
    for (uint32_t i = 0; i < ms_help_texts_n_exits; i++)
        ms_text_add(text, "  %3d  %s\n", ms_help_texts_exits[i].status,
                    ms_help_texts_exits[i].meaning);
}

void ms_help_texts_json(ms_text *text)
{
    static const struct {
        const char *heading;
        const ms_keys *keys;
    } parts[] = {
        {"memsim run MODEL --json prints one object:", &ms_keys_run},
        {"memsim explain MODEL --json, beside schema_version, memsim, model "
         "and policy:",
         &ms_explain_keys},
        {"memsim compare --json, beside schema_version, memsim and model:",
         &ms_compare_keys},
        {"memsim compare --csv, a row per variant:", &ms_compare_keys_line},
        {"memsim sweep MODEL --json, an object per line (CSV: the columns):",
         &ms_keys_row},
        {"memsim fit MODEL --json, beside schema_version, memsim, model, "
         "device and\nsettings:",
         &ms_fit_keys},
        {"memsim inspect MODEL --json, beside schema_version, memsim and "
         "model:",
         &ms_inspect_keys},
        {"memsim alloc TRACE --allocator A --json prints one object:",
         &ms_alloc_keys},
        {"Of several traces it has:", &ms_alloc_keys_traces},
        {"With --allocator arena it has:", &ms_alloc_plans_keys},
        {"memsim alloc TRACE --csv, a row per operation:", &ms_alloc_keys_line},
        {"With --allocator arena, a row per buffer:", &ms_alloc_plans_line},
        {"memsim calibrate TRACE --json prints one object:",
         &ms_calibrate_keys},
        {"memsim diff A B --json prints one object:", &ms_diff_keys},
        {"memsim check CASES --json prints one object:", &ms_gate_keys},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        ms_text_add(text, "%s%s\n\n", i > 0 ? "\n" : "", parts[i].heading);
        ms_keys_help(parts[i].keys, text);
    }
    ms_textlines_prose("\nA key that does not apply is null.  memsim schema "
                       "prints all of them as a\nJSON Schema.\n",
                       text);
}
