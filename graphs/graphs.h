/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_H
#define MS_GRAPHS_H

/* graphs/ turns model files into graphs: readers, the tables of layers and
 * ops, shapes, autograd rules, the cost model, the layer DAG.
 *
 *     ms_model model;
 *     ms_training training;                      (defaults, then --set)
 *     MS_TRY(ms_read_model("gpt3.json", &keep, &model, fault));
 *     MS_TRY(ms_resolve_training(&training, &model, fault));
 *     MS_TRY(ms_dag_order(&model, &keep, fault));
 *     MS_TRY(ms_lower(&model, &training, device, &shape, &keep, &graph,
 *                     fault));
 *
 * A native model file, whole (a family; comments are not JSON, so none):
 *
 *     {"memsim": 1, "name": "tiny", "family": "decoder",
 *      "config": {"layers": 2, "hidden": 64, "heads": 4, "vocab": 1000,
 *                 "positions": 128}}
 *
 * or a layer list, where "inputs" default to the layer before and a
 * {"repeat": n, "name": "layers", "layers": [...]} element makes n blocks:
 *
 *     {"memsim": 1, "name": "mlp", "input": {"shape": [784]},
 *      "layers": [
 *        {"repeat": 8, "name": "hidden", "layers": [
 *          {"type": "linear", "out": 1024}, {"type": "relu"}]},
 *        {"type": "linear", "name": "head", "out": 10},
 *        {"type": "cross_entropy"}]}
 *
 * A built-in model with other numbers is {"like": "gpt3", "config": {...}}
 * (reader.h).  Another form is the op graph of a model that ran in PyTorch,
 * recognised by its "format" key (opgraph.h).
 */

#include "sim/nouns.h"
#include "sim/pools/history/alloctrace.h"
#include "sim/replay/collective.h"

#include "graphs/json/json.h" /* for readers of other JSON */

/* ---- the model noun ------------------------------------------------------ */

/* A value of a layer's or family's parameter, as its table row says.  A WORD
 * is the index (i) into the row's words; a NAME is a layer's full name (s),
 * "" for none; INTS lie outside (ms_layer.ints); a TEXT is whatever it is. */
typedef union ms_value {
    int64_t i;
    double f;
    const char *s;
    bool b;
} ms_value;

typedef enum ms_value_type {
    MS_INT,
    MS_FLOAT,
    MS_BOOL,
    MS_WORD,
    MS_NAME,
    MS_INTS,
    MS_TEXT
} ms_value_type;

/* One parameter of a layer type, family or of training, as data: the reader,
 * --set, help, man page, schema and tests walk these rows. */
typedef struct ms_field {
    const char *name;
    ms_value_type type;
    bool required;
    ms_value fallback;
    int64_t low, high; /* INT, FLOAT, INTS: inclusive; equal: no bounds */
    const char *words; /* MS_WORD: "a|b|c" */
    const char *help;  /* one line, with unit */
    const char *group; /* settings: what stands before the dot of their key;
                          NULL: "training" */
    bool is_extra; /* settings: off unless it is asked for, so that the line of
                      defaults leaves it out */
} ms_field;

typedef struct ms_opgraph ms_opgraph; /* an exported op graph: opgraph.h */

#define MS_LAYER_FIELDS 20u
#define MS_MAX_DIMS 6u

/* Where a node of the input file stands, for errors. */
typedef struct ms_spot {
    uint32_t line, column; /* from 1; 0: no file (made by a page) */
} ms_spot;

/* One layer of the flat list; blocks and repeats are already unrolled.
 * edges[in_at .. in_at + n_in) are the layers whose outputs it reads
 * (MS_NONE: the model's input). */
typedef struct ms_layer {
    const char *name;                 /* unique, dotted: "layers.3.attention" */
    const struct ms_layer_kind *kind; /* a row of ms_layer_kinds */
    uint32_t in_at, n_in;
    uint32_t block; /* MS_NONE: in no block; of nested repeats the outermost */
    ms_spot spot;
    ms_value field[MS_LAYER_FIELDS]; /* in the order of the kind's fields */
    const uint64_t *ints;            /* the MS_INTS field, if any */
    uint32_t n_ints;
} ms_layer;

