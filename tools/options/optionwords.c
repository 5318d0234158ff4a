/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/options/optionwords.h"
#include "graphs/device.h"
#include "graphs/models/files/namewords.h"
#include "graphs/settings/settingwords.h"
#include "graphs/training.h"
#include "policies/common/policy.h"
#include "tools/cli/commands.h"
#include "tools/options/options.h"
#include "tools/terminal/screen.h"

#include <stdio.h>
#include <string.h>

/* ---- options ------------------------------------------------------------- */

static const ms_word options[] = {
    MS_WORD_MEANS(
        NULL,
        "batch-size|bs|per-device-train-batch-size|per-device-batch-size|"
        "local-batch-size",
        "batch"),
    MS_WORD_MEANS(NULL,
                  "global-batch-size|gbs|train-batch-size|total-batch-size",
                  "global-batch"),
    MS_WORD_MEANS(
        NULL,
        "seq|seq-len|seq-length|sequence-length|max-length|max-seq-len|max-"
        "seq-length|context-length",
        "sequence"),
    MS_WORD_MEANS(NULL, "dtype|torch-dtype", "precision"),
    MS_WORD_MEANS(NULL, "optim|optimiser", "optimizer"),
    MS_WORD_MEANS(NULL, "kernel", "kernels"),
    MS_WORD_MEANS(NULL, "torch|pytorch|torch-version", "framework"),
    MS_WORD_MEANS(NULL,
                  "gpu|num-gpus|n-gpus|nproc|nproc-per-node|world-size|nranks",
                  "gpus"),
    MS_WORD_MEANS(NULL, "dev|hardware|accelerator", "device"),
    MS_WORD_MEANS(NULL, "mem|vram|gpu-memory|gpu-mem|device-memory|capacity",
                  "memory"),
    MS_WORD_MEANS(NULL, "ram|cpu-memory|host-mem|host-ram", "host-memory"),
    MS_WORD_MEANS(NULL, "disk|ssd", "nvme"),
    MS_WORD_MEANS(NULL, "pool", "allocator"),
    MS_WORD_MEANS(NULL, "policies|strategy", "policy"),
    MS_WORD_MEANS(NULL, "out|out-file", "output"),
    MS_WORD_MEANS(NULL, "threads|workers|parallel", "jobs"),
    MS_WORD_MEANS(NULL, "colour", "color"),
    MS_WORD_MEANS(NULL, "silent", "quiet"),
    MS_WORD_ANSWER(NULL, "model|m|config|model-name|model-name-or-path",
                   "the model stands alone, e.g. memsim run gpt2"),
    MS_WORD_ANSWER(NULL, "help-all|usage|man",
                   "\"memsim help\" lists commands and topics"),
    MS_WORD_ANSWER(
        NULL, "verbose|debug|log",
        "--json prints all that is known; memsim explain says what is alive"),
    MS_WORD_INSTEAD(
        NULL,
        "micro-batch|micro-batches|micro-batch-size|num-micro-batches|gradient-"
        "accumulation-steps|gradient-accumulation|grad-accum|grad-accum-steps",
        "--batch 8 -p microbatch:4",
        "the batch is what a step sees, which micro-batches divide: here 4 "
        "of 2 samples"),
    MS_WORD_INSTEAD(
        NULL,
        "checkpoint|checkpointing|gradient-checkpointing|activation-"
        "checkpointing|activation-recomputation|recompute|recomputation|"
        "recompute-granularity|remat|rematerialization|ac|gc",
        "-p checkpoint:full",
        "or sqrt, selective and others (memsim help checkpoint)"),
    MS_WORD_INSTEAD(NULL, "recompute-activations", "-p checkpoint:selective",
                    "as Megatron's option"),
    MS_WORD_INSTEAD(NULL, "zero|zero-stage|stage|zero3", "-p zero:3 --gpus 8",
                    "sharding is a policy (memsim help zero)"),
    MS_WORD_INSTEAD(NULL, "zero1", "-p zero:1 --gpus 8",
                    "sharding is a policy"),
    MS_WORD_INSTEAD(NULL, "zero2", "-p zero:2 --gpus 8",
                    "sharding is a policy"),
    MS_WORD_INSTEAD(
        NULL, "deepspeed", "-p zero:3,impl=deepspeed --gpus 8",
        "or another stage; its configuration's keys are parameters of the "
        "policy (memsim help zero)"),
    MS_WORD_INSTEAD(NULL, "fsdp|fsdp2|full-shard", "-p fsdp --gpus 8",
                    "sharding is a policy (memsim help fsdp)"),
    MS_WORD_INSTEAD(NULL, "ddp|dp|data-parallel|dp-size|data-parallel-size",
                    "-p ddp --gpus 8",
                    "data parallelism is a policy; zero and fsdp share more"),
    MS_WORD_INSTEAD(NULL, "use-distributed-optimizer",
                    "-p zero:1,impl=megatron --gpus 8", "as Megatron's option"),
    MS_WORD_INSTEAD(
        NULL,
        "offload|offload-optimizer|cpu-offload|optimizer-offload|optimizer-"
        "cpu-offload",
        "-p offload:optimizer", "where states lie is a policy"),
    MS_WORD_INSTEAD(
        NULL, "zenflow",
        "--batch 4 -p microbatch:4+deepspeed:2,dp=8+offload:optimizer/"
        "gradients,topk_ratio=0.1,overlap_step=1",
        "a way to offload (memsim help offload)"),
    MS_WORD_INSTEAD(NULL, "offload-param|offload-params",
                    "-p offload:optimizer/params",
                    "where states lie is a policy"),
    MS_WORD_INSTEAD(
        NULL, "offload-activations|activation-offloading|save-on-cpu|swap",
        "-p swap:save_on_cpu", "or torchtune, te=N (memsim help swap)"),
    MS_WORD_INSTEAD(NULL, "hsdp|hybrid-shard", "-p fsdp:shard=4 --gpus 8",
                    "groups of 4 divide the states and hold copies"),
    MS_WORD_ANSWER(NULL, "oom|out-of-memory|cuda-out-of-memory|fits",
                   "memsim help oom says what helps; --check: the exit status "
                   "says whether it fits"),
    MS_WORD_INSTEAD(NULL, "lora|lora-rank|lora-r|peft|use-peft",
                    "--set lora.rank=16",
                    "adapters beside frozen weights (memsim help training)"),
    MS_WORD_INSTEAD(NULL, "qlora|load-in-4bit|4bit|nf4|quantization|quantize",
                    "--set lora.rank=16 --set lora.base=nf4",
                    "adapters beside weights in 4 bits"),
    MS_WORD_INSTEAD(NULL, "load-in-8bit|int8",
                    "--set lora.rank=16 --set lora.base=int8",
                    "adapters beside weights in 8 bits"),
    MS_WORD_INSTEAD(NULL, "8bit|8bit-adam|adam-8bit|adamw-8bit",
                    "--optimizer adamw-8bit", "bitsandbytes'"),
    MS_WORD_INSTEAD(NULL, "adam|adamw|sgd|lion|muon|adafactor",
                    "--optimizer adamw", "optimizers are words of --optimizer"),
    MS_WORD_INSTEAD(NULL, "fused|fused-optimizer|fused-adam|fused-adamw",
                    "--set training.optimizer_impl=fused",
                    "one kernel for all parameters"),
    MS_WORD_INSTEAD(
        NULL, "bf16|bfloat16", "--precision bf16-mixed",
        "16-bit weights with fp32 masters; autocast-bf16: torch.autocast"),
    MS_WORD_INSTEAD(
        NULL, "fp16|float16|half", "--precision fp16-mixed",
        "16-bit weights with fp32 masters; autocast-fp16: torch.autocast"),
    MS_WORD_INSTEAD(
        NULL, "amp|autocast|mixed-precision|mixed", "--precision autocast-bf16",
        "torch.autocast; bf16-mixed: 16-bit weights with fp32 masters"),
    MS_WORD_INSTEAD(NULL, "fp32|float32", "--precision fp32",
                    "a word of --precision"),
    MS_WORD_INSTEAD(NULL, "tf32", "--precision tf32", "a word of --precision"),
    MS_WORD_INSTEAD(NULL, "fp8", "--precision fp8", "a word of --precision"),
    MS_WORD_INSTEAD(NULL,
                    "flash|flash-attn|flash-attention|use-flash-attn|attn-"
                    "implementation|attention",
                    "--kernels flash", "or eager, sdpa (memsim help training)"),
    MS_WORD_INSTEAD(NULL, "liger|use-liger-kernel", "--kernels fused",
                    "Liger's norms, gates, rotation and loss"),
    MS_WORD_INSTEAD(
        NULL, "clip-norm|clip-grad|max-grad-norm|grad-clip|gradient-clipping",
        "--set training.clip_norm=1", "a setting (memsim help training)"),
    MS_WORD_INSTEAD(NULL, "inference|eval|no-grad|forward-only",
                    "--set training.mode=inference",
                    "forward only, nothing is saved"),
    MS_WORD_INSTEAD(NULL, "cpu", "--set training.device=cpu", "a setting"),
    MS_WORD_INSTEAD(NULL, "expandable-segments",
                    "--allocator torch,expandable_segments:True",
                    "an option of the pool"),
    MS_WORD_INSTEAD(NULL, "layers|num-layers|n-layer", "--set model.layers=2",
                    "numbers of the model are settings"),
    MS_WORD_INSTEAD(NULL, "hidden|hidden-size|d-model|n-embd",
                    "--set model.hidden=768",
                    "numbers of the model are settings"),
    MS_WORD_INSTEAD(NULL, "format|csv-file", "--csv memory.csv",
                    "or --json, --plot FILE.svg, --trace FILE"),
    MS_WORD_INSTEAD(NULL, "figure-file|fig|svg|png|image", "--plot memsim.svg",
                    "the name's ending says the format"),
    MS_WORD_INSTEAD(NULL, "profile|perfetto|chrome-trace", "--trace trace.json",
                    "streams and memory, for Perfetto"),
    MS_WORD_INSTEAD(NULL, "overlap-grad-reduce",
                    "-p zero:1,dp=8,impl=megatron,overlap_grad_reduce=1",
                    "Megatron's gradients are reduced beside backward"),
    MS_WORD_INSTEAD(NULL, "overlap-param-gather",
                    "-p zero:1,dp=8,impl=megatron,overlap_param_gather=1",
                    "updated parameters are gathered beside the next forward"),
    MS_WORD_INSTEAD(NULL, "tp-plan", "-p tensor:4,plan=hf",
                    "a policy: Hugging Face's plan of ranks that split layers"),
    MS_WORD_INSTEAD(
        NULL,
        "tensor-parallel*|tensor-model-parallel-size|tp|tpsize|sequence-"
        "parallel*|sp",
        "-p tensor:4,sp", "a policy: ranks that split each layer"),
    MS_WORD_INSTEAD(NULL, "pipeline-model-parallel-layout",
                    "-p pipeline:4,layers=2/1/1/1",
                    "a policy: layers of each stage; or the layout, in quotes"),
    MS_WORD_INSTEAD(NULL,
                    "decoder-first-pipeline-num-layers|decoder-last-pipeline-"
                    "num-layers",
                    "-p pipeline:4,first=1,last=2",
                    "a policy: layers of the first and the last rank"),
    MS_WORD_INSTEAD(NULL,
                    "account-for-embedding-in-pipeline-split|account-for-loss-"
                    "in-pipeline-split",
                    "-p pipeline:7,account=embedding/loss",
                    "a policy: what counts as a layer"),
    MS_WORD_INSTEAD(NULL,
                    "pipeline-parallel*|pipeline-model-parallel-size|pp|ppsize|"
                    "pipeline",
                    "-p pipeline:4", "a policy: ranks that share the layers"),
    MS_WORD_INSTEAD(NULL, "enable-optimizer-post-validation",
                    "-p pipeline:4,schedule=zb-h2,optimizer=postvalidate --set "
                    "training.clip_norm=1",
                    "a policy: stages that update before all norms are known"),
    MS_WORD_INSTEAD(NULL, "tp-comm-overlap*",
                    "--kernels megatron -p tensor:4,sp,overlap",
                    "exchanges beside products, in userbuffers"),
    MS_WORD_INSTEAD(NULL,
                    "parallelism.enable-async-tensor-parallel|enable-async-"
                    "tensor-parallel|async-tp",
                    "-p tensor:4,sp,overlap",
                    "exchanges beside products, in symmetric memory"),
    MS_WORD_INSTEAD(NULL, "use-tp-pp-dp-mapping",
                    "-p tensor:4,order=tp-cp-ep-pp-dp",
                    "of a policy: who are next to each other, first"),
    MS_WORD_INSTEAD(NULL, "context-parallel*|cp", "-p context:4",
                    "a policy: ranks that divide the sequence"),
    MS_WORD_INSTEAD(NULL, "expert-parallel*|expert-model-parallel-size|ep",
                    "-p expert:8", "ranks divide the experts of a layer"),
    MS_WORD_INSTEAD(NULL, "expert-tensor-parallel-size|etp",
                    "-p tensor:2,sp+expert:4,etp=1", "ranks split each expert"),
    MS_WORD_INSTEAD(NULL, "compile|torch-compile|torch.compile",
                    "--set launch=compiled",
                    "launches of compiled code; --kernels fused has one kernel "
                    "each for norms, gates, rotation and loss"),
    MS_WORD_INSTEAD(NULL, "cuda-graph*", "--set launch=graph",
                    "forward and backward are recorded"),
    MS_WORD_ANSWER(
        NULL, "nodes|n-nodes",
        "say all GPUs, e.g. --gpus 16; the device says how many a node has"),
    MS_WORD_ANSWER(
        NULL, "lr|learning-rate|epochs|num-epochs|seed|warmup*|lora-alpha",
        "it changes neither memory nor time of a step: leave it out"),
};
const ms_words ms_optionwords_options = {
    .title = "Options", .rows = options, .n = sizeof options / sizeof *options};

