/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of options: parser, help, man page and completions walk it. */

#include "tools/job/settings.h"
#include "tools/options/optionbits.h"

const ms_option ms_options_table[] = {
    {.id = MS_OPTION_ALLOCATORS,
     .name = "allocators",
     .takes = MS_TAKES_VALUE,
     .value = "ALLOCATORS",
     .uses = {{.commands = COMPARE,
               .help = "a variant for each pool, with ; between them, e.g. "
                       "'torch;torch,expandable_segments:True'; may be "
                       "repeated; tells which one helps"}}},
    {.id = MS_OPTION_ALLOCATOR,
     .name = "allocator",
     .takes = MS_TAKES_VALUE,
     .value = "ALLOCATOR",
     .uses =
         {{.commands = COMPARE,
           .help = "the pool of all variants, torch (default on CUDA) or as "
                   "--allocators; repeat it for a variant each"},
          {.commands = STEP | REPORT | DIFF,
           .help = "torch[,option=value...] (default on CUDA): PyTorch's, what "
                   "it reserves and where it is out of memory; exact: bare "
                   "lifetimes; bfc, buddy, contiguous; arena: planned ahead "
                   "(memsim help traces)"},
          {.commands = SWEEP,
           .help =
               "exact (default), or torch[,option=value...]: PyTorch's, what "
               "it reserves and where it is out of memory; bfc, buddy, "
               "contiguous; arena: planned ahead (memsim help traces)"},
          {.commands = FIT,
           .help = "what is shown is proven through it: torch (default), with "
                   "options as in run, or another; exact: through none (memsim "
                   "help traces)"},
          {.commands = ALLOC,
           .help = "torch[,option=value...], options as in "
                   "PYTORCH_CUDA_ALLOC_CONF, and version, va, fraction; bfc "
                   "(TensorFlow's), buddy, contiguous (DeepSpeed's); or "
                   "arena[,order=...]: a static plan (memsim help traces); "
                   "repeat it to compare"}}},
    {.id = MS_OPTION_STEPS,
     .name = "steps",
     .takes = MS_TAKES_VALUE,
     .value = "N",
     .uses = {{.commands = STEPS | FIT,
               .help = "steps through --allocator, the last is reported (3): "
                       "the first of several creates the optimizer state"}}},
    {.id = MS_OPTION_LENGTHS,
     .name = "lengths",
     .takes = MS_TAKES_VALUE,
     .value = "LENGTHS",
     .uses = {{.commands = STEPS | FIT,
               .help = "a sequence length for each step through --allocator "
                       "torch, e.g. 512,1024,768, with a batch 8x512,4x1024; "
                       "--steps says how many, going round"}}},
    {.id = MS_OPTION_LEAKS,
     .name = "leaks",
     .uses = {{.commands = ALLOC,
               .help = "tell what is alive at the same point of successive "
                       "steps and grows (memsim help traces)"}}},
    {.id = MS_OPTION_ANEW,
     .name = "anew",
     .uses = {{.commands = ALLOC,
               .help =
                   "allocate what a recording holds at its start anew, in the "
                   "order of addresses, in pools with other options than it "
                   "had"}}},
    {.id = MS_OPTION_POLICY,
     .name = "policy",
     .letter = 'p',
     .takes = MS_TAKES_VALUE,
     .value = "SPEC",
     .uses =
         {{.commands = STEP,
           .help =
               "memory policy, e.g. checkpoint:sqrt; repeat or join with +"},
          {.commands = COMPARE | REPORT | DIFF,
           .help = "policies of one variant, joined with +; repeat it for each "
                   "variant"},
          {.commands = FIT,
           .help = "a policy of every set-up, e.g. checkpoint:full; others of "
                   "its kind are not searched then"},
          {.commands = SWEEP,
           .help = "policies of all points; those of a grid join them"},
          {.commands = MS_FOR_INSPECT,
           .help = "what one rank of these has, e.g. tensor:8"}}},
    {.id = MS_OPTION_PLUGIN,
     .name = "plugin",
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .uses = {{.commands = STEPS | FIT | MS_FOR_HELP,
               .help = "load a policy from a shared library, e.g. ./mine.so; "
                       "may be repeated"}}},
    {.id = MS_OPTION_PAGE,
     .name = "page",
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .uses = {{.commands = MODEL,
               .help = "page of a model_type or a family of yours (memsim "
                       "help huggingface); may be repeated"}}},
    {.id = MS_OPTION_FROM,
     .name = "from",
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .uses = {{.commands = MODEL,
               .help = "settings of DeepSpeed, Accelerate, Transformers, "
                       "torchtitan, Megatron-LM, axolotl, LLaMA-Factory or "
                       "llm-foundry; may be repeated (memsim help from)"}}},
    {.id = MS_OPTION_DEVICE,
     .name = "device",
     .takes = MS_TAKES_VALUE,
     .value = "NAME|FILE",
     .uses =
         {{.commands = MODEL,
           .help =
               "device, e.g. a100, or a file (default " MS_DEFAULT_DEVICE ")"},
          {.commands = CALIBRATE,
           .help = "the device that it begins with and is held against, e.g. "
                   "a100, or a file (default " MS_DEFAULT_DEVICE ")"},
          {.commands = PLOT,
           .help =
               "device that has this capacity, and whose context it is less",
           .behind = "memory"}}},
    {.id = MS_OPTION_SETTING,
     .name = "batch",
     .takes = MS_TAKES_VALUE,
     .value = "N",
     .setting = "training.batch",
     .uses = {{.commands = MODEL | CALIBRATE,
               .help = "samples per step of each data-parallel rank (GPU), "
                       "micro-batches together"}}},
    {.id = MS_OPTION_GLOBAL_BATCH,
     .name = "global-batch",
     .takes = MS_TAKES_VALUE,
     .value = "N",
     .uses = {{.commands = STEPS | FIT,
               .help = "samples per step of the whole job, divided among its "
                       "GPUs: instead of --batch"}}},
    {.id = MS_OPTION_SETTING,
     .name = "sequence",
     .takes = MS_TAKES_VALUE,
     .value = "N",
     .setting = "training.sequence",
     .uses = {{.commands = MODEL | CALIBRATE, .help = "tokens per sample"}}},
    {.id = MS_OPTION_SETTING,
     .name = "precision",
     .takes = MS_TAKES_VALUE,
     .value = "NAME",
     .setting = "training.precision",
     .uses = {{.commands = MODEL | CALIBRATE,
               .help = "number formats of weights, gradients, activations"}}},
    {.id = MS_OPTION_SETTING,
     .name = "optimizer",
     .takes = MS_TAKES_VALUE,
     .value = "NAME",
     .setting = "training.optimizer",
     .uses = {{.commands = MODEL, .help = "optimizer"}}},
    {.id = MS_OPTION_SETTING,
     .name = "kernels",
     .takes = MS_TAKES_VALUE,
     .value = "NAME",
     .setting = "training.kernels",
     .uses = {{.commands = MODEL | CALIBRATE,
               .help = "what layers run and save"}}},
    {.id = MS_OPTION_SETTING,
     .name = "framework",
     .takes = MS_TAKES_VALUE,
     .value = "NAME",
     .setting = "training.framework",
     .uses = {{.commands = MODEL | CALIBRATE,
               .help = "framework whose rules and defaults hold"}}},
    {.id = MS_OPTION_SET,
     .name = "set",
     .takes = MS_TAKES_VALUE,
     .value = "KEY=VALUE",
     .uses = {{.commands = MODEL | CALIBRATE,
               .help = "any training.FIELD, lora.FIELD, graph.FIELD, "
                       "megatron.FIELD or model.FIELD; may be repeated"}}},
    {.id = MS_OPTION_MEMORY,
     .name = "memory",
     .takes = MS_TAKES_VALUE,
     .value = "SIZE",
     .uses = {{.commands = STEPS | FIT,
               .help = "capacity instead of the device's, e.g. 80GiB"},
              {.commands = PLOT,
               .help = "capacity for rows of a sweep, which do not tell it",
               .behind = "label"},
              {.commands = ALLOC,
               .help =
                   "the device's memory instead of the trace's, e.g. 80GiB"}}},
    {.id = MS_OPTION_HOST_MEMORY,
     .name = "host-memory",
     .takes = MS_TAKES_VALUE,
     .value = "SIZE",
     .uses = {{.commands = STEPS | FIT,
               .help = "host memory of a node, which its ranks share, instead "
                       "of the device's, e.g. 512GiB"}}},
    {.id = MS_OPTION_NVME,
     .name = "nvme",
     .takes = MS_TAKES_VALUE,
     .value = "SIZE",
     .uses = {{.commands = STEPS | FIT,
               .help = "the same for its disk, e.g. 4TiB"}}},
    {.id = MS_OPTION_GPUS,
     .name = "gpus",
     .takes = MS_TAKES_VALUE,
     .value = "N",
     .uses = {{.commands = MODEL,
               .help = "GPUs of the job, each a rank of the policies; fit "
                       "takes several numbers, e.g. 1,4,8"}}},
    {.id = MS_OPTION_WALL,
     .name = "wall",
     .uses = {{.commands = STEPS,
               .help = "the capacity is a wall: ops wait for memory, "
                       "prefetches are revoked (books device time)"}}},
    {.id = MS_OPTION_CHECK,
     .name = "check",
     .uses =
         {{.commands = STEP,
           .help =
               "exit with status 1 when the step does not fit into the device, "
               "the host's memory or the disk: a gate for CI, with --memory"},
          {.commands = COMPARE,
           .help = "exit with status 1 when a variant does not fit"},
          {.commands = CALIBRATE,
           .help = "fit nothing: predicted against recorded, op by op and "
                   "phase by phase"}}},
    {.id = MS_OPTION_JSON,
     .name = "json",
     .uses = {{.commands = STEP | COMPARE | MS_FOR_INSPECT | FIT | ALLOC |
                           CALIBRATE | CHECK | DIFF,
               .help = "print one JSON object instead of the text"},
              {.commands = SWEEP,
               .help = "a JSON object per line instead of CSV",
               .behind = "output"}}},
    {.id = MS_OPTION_GRID,
     .name = "grid",
     .takes = MS_TAKES_VALUE,
     .value = "KEY=LIST",
     .uses = {{.commands = COMPARE,
               .help = "a variant for each value of a key, e.g. 'batch=1,8' or "
                       "'policy=none;zero:3,dp=8'; repeat it for a product "
                       "(memsim help grid)"},
              {.commands = SWEEP,
               .help = "values of a key, e.g. 'batch=1,2,4', 'batch=1..64*2' "
                       "or 'policy=none;zero:3,dp=8'; repeat it for a product, "
                       "whose last key varies fastest (memsim help grid)"}}},
    {.id = MS_OPTION_VARIANT,
     .name = "variant",
     .takes = MS_TAKES_VALUE,
     .value = "NAME:SETTINGS",
     .uses = {{.commands = COMPARE,
               .help = "a variant with a name, of the keys of --grid, e.g. "
                       "'QLoRA: lora.rank=16 lora.base=nf4'; repeat it; a "
                       "product with -p and --grid"}}},
    {.id = MS_OPTION_FILTER,
     .name = "filter",
     .takes = MS_TAKES_VALUE,
     .value = "CONDITION",
     .uses = {{.commands = SWEEP | COMPARE,
               .help = "only points for which it holds, e.g. "
                       "'batch*sequence<=65536'; may be repeated"}}},
    {.id = MS_OPTION_OUTPUT,
     .name = "output",
     .letter = 'o',
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .uses =
         {{.commands = SWEEP,
           .help =
               "write the rows into a file; - is standard output (default)"},
          {.commands = CALIBRATE,
           .help = "write the device's file, for --device; - is standard "
                   "output, in place of the report"},
          {.commands = PLOT,
           .help = "the figure, as .svg, .png or .pdf (default memsim.svg); - "
                   "is standard output, as SVG"},
          {.commands = REPORT | DIFF,
           .help = "a page, one HTML file (report: default memsim.html); - is "
                   "standard output"}}},
    {.id = MS_OPTION_RESUME,
     .name = "resume",
     .uses = {{.commands = SWEEP,
               .help = "go on behind the rows that the file of -o has"}}},
    {.id = MS_OPTION_SHARD,
     .name = "shard",
     .takes = MS_TAKES_VALUE,
     .value = "I/N",
     .uses = {{.commands = SWEEP,
               .help = "the I-th of N parts of the points, I from 1"}}},
    {.id = MS_OPTION_MAX,
     .name = "max",
     .takes = MS_TAKES_VALUE,
     .value = "WHAT",
     .uses = {{.commands = FIT,
               .help = "find the largest batch (without micro-batches), and "
                       "how much of it pays, or the largest sequence for which "
                       "a set-up fits, or the one of the policies given",
               .words = "batch|sequence|seq"}}},
    {.id = MS_OPTION_GOAL,
     .name = "goal",
     .takes = MS_TAKES_VALUE,
     .value = "GOAL",
     .uses = {{.commands = FIT | REPORT,
               .help = "the most tokens a second (fit: default), the batch "
                       "searched unless it is given; the shortest step; or the "
                       "least memory; report: put the front on the page",
               .words = "tokens|step|memory"}}},
    {.id = MS_OPTION_VARY,
     .name = "vary",
     .takes = MS_TAKES_VALUE,
     .value = "WHAT",
     .uses = {{.commands = FIT,
               .help = "search what changes numbers, too: precision as given, "
                       "bf16 and fp8",
               .words = "precision"}}},
    {.id = MS_OPTION_JOBS,
     .name = "jobs",
     .letter = 'j',
     .takes = MS_TAKES_VALUE,
     .value = "N",
     .uses = {{.commands = SWEEP | FIT,
               .help =
                   "threads (default: one per core); the rows are the same"}}},
    {.id = MS_OPTION_CSV,
     .name = "csv",
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .uses = {{.commands = RUN,
               .help =
                   "write the timeline as CSV: each allocation and free, the "
                   "level "
                   "after it and what was recomputed so far; - is standard "
                   "output"},
              {.commands = COMPARE,
               .help =
                   "write one row per variant as CSV; - is standard output"},
              {.commands = FIT,
               .help =
                   "write one row per set-up that was replayed as CSV; - is "
                   "standard output"},
              {.commands = MS_FOR_INSPECT,
               .help = "write one row per layer as CSV; - is standard output",
               .behind = "wide"},
              {.commands = ALLOC,
               .help =
                   "write one row per operation as CSV; - is standard output",
               .behind = "memory"}}},
    {.id = MS_OPTION_TRACE,
     .name = "trace",
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .uses = {{.commands = RUN,
               .help = "write streams and memory as a Chrome trace, for "
                       "Perfetto; - is standard output"}}},
    {.id = MS_OPTION_SNAPSHOT,
     .name = "snapshot",
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .uses = {{.commands = RUN,
               .help = "write the step of the rank as a memory snapshot of "
                       "PyTorch (a pickle), for pytorch.org/memory_viz; - is "
                       "standard output"}}},
    {.id = MS_OPTION_ALLOCATIONS,
     .name = "allocations",
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .uses = {{.commands = RUN,
               .help = "write allocations and frees as a trace in text form, "
                       "for memsim alloc; - is standard output"}}},
    {.id = MS_OPTION_LIFETIMES,
     .name = "lifetimes",
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .uses = {{.commands = RUN,
               .help = "write each allocation's lifetime and size as CSV, for "
                       "minimalloc; - is standard output"}}},
    {.id = MS_OPTION_PLOT,
     .name = "plot",
     .takes = MS_TAKES_OPTIONAL,
     .value = "FILE",
     .fallback = "memsim.svg",
     .uses = {{.commands = RUN | COMPARE,
               .help =
                   "draw a figure as .svg, .png or .pdf (default memsim.svg)",
               .words = ".svg|.png|.pdf"},
              {.commands = ALLOC,
               .help = "draw where the blocks lie, address against operations, "
                       "as .svg, .png or .pdf (default memsim.svg), for up to "
                       "4 allocators",
               .words = ".svg|.png|.pdf"},
              {.commands = DIFF,
               .help = "draw both on one axis (default memsim.svg)",
               .words = ".svg|.png|.pdf"},
              {.commands = CALIBRATE,
               .help = "draw a step of the trace, recorded over predicted, as "
                       ".svg, .png or .pdf (default memsim.svg)",
               .words = ".svg|.png|.pdf"},
              {.commands = FIT,
               .help = "draw peak against step time as .svg, .png or .pdf "
                       "(default memsim.svg)",
               .words = ".svg|.png|.pdf"}}},
    {.id = MS_OPTION_FIGURE,
     .name = "figure",
     .takes = MS_TAKES_VALUE,
     .value = "KIND",
     .uses = {{.commands = RUN,
               .help = "what --plot draws: memory by category over time "
                       "(default), the streams under the memory, what each "
                       "layer keeps and repeats, memory and time of each rank, "
                       "the turns of a pipeline over its stages' memory, the "
                       "peak alone, or where the blocks of --allocator lie",
               .words = "timeline|gantt|layers|ranks|pipeline|bars|address"},
              {.commands = COMPARE,
               .help = "what --plot draws: what each peak is made of "
                       "(default), peaks against step times, or of up to 4 "
                       "variants memory over time, the turns of pipelines, or "
                       "where the blocks of their allocators lie",
               .words = "bars|pareto|timeline|pipeline|address|front"},
              {.commands = ALLOC,
               .help = "what --plot draws",
               .words = "address"},
              {.commands = PLOT,
               .help = "default: of one run timeline, of several bars, of "
                       "sweeps curve or pareto, of ways to checkpoint front",
               .words = "timeline|gantt|layers|ranks|pipeline|bars|pareto|"
                        "address|curve|front"}}},
    {.id = MS_OPTION_AXIS,
     .name = "x",
     .takes = MS_TAKES_VALUE,
     .value = "KEY",
     .uses = {{.commands = PLOT,
               .help = "curve: a varied key, or policy (default the first that "
                       "is a number)"}}},
    {.id = MS_OPTION_VALUE,
     .name = "y",
     .takes = MS_TAKES_VALUE,
     .value = "WHAT",
     .uses = {{.commands = PLOT,
               .help = "curve: memory or time (default peak)",
               .words = "peak|reserved|host|step|recompute|stall|comm"}}},
    {.id = MS_OPTION_SERIES,
     .name = "series",
     .takes = MS_TAKES_VALUE,
     .value = "KEY,...",
     .uses = {{.commands = PLOT,
               .help = "curve: a line for each value of these keys (default "
                       "all others that vary)"}}},
    {.id = MS_OPTION_TITLE,
     .name = "title",
     .takes = MS_TAKES_VALUE,
     .value = "TEXT",
     .uses = {{.commands = RUN | COMPARE | FIT | DRAWN | DIFF,
               .help = "the figure's title"},
              {.commands = REPORT, .help = "the page's title"}}},
    {.id = MS_OPTION_LABEL,
     .name = "label",
     .takes = MS_TAKES_VALUE,
     .value = "TEXT",
     .uses = {{.commands = COMPARE | PLOT | REPORT,
               .help = "what a variant, a run or a curve's line is called; "
                       "repeat it for each, in their order"}}},
    {.id = MS_OPTION_KEEP_SCRIPT,
     .name = "keep-script",
     .uses = {{.commands =
                   RUN | COMPARE | PLOT | FIT | ALLOC | CALIBRATE | DIFF,
               .help = "keep the gnuplot script beside the figure"}}},
    {.id = MS_OPTION_DUMP,
     .name = "dump",
     .takes = MS_TAKES_VALUE,
     .value = "WHAT",
     .uses = {{.commands = RUN,
               .help = "print a stage instead of the summary",
               .words = "graph|policy|schedule|program|plan|events|"
                        "checkpoints"},
              {.commands = MS_FOR_INSPECT,
               .help = "print the model's file, to edit",
               .words = "model"}}},
    {.id = MS_OPTION_AS,
     .name = "as",
     .takes = MS_TAKES_VALUE,
     .value = "SYSTEM",
     .uses = {{.commands = RUN,
               .help = "what --dump checkpoints is written for",
               .words = "torch|torchtitan|megatron"}}},
    {.id = MS_OPTION_PROGRAM,
     .name = "program",
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .uses = {{.commands = STEP,
               .help = "run a program in text form (see --dump program)"}}},
    {.id = MS_OPTION_BOOK,
     .name = "book",
     .takes = MS_TAKES_VALUE,
     .value = "ORDER",
     .uses = {{.commands = STEPS,
               .help = "book memory in host issue order (default), as "
                       "PyTorch's counters, or as the device allocates and "
                       "frees; times are the device's with both",
               .words = "host|device"}}},
    {.id = MS_OPTION_ALL,
     .name = "all",
     .uses = {{.commands = MS_FOR_INSPECT,
               .help = "list every layer, also blocks that repeat"}}},
    {.id = MS_OPTION_WIDE,
     .name = "wide",
     .uses = {{.commands = MS_FOR_INSPECT,
               .help = "also active parameters, backward, MACs and outputs"}}},
    {.id = MS_OPTION_DOT,
     .name = "dot",
     .uses = {{.commands = MS_FOR_INSPECT,
               .help = "print the layer graph as DOT instead of the table"}}},
    {.id = MS_OPTION_EXPLAIN,
     .name = "explain",
     .uses = {{.commands = COMPARE,
               .help =
                   "what two variants hold differently at their peaks, why it "
                   "is alive in the one and where it has gone in the other"}}},
    {.id = MS_OPTION_CHECKPOINT_ALL,
     .name = "checkpoint-all",
     .uses = {{.commands = COMPARE,
               .help = "every way to checkpoint, and how far each is above the "
                       "best plan in its memory (--plot: figure front)"}}},
    {.id = MS_OPTION_BUDGET,
     .name = "budget",
     .takes = MS_TAKES_VALUE,
     .value = "SIZE,SIZE",
     .uses = {{.commands = COMPARE,
               .help = "with --checkpoint-all: peaks of the best plans"}}},
    {.id = MS_OPTION_AT,
     .name = "at",
     .takes = MS_TAKES_VALUE,
     .value = "WHEN",
     .uses = {{.commands = MS_FOR_EXPLAIN | COMPARE,
               .help = "a time (12.5ms), a phase (forward, loss, backward or "
                       "optimizer: its peak) or an op (aten::mm: where it "
                       "stands highest) instead of the peak"}}},
    {.id = MS_OPTION_RANK,
     .name = "rank",
     .takes = MS_TAKES_VALUE,
     .value = "R",
     .uses = {{.commands = STEP | REPORT | DIFF,
               .help = "tell of this rank, such as a pipeline's stage, instead "
                       "of the one with the highest peak"},
              {.commands = PLOT,
               .help = "draw this rank of the run, timeline or gantt, instead "
                       "of the one that it was told of"}}},
    {.id = MS_OPTION_TOP,
     .name = "top",
     .takes = MS_TAKES_VALUE,
     .value = "N",
     .uses = {{.commands = MS_FOR_EXPLAIN | COMPARE | DIFF,
               .help =
                   "how many groups; 0: all (default 12, with --json all)"}}},
    {.id = MS_OPTION_COLOR,
     .name = "color",
     .takes = MS_TAKES_VALUE,
     .value = "WHEN",
     .uses = {{.commands = MODEL | DRAWN | CHECK,
               .help = "colours (default auto: on a terminal)",
               .words = "auto|always|never"}}},
    {.id = MS_OPTION_QUIET,
     .name = "quiet",
     .letter = 'q',
     .uses = {{.commands = RUN | COMPARE | FIT | DRAWN | REPORT | CHECK | DIFF,
               .help = "no summary and no notes, only what was asked for"},
              {.commands = SWEEP,
               .help = "no progress and no notes, only the rows"}}},
    {.id = MS_OPTION_BASELINE,
     .name = "baseline",
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .uses = {{.commands = CHECK,
               .help = "what the cases came to before (default: the file's "
                       "name with .baseline behind)"}}},
    {.id = MS_OPTION_UPDATE,
     .name = "update",
     .uses = {{.commands = CHECK,
               .help = "write the baseline anew, of what came out now"}}},
    {.id = MS_OPTION_MARKDOWN,
     .name = "markdown",
     .takes = MS_TAKES_VALUE,
     .value = "FILE",
     .uses = {{.commands = CHECK,
               .help = "write the table for a pull request; - is standard "
                       "output"}}},
    {.id = MS_OPTION_HELP,
     .name = "help",
     .letter = 'h',
     .uses = {{.commands = EVERY, .help = "print help"}}},
    {.id = MS_OPTION_VERSION,
     .name = "version",
     .uses = {{.commands = MS_FOR_TOP, .help = "print the version"}}},
};

const uint32_t ms_options_table_n =
    sizeof ms_options_table / sizeof ms_options_table[0];