typedef struct ms_model {
    const char *name, *path; /* path: what errors are prefixed with */
    const char *family;      /* NULL for a layer list */
    const ms_opgraph *ops;   /* NULL unless the model is an op graph, which
                                has no layers */
    uint64_t fixed_batch;    /* samples of a micro-batch where the model fixes
                                them (an op graph), else 0 */
    uint32_t n_layers, n_edges, n_blocks;
    ms_layer *layers;
    uint32_t *edges;
    const char **block_names;
    uint32_t *held;  /* per layer: the last layer of the groups that it is the
                        input of, or MS_NONE; NULL: there are none */
    uint32_t *order; /* ms_dag_order: layers in topological order */
    uint8_t *cut;    /* ms_dag_order: 1 when layer i's output is a cut point,
                        i.e. all later layers see earlier ones through it */
    bool tokens;     /* input: int64 token ids [batch, sequence] */
    bool sequence_input; /* input has a sequence dimension after the batch */
    uint32_t n_dims;     /* else a float tensor [batch, dims...] */
    uint64_t dims[MS_MAX_DIMS];
    uint64_t max_sequence; /* positions that it has; 0: no limit */
    bool rotary;           /* they are angles, which go on beyond those that it
                              was made for; else a longer sequence is refused */
    bool fresh_tables;     /* masks and tables of positions are made for the
                              sequence at hand, not for the longest */
    const char *assumed;   /* of a configuration: class defaults that it needs
                              and does not give, ", a=1, b=2", or NULL */
    const char *refusal;   /* NULL, or why no step can be simulated: layers and
                              parameters are there */
    const char *source;    /* the file's bytes, for carets */
    size_t source_length;
} ms_model;

/* ---- reading ------------------------------------------------------------- */

/* Reads a model: path with a slash: that file only; a name without one: the
 * file if it exists here, else a built-in ("gpt3" and "gpt3.json" alike); "-":
 * standard input.  A folder means its config.json (huggingface/), beside which
 * headers of weights are read.  Overrides are "model.KEY=VALUE" settings of
 * --set applied to the family's config, or to the keys of a configuration of
 * Hugging Face, before it is built.  Faults: MS_EINPUT with file:line:column,
 * MS_ESYSTEM. */
typedef struct ms_override {
    const char *key; /* without "model." */
    const char *value;
} ms_override;
ms_err ms_read_model(const char *path, const ms_override *overrides,
                     uint32_t n_overrides, ms_arena *arena, ms_model *model,
                     ms_fault *fault);
/* The same from bytes (fuzz targets, tests). */
ms_err ms_read_model_bytes(const char *name, const char *bytes, size_t length,
                           const ms_override *overrides, uint32_t n_overrides,
                           ms_arena *arena, ms_model *model, ms_fault *fault);
/* Fails with MS_EINPUT at a layer: path:line:column, source line and caret;
 * a layer that a family made has only the path. */