/* Letters of other programs. None of them is a letter of ours. */
static const ms_word letters[] = {
    MS_WORD_INSTEAD(NULL, "b", "--batch 4", "samples per step"),
    MS_WORD_INSTEAD(NULL, "s|l", "--sequence 1024", "tokens per sample"),
    MS_WORD_INSTEAD(NULL, "d", "--device h100",
                    "memsim help devices lists them"),
    MS_WORD_INSTEAD(NULL, "g|n", "--gpus 8 -p ddp", "ranks of the job"),
    MS_WORD_INSTEAD(NULL, "m", "--memory 80GiB",
                    "the model itself stands alone"),
    MS_WORD_ANSWER(NULL, "v|V",
                   "write memsim --version; memsim explain tells more"),
};
const ms_words ms_optionwords_letters = {
    .title = "Letters", .rows = letters, .n = sizeof letters / sizeof *letters};

/* ---- commands ------------------------------------------------------------ */

static const ms_word commands[] = {
    MS_WORD_ANSWER(
        NULL, "simulate|sim|estimate|predict|train|step|peak|plot-run|memory",
        "write memsim run MODEL"),
    MS_WORD_ANSWER(NULL, "search|optimize|tune|recommend|find|max|max-batch",
                   "write memsim fit MODEL"),
    MS_WORD_ANSWER(NULL,
                   "info|show|summary|params|parameters|layers|dump|describe",
                   "write memsim inspect MODEL"),
    MS_WORD_ANSWER(NULL, "why|advise|advice|analyze|analyse",
                   "write memsim explain MODEL"),
    MS_WORD_ANSWER(NULL, "versus|vs", "write memsim compare MODEL -p P1 -p P2"),
    MS_WORD_ANSWER(NULL, "grid|scan|bench|benchmark",
                   "write memsim sweep MODEL --grid ..."),
    MS_WORD_ANSWER(NULL, "figure|draw|graph",
                   "write memsim plot RESULT -o figure.svg"),
    MS_WORD_ANSWER(NULL, "replay|snapshot|trace", "write memsim alloc TRACE"),
    MS_WORD_ANSWER(NULL, "list|ls|models|model", "write memsim help models"),
    MS_WORD_ANSWER(NULL, "devices|gpus|hardware", "write memsim help devices"),
    MS_WORD_ANSWER(NULL, "policies|policy", "write memsim help policies"),
    MS_WORD_ANSWER(NULL, "version", "write memsim --version"),
    MS_WORD_ANSWER(NULL, "usage|man|manual", "write memsim help"),
};
const ms_words ms_optionwords_commands = {.title = "Commands",
                                          .rows = commands,
                                          .n = sizeof commands /
                                               sizeof *commands};

