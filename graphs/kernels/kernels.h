/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_KERNELS_H
#define MS_GRAPHS_KERNELS_H

/* Private to graphs/: which kernels the ops of a model are.
 *
 * training.kernels names a set of kernels, one for each kind of op; a set is an
 * object (ms_kernel_set) in a file or folder of its own and a row of
 * MS_KERNELS_SETS below.  training.attention_kernel, .norm_kernel,
 * .activation_kernel, .rotary_kernel and .loss_kernel replace single ones of
 * it.  A layer that says whose code it is ("upcast", "complex", "code") keeps
 * the ops of that code apart, but where a kernel is firm: the user named it, or
 * the set replaces modules whatever their code was (fused, as Liger patches
 * models).
 *
 *     if (ms_kernels_apart(trace->kernels.norm, upcasts))
 *         by ops
 *     else
 *         y = trace->kernels.norm.maker->rms_norm(trace, x, weight);
 *
 * Nothing but kernels.c asks which set it is: layers, ops and the optimizer
 * read the set's data, or call its hooks. */

#include "graphs/model.h"
#include "graphs/training.h"

typedef struct ms_trace ms_trace; /* trace.h */

/* The sets, in the order of training.kernels: enumerator, word, object, and how
 * the help of that setting goes on. */
#define MS_KERNELS_SETS(ROW)                                                   \
    ROW(MS_EAGER, "eager", ms_torchkernels_eager, "op by op, ")                \
    ROW(MS_FLASH, "flash", ms_torchkernels_flash,                              \
        "or one kernel each for attention, norms, gates and rotation")         \
    ROW(MS_KORTHIKANTI, "korthikanti", ms_korthikanti,                         \
        "; korthikanti: that paper's accounting")                              \
    ROW(MS_EFFICIENT, "efficient", ms_torchkernels_efficient,                  \
        "; efficient: xFormers' attention, else as flash")                     \
    ROW(MS_SDPA, "sdpa", ms_torchkernels_sdpa,                                 \
        "; sdpa: the attention that PyTorch chooses, else as eager")           \
    ROW(MS_FUSED, "fused", ms_ligerkernels_fused,                              \
        "; fused: as flash, with Liger's norms, gates, rotation and loss")     \
    ROW(MS_MEGATRON, "megatron", ms_mcore,                                     \
        "; megatron: Megatron-Core with Transformer Engine, by the settings "  \
        "megatron.*")                                                          \
    ROW(MS_NANOTRON, "nanotron", ms_nanotron,                                  \
        "; nanotron: its LLaMA, which copies queries, keys and values")
#define MS_KERNELS_ID(id, word, object, help) id,
typedef enum ms_kernels {
    MS_KERNELS_SETS(MS_KERNELS_ID) MS_KERNELS_N
} ms_kernels;
/* The words of the setting and its help, made from the rows. */
#define MS_KERNELS_WORD(id, word, object, help) "|" word
#define MS_KERNELS_WORDS &(MS_KERNELS_SETS(MS_KERNELS_WORD))[1]
#define MS_KERNELS_TEXT(id, word, object, help) help
#define MS_KERNELS_HELP                                                        \
    "what layers run and save: " MS_KERNELS_SETS(MS_KERNELS_TEXT)

/* A maker: whose kernels norms and gates are (torchkernels.c, ligerkernels.c).
 */
typedef struct ms_kernel_maker {
    bool apart; /* op by op: of what follows only layer_norm is asked for then,
                   which has always been one op */
    /* weight and bias are MS_NONE where the layer has none. */
    uint32_t (*layer_norm)(ms_trace *trace, uint32_t x, uint32_t weight,
                           uint32_t bias);
    uint32_t (*rms_norm)(ms_trace *trace, uint32_t x, uint32_t weight);
    /* Computes activation(gate) * up; op is the name of the kernel, "swiglu".
     */
    uint32_t (*gate)(ms_trace *trace, const char *op, uint32_t gate,
                     uint32_t up);
} ms_kernel_maker;
/* The makers: PyTorch's ops one by one; the kernels of PyTorch or Apex; those
 * of Liger, which overwrite what they can. */
extern const ms_kernel_maker ms_torchkernels_apart, ms_torchkernels,
    ms_ligerkernels;

typedef struct ms_kernel {
    const ms_kernel_maker *maker;
    bool firm;
} ms_kernel;

/* The sizes of a self-attention layer; turning is the number of channels of a
 * head that rotate. */
typedef struct ms_attention_sizes {
    int64_t heads, kv_heads, dim, width, turning;
} ms_attention_sizes;

struct ms_kernel_set;
struct ms_step_settings;
#define MS_LOSS_TEMPORARIES 6u
/* What a framework does with its kernels that PyTorch does not; all are
 * optional: what is NULL is done as PyTorch does it. */
