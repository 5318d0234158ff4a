/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/training.h"
#include "graphs/field.h"
#include "graphs/json/fields.h"
#include "graphs/kernels/kernels.h"
#include "graphs/layers/headloss.h"
#include "graphs/machines/hostcode.h"
#include "graphs/machines/overheads.h"
#include "graphs/settings/settingwords.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_SIZE (INT64_C(1) << 30)

/* In the order of ms_training's members; words in the order of their enums. */
const ms_field ms_training_fields[] = {
    {.name = "batch",
     .type = MS_INT,
     .fallback.i = 1,
     .low = 1,
     .high = MAX_SIZE,
     .help = "samples per step of each data-parallel rank"},
    {.name = "sequence",
     .type = MS_INT,
     .low = 0,
     .high = MAX_SIZE,
     .help = "tokens per sample; 0: the model's maximum, at most 2048"},
    {.name = "precision",
     .type = MS_WORD,
     .fallback.i = MS_BF16_MIXED,
     .words = "fp32|tf32|fp16-mixed|bf16-mixed|bf16|autocast-fp16|"
              "autocast-bf16|fp16|bf16-remainders|fp8|fp8-primary|mxfp8|"
              "mxfp8-torchao|msamp-o1|msamp-o2|msamp-o3",
     .help = "number formats of weights, gradients and optimizer state; "
             "autocast: fp32, with casts as torch.autocast makes them; "
             "memsim help precisions tells the bytes of each"},
    {.name = "optimizer",
     .type = MS_WORD,
     .fallback.i = MS_ADAMW,
     .words = "sgd|momentum|nesterov|adagrad|rmsprop|rmsprop-momentum|"
              "rmsprop-centered|rmsprop-centered-momentum|adam|adamw|"
              "adam-amsgrad|adamw-amsgrad|lamb|lion|adafactor|adafactor-hf|"
              "adafactor-hf-momentum|adam-8bit|adamw-8bit|lion-8bit|"
              "sophia|muon|shampoo|soap|galore|lomo|adamw-kahan|none",
     .help = "optimizer; adafactor: torch's, adafactor-hf: Transformers'; "
             "-8bit: bitsandbytes'"},
    {.name = "optimizer_impl",
     .type = MS_WORD,
     .words = "auto|loop|foreach|fused",
     .help = "how the optimizer walks the parameters; auto: fused for AdamW on "
             "CUDA, as trainers do, else as torch.optim does"},
    {.name = "kernels",
     .type = MS_WORD,
     .fallback.i = MS_FLASH,
     .words = MS_KERNELS_WORDS,
     .help = MS_KERNELS_HELP},
    {.name = "framework",
     .type = MS_WORD,
     .fallback.i = MS_TORCH_2,
     .words = "torch-1.13|torch-2.0|torch-2",
     .help = "whose rules and defaults; torch-2.0: 2.0 to 2.3"},
    {.name = "device",
     .type = MS_WORD,
     .words = "cuda|cpu",
     .help = "where the kernels run, where they differ"},
    {.name = "gradients",
     .type = MS_WORD,
     .words = "auto|fp32|main|weights",
     .help = "format of the gradients; auto: as the weights, with Megatron's "
             "kernels fp32 for bf16; main: as the weights, and the step casts "
             "them to fp32 gradients of the master copies (Megatron's fp16); "
             "weights: as the weights in Megatron's code, too, whose step "
             "casts them (grad_reduce_in_bf16) unless it is bf16-remainders'"},
    {.name = "hold_output",
     .type = MS_WORD,
     .words = "backward|step|none",
     .help = "until when the script holds the model's output and loss"},
    {.name = "memory_format",
     .type = MS_WORD,
     .words = "contiguous|channels_last",
     .is_extra = true,
     .help = "how images lie; contiguous: channels before rows, which cuDNN "
             "turns round for tensor cores and back; what saves and frees "
             "are is the same"},
    {.name = "zero_grad",
     .type = MS_WORD,
     .words = "none|keep",
     .help = "none: set_to_none=True, gradients end; keep: they are zeroed"},
    {.name = "step",
     .type = MS_WORD,
     .words = "steady|first",
     .help = "which step; the first creates the optimizer state"},
    {.name = "mode",
     .type = MS_WORD,
     .words = "train|inference",
     .help = "inference: forward only, nothing saved, no optimizer "
             "unless one is named"},
    {.name = "optimizer_in_backward",
     .type = MS_WORD,
     .words = "no|yes",
     .is_extra = true,
     .help = "yes: each parameter is updated as soon as its gradient is there, "
             "or the ranks' sum of it, which then ends; a bucket of ddp does "
             "not; lomo always does"},
    {.name = "clip_norm",
     .type = MS_FLOAT,
     .low = 0,
     .high = MAX_SIZE,
     .is_extra = true,
     .help = "norm that clip_grad_norm_ clips the gradients to, where they "
             "lie; 0: no clipping"},
    {.name = "weight_decay",
     .type = MS_WORD,
     .words = "auto|no|yes",
     .is_extra = true,
     .help = "yes: weights decay, which where it is added to the gradient "
             "(SGD, Adam, Adagrad, RMSprop) makes copies of gradients unless "
             "the update is fused; auto: the optimizer's default, AdamW does"},
    {.name = "optimizer_rank",
     .type = MS_INT,
     .fallback.i = 128,
     .low = 1,
     .high = 1 << 16,
     .is_extra = true,
     .help = "rank that galore projects gradients to"},
    {.name = "optimizer_block",
     .type = MS_INT,
     .low = 0,
     .high = 1 << 20,
     .is_extra = true,
     .help = "longest side of a preconditioner: shampoo cuts longer ones, soap "
             "leaves them out; 0: 1024 and 10000"},
    {.name = "optimizer_refresh",
     .type = MS_WORD,
     .words = "no|yes",
     .is_extra = true,
     .help = "yes: a step on which the optimizer finds its projections "
             "(galore), inverse roots (shampoo) or bases (soap) anew"},
    {.name = "attention_kernel",
     .type = MS_WORD,
     .words = MS_KERNELS_ATTENTION,
     .is_extra = true,
     .help = "sdpa: flash, efficient or op by op, as PyTorch chooses; flash3: "
             "FlashAttention 3, or cuDNN's of Hopper; auto: as "
             "training.kernels"},
    {.name = "norm_kernel",
     .type = MS_WORD,
     .words = MS_KERNELS_NORM,
     .is_extra = true,
     .help = "torch: one kernel; liger: one that overwrites gradients; auto: "
             "as training.kernels, where the layer's code has one"},
    {.name = "activation_kernel",
     .type = MS_WORD,
     .words = MS_KERNELS_PLAIN,
     .is_extra = true,
     .help = "of gates and GPT-2's GELU: ops, or one kernel that saves its "
             "inputs; auto: as training.kernels"},
    {.name = "rotary_kernel",
     .type = MS_WORD,
     .words = MS_KERNELS_PLAIN,
     .is_extra = true,
     .help = "of rotary positions: ops, or one kernel in place; auto: as "
             "training.kernels, where the layer's code has one"},
    {.name = "loss_kernel",
     .type = MS_WORD,
     .words = MS_HEADLOSS_WORDS,
     .is_extra = true,
     .help = "kernel of cross entropy, where the layer names none; auto: as "
             "training.kernels"},
    {.name = "mlp_tiles",
     .type = MS_INT,
     .low = -1,
     .high = INT64_C(1) << 20,
     .is_extra = true,
     .help = "pieces of the sequence in which MLPs run one after the other, "
             "and in backward again (DeepSpeed's TiledMLP): their input alone "
             "is saved; -1: as many as the sequence is longer than the model "
             "is wide; 0: they run whole"},
    {.name = "launch",
     .type = MS_WORD,
     .words = MS_HOSTCODE_WORDS,
     .is_extra = true,
     .help = "how ops reach the device: one by one from Python, or from code "
             "that torch.compile wrote (kernels stay those of eager mode); "
             "graph: forward and backward are recorded (CUDA graphs) and take "
             "the host no time, graph-step: the optimizer's step, too"},
    {.name = "retain_graph",
     .type = MS_WORD,
     .words = "no|yes",
     .is_extra = true,
     .help = "yes: backward(retain_graph=True), what was saved for backward "
             "lives to its end"},
    {.name = "cublas_workspace",
     .type = MS_INT,
     .fallback.i = -1,
     .low = -1,
     .high = INT64_C(1) << 40,
     .is_extra = true,
     .help = "bytes of the workspace that cuBLAS has per thread, in the "
             "allocator, or as CUBLAS_WORKSPACE_CONFIG says it, :4096:8; -1: "
             "the device's (Blackwell: PyTorch's until pull request 175344 of "
             "2026, :4096:8 behind it)"},
    {.name = "cudnn",
     .type = MS_WORD,
     .words = "auto|benchmark|none",
     .is_extra = true,
     .help = "workspaces of cuDNN's convolutions: those that "
             "cudnn.benchmark chooses, or none; auto: benchmark through "
             "--allocator torch"},
    {.name = "cuda_loading",
     .type = MS_WORD,
     .words = "lazy|eager",
     .is_extra = true,
     .help = "CUDA_MODULE_LOADING: eager loads all kernels with the context"},
    {.name = "cuda",
     .type = MS_WORD,
     .words = "device|11.3|11.7|dgx-station",
     .is_extra = true,
     .help = "the build whose context the process has: the device's, that of "
             "CUDA 11.3 or 11.7 (torch 1.10, 1.13), or of GPUMemNet's DGX "
             "Station"},
    {.name = "nccl_channels",
     .type = MS_INT,
     .low = 0,
     .high = 1024,
     .is_extra = true,
     .help = "at most so many channels per communicator (NCCL_MAX_NCHANNELS), "
             "which have buffers each; 0: the device's"},
    {.name = "nccl_buffsize",
     .type = MS_INT,
     .low = 0,
     .high = INT64_C(1) << 32,
     .is_extra = true,
     .help = "bytes of such a buffer (NCCL_BUFFSIZE); 0: 4 MiB"},
    {.name = "rank",
     .group = "lora",
     .type = MS_INT,
     .low = 0,
     .high = 1 << 16,
     .help = "rank of low-rank adapters beside the model's weights, which are "
             "frozen then; 0: none"},
    {.name = "targets",
     .group = "lora",
     .type = MS_WORD,
     .words = "qv|qkv|attention|mlp|all",
     .help = "linear layers with adapters: projections of attention, the "
             "others of blocks, or all but the head"},
    {.name = "dropout",
     .group = "lora",
     .type = MS_FLOAT,
     .low = 0,
     .high = 1,
     .help = "dropout of what adapters read"},
    {.name = "dtype",
     .group = "lora",
     .type = MS_WORD,
     .words = "weights|fp32",
     .help = "format of the adapters: as the weights (torchtune) or fp32 "
             "(peft)"},
    {.name = "base",
     .group = "lora",
     .type = MS_WORD,
     .words = "weights|nf4|int8|nf4-plain|int4",
     .help = "how frozen linear layers but the head are held: as the weights, "
             "in 4 bits (QLoRA, double quantisation; nf4-plain: without; int4: "
             "AWQ's) or 8; each product makes them anew"},
    {.name = "trains",
     .group = "lora",
     .type = MS_WORD,
     .words = "both|A|B",
     .help = "matrices of an adapter that are not frozen; B: LoRA-FA, whose "
             "saved inputs have the width of lora.rank"},
    {.name = "unknown_op",
     .group = "graph",
     .type = MS_WORD,
     .words = "refuse|conservative",
     .help = "an op of an op graph that has no rule; conservative: all its "
             "inputs and outputs are saved for backward, and each input gets "
             "a gradient of its own"},
    {.name = "recipe",
     .group = "fp8",
     .type = MS_WORD,
     .words = "auto|delayed|current|block|mxfp8",
     .is_extra = true,
     .help = "what has a scale of its own in fp8: a tensor (from the steps "
             "before, or its own), 128 elements, 32; auto: mxfp8 on Blackwell, "
             "else delayed"},
    {.name = "weights",
     .group = "fp8",
     .type = MS_WORD,
     .words = "auto|forward|kept|layer",
     .is_extra = true,
     .help = "how long fp8 copies of weights last: from forward to backward, "
             "always, one product; auto: layer where ranks share the weights, "
             "kept beside fp8-primary and with Megatron's kernels, else "
             "forward"},
    {.name = "blocks",
     .group = "frozen",
     .type = MS_INT,
     .low = 0,
     .high = 1 << 20,
     .is_extra = true,
     .help = "first blocks that are frozen, with what comes before them; 0: "
             "none"},
    {.name = "base",
     .group = "frozen",
     .type = MS_WORD,
     .words = "weights|nf4|int8|nf4-plain|int4",
     .is_extra = true,
     .help = "as lora.base, without adapters: of frozen blocks, or of all "
             "blocks where training.mode=inference"},
    {.name = "spec",
     .group = "megatron",
     .type = MS_WORD,
     .words = "te|local",
     .is_extra = true,
     .help = "te: layers of Transformer Engine, with its workspace; local: "
             "Megatron's own, whose scores pass through a buffer that stays"},
    {.name = "attention",
     .group = "megatron",
     .type = MS_WORD,
     .words = "auto|fused|flash|unfused",
     .is_extra = true,
     .help = "backend of Transformer Engine: cuDNN's, FlashAttention-2 (one "
             "more copy of the output is kept), or op by op; auto: flash "
             "before Hopper, else fused, but where deterministic fused on "
             "Hopper alone"},
    {.name = "loss",
     .group = "megatron",
     .type = MS_WORD,
     .words = "unfused|native|te",
     .is_extra = true,
     .help = "cross entropy: in place of the fp32 logits, compiled "
             "(cross_entropy_loss_fusion; the exponentials apart), or "
             "Transformer Engine's (in place of the logits)"},
    {.name = "wgrad",
     .group = "megatron",
     .type = MS_WORD,
     .words = "fused|apart|cached",
     .is_extra = true,
     .help = "products add weights' gradients to main_grad "
             "(gradient_accumulation_fusion), or autograd's hooks do; cached: "
             "fused, and what stands for gradients is kept, one tensor a shape "
             "(core 0.14, Transformer Engine 2.4)"},
    {.name = "mask",
     .group = "megatron",
     .type = MS_WORD,
     .words = "yes|no",
     .is_extra = true,
     .help = "the data loader makes a mask of sequence by sequence bytes "
             "(create_attention_mask_in_dataloader)"},
    {.name = "deterministic",
     .group = "megatron",
     .type = MS_WORD,
     .words = "no|yes",
     .is_extra = true,
     .help = "deterministic_mode: cuBLAS workspaces of 32 MiB "
             "(CUBLAS_WORKSPACE_CONFIG=:4096:8), no fused loss"},
};
const uint32_t ms_training_n_fields =
    sizeof ms_training_fields / sizeof *ms_training_fields;