/* ---- finding ------------------------------------------------------------- */

static const ms_option *find_option(uint16_t command, const char *name,
                                    size_t length)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++) {
        const ms_option *row = &ms_options_table[i];
        if (ms_optionuses_of(row, command) != NULL &&
            ms_words_same(row->name, strlen(row->name), name, length))
            return row;
    }
    return NULL;
}

const ms_option *ms_optionwords_find(uint16_t command, const char *name,
                                     size_t length, const ms_word **answered)
{
    const ms_option *option = find_option(command, name, length);
    const ms_word *row =
        ms_words_find(&ms_optionwords_options, NULL, name, length);
    *answered = row != NULL && row->means == NULL ? row : NULL;
    if (option == NULL && row != NULL && row->means != NULL)
        option = find_option(command, row->means, strlen(row->means));
    return option;
}

const char *ms_optionwords_key(const char *key)
{
    const ms_word *row =
        ms_words_find(&ms_optionwords_options, NULL, key, strlen(key));
    return row != NULL && row->means != NULL ? row->means : key;
}

/* A hint for "KEY=VALUE" without an option before it. */
static void hint_setting(uint16_t command, const char *word, size_t length,
                         char *hint, size_t size)
{
    const ms_word *answered;
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)length, word);
    const ms_option *option =
        ms_optionwords_find(command, key, length, &answered);
    bool is_model = strncmp(key, "model.", 6) == 0;
    if (option != NULL && option->takes == MS_TAKES_VALUE)
        snprintf(hint, size, "write --%s %s", option->name, word + length + 1);
    else if (is_model || ms_training_row(key) != MS_NONE)
        snprintf(hint, size, "write --set %s", word);
    else if (answered != NULL)
        ms_words_hint(answered, hint, size);
}