ms_err ms_read_fail(const ms_model *model, const ms_layer *layer,
                    ms_fault *fault, const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Reads a whole file ("-": standard input), at most max_bytes;
 * NUL-terminated. */
ms_err ms_files_read(const char *path, uint64_t max_bytes, ms_arena *arena,
                     char **bytes, size_t *length, ms_fault *fault);

/* recording.c: a recorded history of allocations
 * (sim/pools/history/alloctrace.h), from JSON that must outlive it.  Faults:
 * MS_EINPUT with line and column. */
ms_err ms_recording_read(const char *name, const char *bytes, size_t length,
                         ms_arena *arena, ms_recording *recording,
                         ms_fault *fault);

/* snapshot.c: the same from a pickle of torch.cuda.memory._dump_snapshot: the
 * device with the longest trace.  Executes nothing; "name:byte N". */
ms_err ms_snapshot_read(const char *name, const char *bytes, size_t length,
                        ms_arena *arena, ms_recording *recording,
                        ms_fault *fault);

/* Built-in models: sorted by family, then size.  group: the heading that it
 * stands under. */
typedef struct ms_builtin {
    const char *name, *text, *summary, *group;
} ms_builtin;
extern const ms_builtin ms_builtin_models[];
extern const uint32_t ms_builtin_n_models;

/* ---- the layer DAG (igraph, one file) ------------------------------------ */

/* Fills order and cut.  A cycle is MS_EINPUT and names the layers on it; so is
 * a layer other than the last whose output no layer reads.  Deterministic: ties
 * by position in the file (a file in a legal order keeps it). */
ms_err ms_dag_order(ms_model *model, ms_arena *arena, ms_fault *fault);
void ms_dag_dot(const ms_model *model, ms_text *text);

/* ---- tables: layer kinds and families ------------------------------------ */

typedef struct ms_trace ms_trace; /* the forward under construction: trace.h */

#define MS_ANY_INPUTS UINT8_MAX
typedef struct ms_layer_kind {
    const char *type, *summary;
    uint8_t role; /* ms_layer_role of its layers: layerroles.h */
    uint8_t min_inputs, max_inputs; /* MS_ANY_INPUTS: no limit */
    uint8_t n_fields;
    const ms_field *fields;
    /* Records the layer's forward ops.  in: tensor ids; *out: the result. */
    ms_err (*forward)(ms_trace *trace, const ms_layer *layer,
                      const uint32_t *in, uint32_t *out);
    /* Where types share a forward: which aten op it is, "aten::mish", and its
     * FLOPs per element of the first input. */
    const char *op;
    uint8_t flops;
    bool silent; /* no output: states only */
} ms_layer_kind;
extern const ms_layer_kind ms_layer_kinds[];
extern const uint32_t ms_layer_n_kinds;
uint32_t ms_layer_find(const char *type); /* MS_NONE: no such type */

/* An architecture whose numbers a native model gives: a page
 * (models/pages/familypage.h). */
typedef struct ms_family {
    const char *name, *summary;
    uint32_t n_fields;
    const ms_field *fields; /* of "config" */
    bool flat;              /* the fields stand beside "family", no "config" */
} ms_family;
/* The names of the built-in ones, sorted; NULL behind the last. */
const char *ms_familypage_name(uint32_t i);
/* Those, and the user's of MEMSIM_PAGES; NULL, and n is 0: out of memory. */
const ms_family *ms_familypage_all(ms_arena *arena, uint32_t *n);

/* ---- read.c, layergroups.c, opfields.c: keys beside theirs --------------- */

/* What the readers walk, and the schema of model files (tools/) too. */
#define MS_MAX_NAME 256u /* bytes of one name */
#define MS_LISTFILE_INPUT 4
extern const ms_field ms_listfile_input_fields[MS_LISTFILE_INPUT];
/* Beside "layers", "inputs", "each", "with", "when". */
#define MS_LAYERGROUPS_FIELDS 6
extern const ms_field ms_layergroups_fields[MS_LAYERGROUPS_FIELDS];
#define MS_LAYERGROUPS_EACH 1024u /* values of a list of "each" */
#define MS_LISTFILE_CONFIG 32u    /* numbers in the "config" of a layer list */
/* An op graph's keys; what its arrays of fixed places hold, in that order.
 * There are no others, but in "meta". */
#define MS_OPFIELDS_STORAGE 4
#define MS_OPFIELDS_TENSOR 6
#define MS_OPFIELDS_NODE 7
extern const ms_field ms_opfields_storage[MS_OPFIELDS_STORAGE];
extern const ms_field ms_opfields_tensor[MS_OPFIELDS_TENSOR];
extern const ms_field ms_opfields_node[MS_OPFIELDS_NODE];
extern const char *const ms_opfields_node_more[]; /* NULL ends them */
extern const char *const ms_opfields_top[];
extern const ms_field ms_opfields_batch; /* of "meta" */
/* The place of word in "a|b|c", or MS_NONE. */
uint32_t ms_opfields_place(const char *words, const char *word);

/* ---- training settings --------------------------------------------------- */

typedef enum ms_precision {
    MS_FP32,
    MS_TF32,
    MS_FP16_MIXED,
    MS_BF16_MIXED,
    MS_BF16,
    MS_AUTOCAST_FP16,
    MS_AUTOCAST_BF16,
    MS_FP16,
    MS_BF16_REMAINDERS,
    MS_FP8,
    MS_FP8_PRIMARY,
    MS_MXFP8,
    MS_MXFP8_TORCHAO,
    MS_MSAMP_O1,
    MS_MSAMP_O2,
    MS_MSAMP_O3
} ms_precision;
typedef enum ms_gradient_format {
    MS_GRADIENTS_AUTO,
    MS_GRADIENTS_FP32,
    MS_GRADIENTS_MAIN
} ms_gradient_format;
typedef enum ms_optimizer {
    MS_SGD,
    MS_MOMENTUM,
    MS_NESTEROV,
    MS_ADAGRAD,
    MS_RMSPROP,
    MS_RMSPROP_MOMENTUM,
    MS_RMSPROP_CENTERED,
    MS_RMSPROP_BOTH, /* centered, with momentum */
    MS_ADAM,
    MS_ADAMW,
    MS_ADAM_AMSGRAD,
    MS_ADAMW_AMSGRAD,
    MS_LAMB,
    MS_LION,
    MS_ADAFACTOR,
    MS_ADAFACTOR_HF,
    MS_ADAFACTOR_HF_MOMENTUM,
    MS_ADAM_8BIT,
    MS_ADAMW_8BIT,
    MS_LION_8BIT,
    MS_SOPHIA,
    MS_MUON,
    MS_SHAMPOO,
    MS_SOAP,
    MS_GALORE,
    MS_LOMO,
    MS_ADAMW_KAHAN,
    MS_NO_OPTIMIZER
} ms_optimizer;
typedef enum ms_optimstep_impl {
    MS_IMPL_AUTO,
    MS_IMPL_LOOP,
    MS_IMPL_FOREACH,
    MS_IMPL_FUSED
} ms_optimstep_impl;
/* By age: rules compare them.  TORCH_2 is the newest, TORCH_2_0 stands for 2.0
 * to 2.3. */
typedef enum ms_framework {
    MS_TORCH_1_13,
    MS_TORCH_2_0,
    MS_TORCH_2
} ms_framework;
#define MS_N_FRAMEWORKS 3u

/* A difference between frameworks, as help tells it. */
typedef struct ms_framework_row {
    const char *what;
    const char *rule[MS_N_FRAMEWORKS]; /* NULL: as the framework before */
    const char *source;
} ms_framework_row;
extern const ms_framework_row ms_frameworks_rows[];
extern const uint32_t ms_frameworks_n;

typedef enum ms_hold { MS_HOLD_BACKWARD, MS_HOLD_STEP, MS_HOLD_NONE } ms_hold;

/* training.weight_decay; auto is as the optimizer's own default. */
enum { MS_DECAY_AUTO, MS_DECAY_NO, MS_DECAY_YES };

/* training.cudnn; auto is as torch_pool has it. */
enum { MS_CUDNN_AUTO, MS_CUDNN_BENCHMARK, MS_CUDNN_NONE };

/* One field per row of ms_training_fields; was_set says which the user chose
 * (the rest are printed as defaults). */
typedef struct ms_training {
    int64_t batch, sequence; /* sequence 0: min(2048, model's maximum) */
    int64_t precision, optimizer, optimizer_impl, kernels, framework;
    int64_t device;                          /* 0 cuda, 1 cpu */
    int64_t gradients;                       /* ms_gradient_format */
    int64_t hold_output;                     /* ms_hold */
    int64_t zero_grad;                       /* 0 set_to_none, 1 keep */
    int64_t step;                            /* 0 steady, 1 first */
    int64_t mode;                            /* 0 train, 1 inference */
    int64_t optimizer_in_backward;           /* 0 no, 1 yes */
    double clip_norm;                        /* 0: gradients are not clipped */
    int64_t weight_decay;                    /* MS_DECAY_AUTO.. */
    int64_t optimizer_rank, optimizer_block; /* optimtable.h */
    int64_t optimizer_refresh;               /* 0 no, 1 yes: optimtable.h */
    /* Of single kinds of ops, 0: as kernels says; kernels.h, headloss.h. */
    int64_t attention_kernel, norm_kernel, activation_kernel, rotary_kernel;
    int64_t loss_kernel;
    int64_t retain_graph;                 /* 0 no, 1 yes */
    int64_t cublas_workspace;             /* bytes; -1: the device's */
    int64_t cudnn;                        /* MS_CUDNN_AUTO... */
    int64_t cuda_loading;                 /* 0 lazy, 1 eager */
    int64_t cuda;                         /* overheads.h */
    int64_t nccl_channels, nccl_buffsize; /* 0: device's; 4 MiB */
    int64_t lora_rank;                    /* 0: no adapters; lora.h */
    int64_t lora_targets; /* 0 qv, 1 qkv, 2 attention, 3 mlp, 4 all */
    double lora_dropout;
    int64_t lora_dtype;              /* 0 as the weights, 1 fp32 */
    int64_t lora_base;               /* 0 as the weights, else packed.c's + 1 */
    int64_t lora_trains;             /* 0 both, 1 A, 2 B */
    int64_t unknown_op;              /* op graphs: 0 refuse, 1 conservative */
    int64_t fp8_recipe, fp8_weights; /* fp8.h */
    int64_t frozen_blocks, frozen_base; /* packed.h */
    /* mcore.h, in the order of its enums */
    int64_t mcore_spec, mcore_attention, mcore_loss, mcore_wgrad;
    int64_t mcore_mask;          /* 0 yes, 1 no */
    int64_t mcore_deterministic; /* 0 no, 1 yes */
    uint64_t was_set;            /* bit per row */
    uint64_t torch_pool;         /* steps go through PyTorch's allocator */
} ms_training;
extern const ms_field ms_training_fields[];
extern const uint32_t ms_training_n_fields;
void ms_training_init(ms_training *training);
/* What stands before the dot of a row's key: "training", "graph". */
const char *ms_training_group(uint32_t row);
/* The row of a key, in which "training." is optional; what others call it is
 * understood (settingwords.h).  MS_NONE: no such setting. */
uint32_t ms_training_row(const char *key);
ms_err ms_training_set(ms_training *training, const char *key,
                       const char *value, ms_fault *fault);
/* Fills what depends on the model and checks the whole. */
ms_err ms_resolve_training(ms_training *training, const ms_model *model,
                           ms_fault *fault);
/* The value of row as the user would write it. */
void ms_training_value(const ms_training *training, uint32_t row, char *buffer,
                       size_t size);

/* ---- devices ------------------------------------------------------------- */

/* Rates are what the device file says (graphs/devices/, made of the project's
 * hardware table; each row names its source).  Efficiency curves give the
 * share of the peak that an op of a given size reaches. */
typedef struct ms_device {
    const char *name, *alias, *source; /* alias "": none */
    uint64_t memory_bytes;             /* what the driver shows to PyTorch */
    uint64_t context_bytes;            /* CUDA context and kernels */
    uint64_t context_eager_bytes;      /* not loaded lazily; 0: not known */
    /* Of other builds of CUDA, overheads.h; 0: not known. */
    uint64_t context_11_3_bytes, context_11_7_bytes, context_station_bytes;
    uint64_t context_station_cudnn_bytes; /* on top, with convolutions */
    double cudnn_share;                   /* cudnn.h */
    uint64_t cudnn_from_bytes;
    uint64_t nccl_bytes; /* NCCL without buffers */
    uint32_t nccl_channels;
    uint64_t cublas_workspace_bytes; /* per thread that runs matmuls */
    uint32_t multiprocessors, threads_per_multiprocessor;
    uint64_t launch_ns, kernel_ns; /* host issue; shortest kernel */
    double hbm_bytes_per_s;
    double fp32_flops, tf32_flops, half_flops; /* dense peak */
    double fp8_flops;                          /* 0: it has none */
    double h2d_bytes_per_s, d2h_bytes_per_s;
    double nvlink_bytes_per_s;  /* per GPU and direction; 0: PCIe only */
    double network_bytes_per_s; /* between nodes, per GPU and direction */
    double peer_bytes_per_s;    /* as ms_ring's, printed */
    uint32_t gpus_per_node;
    double nvls_share; /* as ms_ring's */
    const ms_curve *curves;
    uint32_t n_curves;
    uint64_t host_memory_bytes, nvme_bytes; /* of a node; 0: not known */
    const char *host_memory_source;         /* of both; or NULL */
    /* Of a node, shared by its GPUs. */
    double dram_bytes_per_s, nvme_read_bytes_per_s, nvme_write_bytes_per_s;
    double pageable_share;   /* of h2d and d2h that pageable copies reach */
    uint64_t fault_ns;       /* of unified memory; 0: the link is coherent */
    uint32_t one_memory;     /* 1: CPU and GPU share it, nothing is copied */
    double matmul_share;     /* of the dense peak that large products reach */
    double fp8_matmul_share; /* those in fp8 */
    uint32_t compute_capability; /* CUDA's times 10; 0: not known */
} ms_device;
/* The built-in ones, by name: their names, and their files as they are in
 * graphs/devices/. */
typedef struct ms_device_text {
    const char *name, *alias, *json; /* alias "": none */
} ms_device_text;
extern const ms_device_text ms_devices[];
extern const uint32_t ms_devices_n;
/* A row of ms_devices, read once: it stays for the life of the process.  NULL:
 * out of memory.  Any thread may call. */
const ms_device *ms_devicerows_at(uint32_t row);
/* Set-up of one copy between memories; a modelling default. */
#define MS_COPY_NS 10000u
/* What each of so many ranks that work side by side has of its node's memory
 * and disk. */
double ms_device_share(const ms_device *device, uint32_t ranks);
/* By name or alias; MS_EUSAGE with did-you-mean. */
ms_err ms_device_find(const char *name, const ms_device **device,
                      ms_fault *fault);
/* The same, or a file: what has a slash or ends in ".json".  It has the keys of
 * graphs/devices/ (ms_devicefile_fields), "like": another device's name stands
 * for those that it leaves out; MS_EINPUT with line and column. */
ms_err ms_device_read(const char *name, ms_arena *arena,
                      const ms_device **device, ms_fault *fault);
extern const ms_field ms_devicefile_fields[];
extern const uint32_t ms_devicefile_n_fields;

/* precisions.c: the device's dense peak of the products that a precision is
 * about: those of linear layers. */
double ms_precisions_peak_flops(const ms_training *training,
                                const ms_device *device);
/* The table of precisions as help shows it; what is to say of each. */
void ms_statebytes_describe(ms_text *text);
const char *ms_precisions_help(uint32_t precision);

/* ---- lowering ------------------------------------------------------------ */

/* Lowers one micro-batch of training->batch / micro_batches samples and the
 * optimizer step of one rank.  Needs ms_dag_order.  Faults: shapes that
 * contradict a layer's rule (names both layers), products beyond 2^63. */
ms_err ms_lower(const ms_model *model, const ms_training *training,
                const ms_device *device, const ms_shape *shape, ms_arena *arena,
                ms_graph *graph, ms_fault *fault);

/* aten.c: the ops that op graphs may hold: name, autograd node, what it saves,
 * the shape of its output, what its backward allocates. */
void ms_atentable_describe(ms_text *text);

/* huggingface/: the types of config.json: heads, keys and class defaults. */
void ms_huggingface_describe(ms_text *text);
/* The name of the i-th type, NULL beyond the last. */
const char *ms_huggingface_type(uint32_t i);
/* Keys of native models, of which a configuration has none; the last is
 * NULL. */
extern const char *const ms_huggingface_native[];

/* What inspect shows, one row per layer in topological order. */
typedef struct ms_layer_facts {
    const char *name, *type;
    uint32_t block;      /* row of ms_model.block_names, or MS_NONE */
    uint64_t parameters; /* tied ones counted at their first layer */
    uint64_t active;     /* of them, what a token meets: not all experts */
    double forward_flops, backward_flops;
    double forward_macs, backward_macs; /* of products and convolutions */
    uint64_t saved_bytes, output_bytes;
} ms_layer_facts;
ms_err ms_lower_facts(const ms_model *model, const ms_graph *graph,
                      ms_arena *arena, ms_layer_facts **facts, ms_fault *fault);

/* The versions of the libraries in use, "1.7.15": cJSON, igraph. */
const char *ms_json_library(void);
const char *ms_dag_library(void);

#include "graphs/machines/overheads.h"
#include "graphs/models/files/namewords.h"
#include "graphs/settings/settingwords.h"

#endif
