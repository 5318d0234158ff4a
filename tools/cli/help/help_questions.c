/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Help by questions: short pages that answer with commands to copy. */

#include "sim/base/words.h"
#include "tools/cli/help/help.h"
#include "tools/terminal/screen.h"
#include "tools/terminal/textlines.h"

#include <string.h>

typedef struct question {
    const char *name, *asks;
    const char *words; /* other words that lead here: "a|b" */
    const char *answer;
} question;

static const question questions[] = {
    {"oom", "CUDA out of memory: what is too large, what helps?",
     "out of memory|cuda out of memory|cuda oom|out of memory error|"
     "torch.cuda.OutOfMemoryError|torch.OutOfMemoryError|OutOfMemoryError|"
     "memory error|does not fit|too large|nvidia-smi|reserved|allocated|"
     "reserved memory|max_split_size_mb",
     "run says whether the step fits, what is largest at its peak, which "
     "change "
     "makes it\nfit and what that costs:\n\n"
     "    memsim run gpt2-xl --batch 8 --device 4090\n\n"
     "What is alive at the peak, tensor by tensor, and what removes each:\n\n"
     "    memsim explain gpt2-xl --batch 8 --device 4090\n\n"
     "The fastest set-up that fits:\n\n"
     "    memsim fit gpt2 --batch 64 --device 4090\n\n"
     "Where PyTorch says that much is reserved but unallocated, other options "
     "of its\nallocator help:\n\n"
     "    memsim compare gpt2 --batch 8 --allocators "
     "'torch;torch,expandable_segments:True'\n\n"
     "What a run of yours held when it failed: memsim alloc and memsim diff "
     "read its\nsnapshot (memsim help recorded).\n"},
    {"fit", "which set-up is the fastest that fits?",
     "does it fit|will it fit|how many gpus|which gpu|auto|autotune",
     "On one GPU, and on several numbers of them:\n\n"
     "    memsim fit gpt2 --device 4090\n"
     "    memsim fit gpt2 --device 4090 --gpus 1,2,4\n\n"
     "With a batch of the whole job, which pipelines share, too:\n\n"
     "    memsim fit gpt2 --gpus 4 --global-batch 32\n\n"
     "Whether one set-up fits, as the exit status (1: it does not):\n\n"
     "    memsim run gpt2 --batch 8 --device 4090 --check\n"},
    {"batch", "how large may the batch be, what do micro-batches change?",
     "batch size|micro batch|micro batches|micro batch size|gradient "
     "accumulation|grad accum|accumulation steps|throughput",
     "The largest that fits, alone and with checkpoints:\n\n"
     "    memsim fit gpt2 -p none --max batch\n"
     "    memsim fit gpt2 -p checkpoint:full --max batch\n\n"
     "--batch is what a rank sees in a step; gradient accumulation divides it "
     "into\nmicro-batches:\n\n"
     "    memsim run gpt2 --batch 32 -p microbatch:4\n"
     "    memsim compare gpt2 --batch 32 -p none -p microbatch:4 -p "
     "microbatch:32\n\n"
     "How memory and tokens a second grow:\n\n"
     "    memsim sweep gpt2 --grid 'batch=1..64*2'\n"},
    {"long-context", "how long may a sequence be?",
     "context|long context|context length|sequence length|seq len|long "
     "sequences|max length|sequence",
     "The longest that fits on one GPU:\n\n"
     "    memsim fit gpt2 -p none --max sequence\n\n"
     "Attention that is not flash keeps a square of the sequence:\n\n"
     "    memsim compare gpt2 --sequence 1024 --grid kernels=eager,flash\n\n"
     "Ranks that divide the sequence (context parallelism, ring attention), "
     "and what\nhelps beside it:\n\n"
     "    memsim run llama-3-8b --sequence 32768 -p fsdp:dp=8+context:8\n"
     "    memsim run llama-3-8b --sequence 32768 -p "
     "fsdp:dp=8+context:8+checkpoint:full\n"
     "    memsim compare llama-3-8b --sequence 8192 -p fsdp:dp=8 --grid "
     "loss_kernel=auto,ce_with_chunked_output\n"},
    {"lora", "what do LoRA and QLoRA save?",
     "qlora|adapters|peft|finetuning|fine tuning|finetune|fine tune|frozen|"
     "bitsandbytes|bnb",
     "Adapters train beside frozen weights, which have no gradient and no "
     "optimizer\nstate; QLoRA holds them in 4 bits:\n\n"
     "    memsim run gpt2 --set lora.rank=16\n"
     "    memsim run gpt2 --set lora.rank=16 --set lora.base=nf4\n"
     "    memsim compare gpt2 --set lora.rank=16 --grid "
     "lora.base=weights,nf4\n\n"
     "Activations stay, so that checkpoints still help:\n\n"
     "    memsim run gpt2 --batch 8 --set lora.rank=16 -p checkpoint:full\n\n"
     "Only the last blocks train, the others are frozen:\n\n"
     "    memsim run gpt2 --set frozen.blocks=8\n"},
    {"kernels", "what do flash attention and fused kernels change?",
     "flash attention|flash|sdpa|eager|fused kernels|liger|fused|unsloth|"
     "xformers|attention implementation|attn implementation|triton|cublas",
     "Attention, norms, gates and the loss, each as its kernels are:\n\n"
     "    memsim compare gpt2 --batch 8 --grid kernels=eager,flash,fused\n\n"
     "The loss in pieces, without all logits at once:\n\n"
     "    memsim run gpt2 --batch 8 --set "
     "loss_kernel=ce_with_chunked_output\n\n"
     "One kernel for the optimizer's step:\n\n"
     "    memsim run gpt2 --set optimizer_impl=fused\n\n"
     "What attention keeps, by name:\n\n"
     "    memsim explain gpt2 --kernels eager --top 5\n"},
    {"offload", "what fits when states or activations go to the host?",
     "cpu offload|offloading|zero offload|zero infinity|host memory",
     "Optimizer state, gradients and weights on the host, or on its disk:\n\n"
     "    memsim run gpt2-xl --batch 8 -p offload:optimizer\n"
     "    memsim run gpt2-xl --batch 8 -p "
     "offload:optimizer/params,to=nvme\n\n"
     "Activations, against checkpoints:\n\n"
     "    memsim compare gpt2-xl --batch 8 -p swap:save_on_cpu -p swap:te=12 "
     "-p checkpoint:full\n\n"
     "DeepSpeed's ZeRO-Offload on four GPUs:\n\n"
     "    memsim run gpt2-xl --gpus 4 -p zero:2+offload:optimizer/gradients\n"},
    {"shard", "which states do GPUs share: DDP, ZeRO, FSDP?",
     "sharding|sharded|data parallelism|optimizer sharding|sharded optimizer|"
     "sharded data parallel|optimizer state sharding",
     "Each stage shares more and sends more:\n\n"
     "    memsim compare gpt2-xl --gpus 8 -p ddp -p zero:1 -p zero:2 -p zero:3 "
     "-p fsdp\n\n"
     "As DeepSpeed or Megatron-LM runs it, with their buffers:\n\n"
     "    memsim run gpt2-xl --gpus 8 -p zero:2,impl=deepspeed\n"
     "    memsim run gpt2-xl --gpus 8 -p zero:1,impl=megatron\n\n"
     "Groups of two share, between them are copies (HSDP):\n\n"
     "    memsim run gpt2-xl --gpus 8 -p fsdp:shard=2\n\n"
     "Ranks that split each layer, beside them:\n\n"
     "    memsim run gpt2-xl --batch 4 --gpus 8 -p tensor:4,sp+zero:1 --set "
     "model.heads=20\n"},
    {"pipeline", "which stage is full, which idle?",
     "pipeline parallelism|pipeline bubbles|bubble|1f1b|stages",
     "Stages, what each holds and how long it is idle; the schedule as a "
     "figure:\n\n"
     "    memsim run gpt2-xl --batch 16 -p pipeline:4+microbatch:16\n"
     "    memsim run gpt2-xl --batch 16 -p pipeline:4+microbatch:16 --figure "
     "pipeline --plot\n\n"
     "Other schedules:\n\n"
     "    memsim compare gpt2-xl --batch 16 -p microbatch:16 --grid "
     "'pipeline=4;4,schedule=gpipe;4,schedule=zb-h1'\n\n"
     "The same stage by stage, with checkpoints:\n\n"
     "    memsim run gpt2-xl --batch 16 -p "
     "pipeline:4+microbatch:16+checkpoint:full\n"},
    {"time", "how long does a step take, how far off may that be?",
     "speed|step time|accuracy|mfu|how accurate|error|tokens per second|"
     "profiler|kineto|nccl",
     "Beside time and peak stands how far measured runs of this kind were "
     "off:\n\n"
     "    memsim run gpt2 --batch 8\n\n"
     "What the step waits for, by stream:\n\n"
     "    memsim run gpt2-xl --batch 8 -p swap:te=12 --figure gantt --plot\n\n"
     "Which of several is faster, or whether that is within the error:\n\n"
     "    memsim compare gpt2 --batch 8 -p none -p checkpoint:sqrt -p "
     "checkpoint:full\n\n"
     "With the rates of your own GPU: memsim help measurements.\n"},
    {"settings", "and with my DeepSpeed, Accelerate, Megatron-LM settings?",
     "ds_config|ds_config.json|deepspeed config|accelerate|accelerate config|"
     "training arguments|training_args.json|torchtitan|megatron|megatron lm|"
     "axolotl|llama factory|my config|config|trainer|hugging face trainer",
     "--from takes the file as it is and says what it understood:\n\n"
     "    echo '{\"train_micro_batch_size_per_gpu\": 4, \"zero_optimization\": "
     "{\"stage\": 2}}' > ds_config.json\n"
     "    memsim run gpt2 --gpus 8 --from ds_config.json\n\n"
     "MODEL may be your config.json of Hugging Face:\n\n"
     "    memsim inspect gpt2 --dump model > mine.json\n"
     "    memsim run ./mine.json --batch 2\n\n"
     "Formats and their keys: memsim help from; keys of config.json: memsim "
     "help\nhuggingface.\n"},
    {"recorded", "what does my real run hold that the prediction lacks?",
     "snapshot|memory snapshot|memory_viz|pickle|recording|leak|leaks|"
     "fragmentation|memory leak",
     "A snapshot of torch.cuda.memory._dump_snapshot against the model (here "
     "one that is\nsimulated stands for yours):\n\n"
     "    memsim run gpt2 --batch 4 --snapshot snapshot.pickle\n"
     "    memsim diff snapshot.pickle gpt2 --batch 8\n\n"
     "The same requests through other options of the allocator:\n\n"
     "    memsim alloc snapshot.pickle --allocator torch --allocator "
     "torch,expandable_segments:True\n\n"
     "Those of all ranks, which is highest and why: memsim alloc "
     "rank0.pickle rank1.pickle.\n"
     "What it grows by from step to step: memsim alloc --leaks, of one "
     "snapshot or of\nthree and more that follow each other.\n"},
    {"python", "how do I ask from Python, or in a test?",
     "python package|import|import memsim|jupyter|notebook|pytest|api|wheel|"
     "pandas",
     "The package (sh tools/python/wheel.sh builds the wheel) answers as the "
     "program does:\n\n"
     "    python3 -c \"import memsim; print(memsim.run('gpt2', "
     "batch=8).peak)\"\n"
     "    python3 -c \"import memsim; print(memsim.compare('gpt2', "
     "policy=['none', 'checkpoint:full']))\"\n\n"
     "Elsewhere every command has --json:\n\n"
     "    memsim run gpt2 --json\n"},
    {"ci", "how do I fail a merge when the peak grows?",
     "gate|continuous integration|pull request|regression|github action|"
     "gitlab|slurm|prolog",
     "Cases with limits in a file, the baseline beside it:\n\n"
     "    echo '{\"memsim_checks\": 1, \"cases\": [{\"name\": \"small\", "
     "\"model\": \"gpt2\", \"limit\": \"8GiB\"}]}' > cases.json\n"
     "    memsim check cases.json --update\n"
     "    memsim check cases.json --markdown comment.md\n\n"
     "Its keys, and jobs for GitHub, GitLab and Slurm: memsim help checks.\n"},
};
#define N_QUESTIONS (sizeof questions / sizeof questions[0])

const char *ms_help_questions_name(uint32_t i, const char **asks)
{
    if (i >= N_QUESTIONS)
        return NULL;
    *asks = questions[i].asks;
    return questions[i].name;
}

/* A question's name, or any word that leads to it. */
static const question *find(const char *word)
{
    size_t length = strlen(word);
    for (size_t i = 0; i < N_QUESTIONS; i++)
        if (ms_words_same(questions[i].name, strlen(questions[i].name), word,
                          length))
            return &questions[i];
    for (size_t i = 0; i < N_QUESTIONS; i++)
        if (ms_words_index(questions[i].words, word, length) >= 0)
            return &questions[i];
    return NULL;
}

const char *ms_help_questions_put(const char *word, ms_text *text)
{
    const question *row = find(word);
    if (row == NULL)
        return NULL;
    const char *label = ms_arena_format(text->arena, "%s:", row->name);
    text->failed |= label == NULL;
    if (label != NULL)
        ms_screen_fill(text, (uint32_t)strlen(label) + 1, label, row->asks);
    ms_text_add(text, "\n");
    ms_textlines_prose(row->answer, text);
    return row->name;
}