static bool is_policy(const char *word)
{
    size_t length = strcspn(word, ":");
    for (uint32_t i = 0; i < ms_registry_n(); i++)
        if (ms_words_same(ms_registry_row(i)->name,
                          strlen(ms_registry_row(i)->name), word, length))
            return true;
    return false;
}

void ms_optionwords_operand(uint16_t command, const char *word, char *hint,
                            size_t size)
{
    char unused[384];
    size_t length = strcspn(word, "=");
    *hint = '\0';
    if (strlen(word) > 200)
        return;
    if (is_policy(word))
        snprintf(hint, size, "write -p %s", word);
    else if (word[length] == '=' && length > 0 && length < 60)
        hint_setting(command, word, length, hint, size);
    else if (ms_namewords_device(word, unused, sizeof unused) != MS_NONE)
        snprintf(hint, size, "write --device %s", word);
}

/* ---- memsim's own words ----------------------------------------------------
 */

static const char *own_value(uint32_t row, const char *value, ms_arena *arena)
{
    const ms_word *answered;
    char room[64];
    const char *own = ms_settingwords_value(&ms_training_fields[row], value,
                                            &answered, room, sizeof room);
    bool as_it_is = own == NULL || strcmp(own, value) == 0;
    return as_it_is ? value : ms_arena_text(arena, own, strlen(own));
}