static_assert(offsetof(ms_training, was_set) == sizeof ms_training_fields /
                                                    sizeof *ms_training_fields *
                                                    sizeof(int64_t),
              "a row of the table for each member of ms_training");

/* A member of ms_training holds the member of the union that the type of its
 * row uses; all are as long as int64_t. */
static ms_value value_at(const ms_training *training, uint32_t row)
{
    ms_value value = {.i = 0};
    memcpy(&value, (const char *)training + row * sizeof(int64_t),
           sizeof(int64_t));
    return value;
}

static void set_value(ms_training *training, uint32_t row, ms_value value)
{
    memcpy((char *)training + row * sizeof(int64_t), &value, sizeof(int64_t));
}

void ms_training_init(ms_training *training)
{
    *training = (ms_training){0};
    for (uint32_t row = 0; row < ms_training_n_fields; row++)
        set_value(training, row, ms_training_fields[row].fallback);
}

const char *ms_training_group(uint32_t row)
{
    const char *group = ms_training_fields[row].group;
    return group != NULL ? group : "training";
}

/* The rows of the group before the key's dot (*key moves behind it), else of
 * training. */
static ms_fields group_of(const char **key)
{
    const char *group = "training";
    size_t length = strcspn(*key, ".");
    uint32_t row = 0, from = 0, to;
    while (row < ms_training_n_fields &&
           (strncmp(ms_training_group(row), *key, length) != 0 ||
            strlen(ms_training_group(row)) != length))
        row++;
    if ((*key)[length] == '.' && row < ms_training_n_fields) {
        group = ms_training_group(row);
        *key += length + 1;
    }
    while (strcmp(ms_training_group(from), group) != 0)
        from++;
    for (to = from; to < ms_training_n_fields; to++)
        if (strcmp(ms_training_group(to), group) != 0)
            break;
    return (ms_fields){.rows = ms_training_fields + from, .n = to - from};
}