typedef struct ms_kernel_hooks {
    /* Settings that choose this set, or another.  MS_EUSAGE where they
     * contradict each other or the set. */
    ms_err (*check)(const ms_training *training, ms_fault *fault);
    ms_err (*check_idle)(const ms_training *training, ms_fault *fault);
    /* Fills what the set decides where the user has not. */
    void (*settle)(ms_training *training);
    /* Chooses kernels that depend on settings of the set's own. */
    void (*choose)(const struct ms_step_settings *settings,
                   struct ms_kernel_set *set);

    /* Do the inputs of only one micro-batch exist at a time, and further ones
     * of the step later? */
    bool one_batch_at_a_time;
    void (*inputs)(ms_trace *trace);

    /* The layer "attention". */
    ms_err (*attention)(ms_trace *trace, const ms_layer *layer,
                        const ms_attention_sizes *sizes, const uint32_t *in,
                        uint32_t *out);
    /* What the open op, a fused cross entropy of dims[0] rows and dims[1]
     * words, makes for its duration; returns how many tensors. */
    uint32_t (*loss_temporaries)(ms_trace *trace, const int64_t *dims,
                                 uint32_t *made);
    /* The product that the same gate reads, and that is one with this layer's;
     * or MS_NONE. */
    uint32_t (*joined_with)(ms_trace *trace, uint32_t layer);
    /* Is the layer a dropout that the addition behind it does with its own? Is
     * input i of an addition such a dropout?  residual + dropout(x). */
    bool (*defers_dropout)(ms_trace *trace, const ms_layer *layer);
    bool (*is_deferred)(ms_trace *trace, const ms_layer *add, uint32_t i);
    uint32_t (*dropout_add)(ms_trace *trace, uint32_t x, uint32_t residual);

    /* The open op makes this weight's gradient: it adds it to .grad itself. */
    void (*add_gradient)(ms_trace *trace, uint32_t weight);
    /* A tensor that lasts and stands for this weight's gradient, a reference;
     * MS_NONE: the op makes one. */
    uint32_t (*stand_in)(ms_trace *trace, uint32_t weight);
    /* Does op, a matrix product, use the workspace of Transformer Engine?  The
     * next one tells the bytes of cuBLAS's workspace. */
    bool (*is_te_product)(const ms_trace *trace, uint32_t op);
    uint64_t (*cublas_bytes)(const struct ms_step_settings *settings);

    /* Does .grad exist all through the step?  Is it fp32?  Does the step cast
     * it to fp32 before a fused update? */
    bool (*holds_gradients)(const struct ms_step_settings *settings);
    bool (*has_fp32_gradients)(const struct ms_step_settings *settings);
    bool (*casts_gradients)(const ms_trace *trace);

    /* What the layer counts where the framework's stages of a pipeline cost as
     * much each (ms_graph.unit_cost); macs: the multiply-adds of its forward's
     * products, but for attention's core.  NULL: stages have as many layers. */
    double (*stage_cost)(const ms_layer *layer, double macs);
} ms_kernel_hooks;

/* What is left out: a maker is ms_torchkernels, the rest is false, no hooks. */
typedef struct ms_kernel_set {
    const struct ms_attention_kernel *attention; /* sdpa.h */
    const struct ms_loss_kernel *loss;           /* headloss.h */
    ms_kernel norm, activation, rotary;
    bool is_plain; /* op by op: experts run in turn, sinks are no operand of a
                      kernel */
    bool fuses_softmax; /* scale, mask and softmax are one op */
    bool fuses_by_four; /* so many heads of all samples together, or none */
    bool keeps_no_statistics; /* norms do not count their means, deviations */
    bool saves_softmax_alone; /* a fused loss, and no mask beside it */
    /* Norms and softmax go over a row once and keep it in registers: Apex'
     * FastLayerNorm, Transformer Engine's norms, Megatron-LM's fused softmax
     * (apex/contrib/csrc/layer_norm, megatron/fused_kernels). */
    bool keeps_rows;
    bool keeps_parts;  /* where ranks split layers, products save their part of
                          a sequence and gather it again (Megatron), and the
                          sequence is dimension 0 */
    bool names_inputs; /* of a pipeline's stage (core/transformer/
                          transformer_block.py, set_input_tensor) */
    bool gathers_in_buffer; /* then, into Megatron's buffer in blocks, too */
    bool casts_head; /* the model casts the logits to fp32, and those of 16 bits
                        end (nanotron's cast_to_fp32) */
    bool is_hoppers; /* attention is FlashAttention 3 or as fast, cuDNN's */
    bool sums_in_order; /* FlashAttention 2 sums the queries' gradient in the
                           same order each time (its deterministic) */
    bool joins_gates;   /* a gate reads one tensor, of which it makes one
                           gradient */
    bool fuses_updates; /* optimizers that have one kernel for it */
    bool keeps_fp8;     /* layers say which micro-batch is a step's first, so
                           that Transformer Engine keeps fp8 copies of weights
                           for the others, and for good (Megatron-LM,
                           core/extensions/transformer_engine.py,
                           is_first_microbatch) */
    const ms_kernel_hooks *hooks;
} ms_kernel_set;
#define MS_KERNELS_DECLARE(id, word, object, help)                             \
    extern const ms_kernel_set object;
MS_KERNELS_SETS(MS_KERNELS_DECLARE)

/* Returns the set that the settings mean. */
ms_kernel_set ms_kernels_of(const ms_training *training);
/* Returns the same for a step, on its device. */
ms_kernel_set ms_kernels_on(const struct ms_step_settings *settings);
/* Checks the settings against the sets, and fills in what they decide.
 * MS_EUSAGE where a set refuses one. */
ms_err ms_kernels_check(ms_training *training, ms_fault *fault);
/* Does the op stay a sequence of single ops? own: the layer says whose code it
 * is. */
static inline bool ms_kernels_apart(ms_kernel kernel, bool own)
{
    return kernel.maker->apart || (own && !kernel.firm);
}

/* The words of the settings of single kernels; each begins with auto. */
#define MS_KERNELS_ATTENTION "auto|eager|flash|efficient|sdpa|flash3"
#define MS_KERNELS_NORM "auto|eager|torch|liger"
#define MS_KERNELS_PLAIN "auto|eager|fused"

#endif