/* KEY=VALUE with memsim's names for both. */
static const char *own_setting(const char *given, ms_arena *arena)
{
    char key[64];
    size_t length = strcspn(given, "=");
    if (length >= sizeof key || given[length] == '\0')
        return given;
    snprintf(key, sizeof key, "%.*s", (int)length, given);
    uint32_t row = ms_training_row(key);
    if (row == MS_NONE)
        return given;
    const char *dot = strchr(key, '.'), *name = ms_training_fields[row].name;
    const char *value = own_value(row, given + length + 1, arena);
    if (strcmp(dot != NULL ? dot + 1 : key, name) == 0 &&
        value == given + length + 1)
        return given;
    return value == NULL ? NULL
                         : ms_arena_format(arena, "%s.%s=%s",
                                           ms_training_group(row), name, value);
}

static const char *own_device(const char *value)
{
    char unused[384];
    if (strpbrk(value, "/.") != NULL)
        return value; /* it is a file */
    uint32_t row = ms_namewords_device(value, unused, sizeof unused);
    bool as_it_is = row == MS_NONE || strcmp(ms_devices[row].alias, value) == 0;
    return as_it_is ? value : ms_devices[row].name;
}

const char *ms_optionwords_own(const ms_option *option, const char *value,
                               ms_arena *arena)
{
    const char *own = value;
    ms_fault unused = {0};
    if (option->id == MS_OPTION_SETTING)
        own = own_value(ms_training_row(option->setting), value, arena);
    else if (option->id == MS_OPTION_SET)
        own = own_setting(value, arena);
    else if (option->id == MS_OPTION_DEVICE)
        own = own_device(value);
    else if (option->id == MS_OPTION_POLICY)
        (void)ms_policywords_plain(value, arena, &own, &unused);
    return own != NULL ? own : value;
}