static uint32_t first_of(const ms_fields *keys)
{
    return (uint32_t)(keys->rows - ms_training_fields);
}

static const char *name_of(const ms_fields *keys)
{
    return ms_training_group(first_of(keys));
}

uint32_t ms_training_row(const char *key)
{
    const ms_fields keys = group_of(&key);
    uint32_t row = ms_fields_find(keys.rows, keys.n, key);
    size_t length = strlen(key);
    for (uint32_t i = 0; i < keys.n && row == MS_NONE; i++)
        if (ms_words_same(keys.rows[i].name, strlen(keys.rows[i].name), key,
                          length))
            row = i;
    if (row != MS_NONE)
        return first_of(&keys) + row;
    const ms_word *word = ms_settingwords_key(name_of(&keys), key);
    return word != NULL && word->means != NULL ? ms_training_row(word->means)
                                               : MS_NONE;
}

static ms_err read_workspace(const char *text, const char *where,
                             ms_value *value, ms_fault *fault)
{
    if (ms_overheads_read_workspace(text, &value->i))
        return MS_OK;
    return ms_fail(fault, MS_EUSAGE, where,
                   ":4096:2:16:8 are two of 4096 KiB and eight of 16 KiB",
                   "\"%s\" is no :KIB:COUNT, once or more, of at most 1 TiB",
                   text);
}