/* ---- two names for one setting ------------------------------------------- */

/* What an option sets, and the user's word for it. */
typedef struct naming {
    const char *setting; /* NULL: an option that may be given again */
    const char *word;
    size_t length;
    bool is_ours;
} naming;

static naming name_of_key(const char *given)
{
    char key[64];
    size_t length = strcspn(given, "=");
    snprintf(key, sizeof key, "%.*s", (int)length, given);
    uint32_t row = length < sizeof key ? ms_training_row(key) : MS_NONE;
    if (row == MS_NONE)
        return (naming){0};
    const char *dot = memchr(given, '.', length);
    const char *word = dot == NULL ? given : dot + 1;
    const char *ours = ms_training_fields[row].name;
    length -= (size_t)(word - given);
    return (naming){.setting = ours,
                    .word = word,
                    .length = length,
                    .is_ours = ms_words_same(ours, strlen(ours), word, length)};
}

static naming name_of(const ms_arguments *arguments, uint32_t i)
{
    const ms_given *given = &arguments->given[i];
    const char *word = arguments->words != NULL ? arguments->words[i] : NULL;
    const ms_option *option = given->option;
    if (option->id == MS_OPTION_SET)
        return name_of_key(given->value);
    if (word == NULL)
        word = option->name;
    size_t length = strcspn(word, "=");
    bool is_training = option->setting != NULL;
    return (naming){.setting = is_training ? strchr(option->setting, '.') + 1
                                           : option->name,
                    .word = word,
                    .length = length,
                    .is_ours = ms_words_same(option->name, strlen(option->name),
                                             word, length)};
}

ms_err ms_optionwords_twice(const ms_arguments *arguments, ms_fault *fault)
{
    for (uint32_t i = 0; i < arguments->n_given; i++)
        for (uint32_t k = 0; k < i; k++) {
            naming a = name_of(arguments, k);
            naming b = name_of(arguments, i);
            if (a.setting == NULL || b.setting == NULL ||
                strcmp(a.setting, b.setting) != 0 || (a.is_ours && b.is_ours) ||
                ms_words_same(a.word, a.length, b.word, b.length))
                continue;
            return ms_fail(fault, MS_EUSAGE, NULL, "leave one of the two out",
                           "\"%.*s\" and \"%.*s\" are two names for %s",
                           (int)a.length, a.word, (int)b.length, b.word,
                           a.setting);
        }
    return MS_OK;
}

/* ---- help ---------------------------------------------------------------- */

const ms_words *const ms_optionwords_tables[MS_OPTIONWORDS_TABLES] = {
    &ms_optionwords_commands, &ms_optionwords_options, &ms_optionwords_letters,
    &ms_settingwords_keys,    &ms_settingwords_values, &ms_policywords_table,
    &ms_namewords_devices,    &ms_namewords_models};

#define INDENT 26u
#define WORDS 2u
#define ANSWER_INDENT 6u

/* "a, b": the words of a row, which may have patterns. */
static void put_words(const ms_word *row, ms_text *words)
{
    const char *word = row->words;
    for (size_t n; *word != '\0'; word += n + (word[n] == '|')) {
        n = strcspn(word, "|");
        ms_text_put(words, word, n);
        if (word[n] == '|')
            ms_text_add(words, ", ");
    }
}

/* "precision=bf16"; of a policy only what its pattern fixes. */
static void put_means(const ms_word *row, bool values, ms_text *label)
{
    const char *unless = strchr(row->means, '?');
    size_t length = strcspn(row->means, "?");
    ms_text_add(label, "  ");
    if (values && strchr(row->of, '|') == NULL)
        ms_text_add(label, "%s=", row->of);
    ms_text_put(label, row->means, length);
    if (unless != NULL)
        ms_text_add(label, "%s", unless + 1);
}

static void put_row(const ms_word *row, bool values, ms_text *text)
{
    char hint[384];
    ms_text label = {.arena = text->arena}, words = {.arena = text->arena};
    ms_text_add(&words, "%s", "");
    put_words(row, &words);
    if (row->means != NULL)
        put_means(row, values, &label);
    text->failed |= label.failed || words.failed;
    if (text->failed)
        return;
    if (row->means != NULL) {
        ms_screen_fill(text, INDENT, label.bytes, words.bytes);
        return;
    }
    ms_words_hint(row, hint, sizeof hint);
    ms_screen_fill(text, WORDS, "", words.bytes);
    ms_screen_fill(text, ANSWER_INDENT, "", hint);
}

void ms_optionwords_help(ms_text *text)
{
    ms_text_add(
        text,
        "Words of other programs that are understood, behind memsim's own "
        "word, and those\nthat are answered with what to type.  Capitals, -, "
        "_ and blanks count nothing:\nbatch-size is batch_size and BatchSize, "
        "too.  A * stands for any ending.\nPrinted and saved is memsim's own "
        "word.  Two names for one setting are refused.\n");
    for (uint32_t i = 0; i < MS_OPTIONWORDS_TABLES; i++) {
        const ms_words *table = ms_optionwords_tables[i];
        ms_text_add(text, "\n%s\n", table->title);
        for (uint32_t k = 0; k < table->n; k++)
            put_row(&table->rows[k], table == &ms_settingwords_values, text);
    }
}