/* In the field's own word. */
static ms_err read_value(const ms_field *field, const char *value,
                         const char *where, ms_value *parsed, ms_fault *fault)
{
    const ms_word *answered;
    char room[64], hint[384];
    if (strcmp(field->name, "cublas_workspace") == 0 && *value == ':')
        return read_workspace(value, where, parsed, fault);
    const char *own =
        ms_settingwords_value(field, value, &answered, room, sizeof room);
    if (own != NULL)
        return ms_fields_from_text(own, where, field, NULL, parsed, fault);
    ms_words_hint(answered, hint, sizeof hint);
    return ms_fail(fault, MS_EUSAGE, where, hint, "\"%s\" cannot be \"%s\"",
                   field->name, value);
}

static ms_err fail_key(const ms_fields *keys, const char *key,
                       const char *where, ms_fault *fault)
{
    const ms_word *row = ms_settingwords_key(name_of(keys), key);
    char hint[384];
    if (row != NULL)
        ms_words_hint(row, hint, sizeof hint);
    else
        ms_fields_hint(keys, key, hint, sizeof hint);
    return ms_fail(fault, MS_EUSAGE, where, hint, "unknown setting \"%s\"",
                   key);
}

ms_err ms_training_set(ms_training *training, const char *key,
                       const char *value, ms_fault *fault)
{
    char where[256];
    ms_value parsed;
    uint32_t row = ms_training_row(key);
    const ms_fields keys = group_of(&key);
    snprintf(where, sizeof where, "%s.%s=%s", name_of(&keys), key, value);
    if (row == MS_NONE)
        return fail_key(&keys, key, where, fault);
    MS_TRY(read_value(&ms_training_fields[row], value, where, &parsed, fault));
    set_value(training, row, parsed);
    training->was_set |= UINT64_C(1) << row;
    return MS_OK;
}

void ms_training_value(const ms_training *training, uint32_t row, char *buffer,
                       size_t size)
{
    assert(row < ms_training_n_fields);
    ms_fields_format(&ms_training_fields[row], value_at(training, row), buffer,
                     size);
}
