#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every comparison with numbers from outside, as a table on standard output:
#
#   tests/truth/table.sh [BUILD]            default: build
#   tests/truth/table.sh --readme [BUILD]   writes tests/truth/README.md too
set -eu
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
readme=
if [ "${1-}" = --readme ]; then
    readme=$here/README.md
    shift
    export MEMSIM_TRUTH=/nonexistent # the same README everywhere
fi
build=${1-$here/../../build}
tests=$build/tests/memsim-tests
if [ ! -x "$tests" ]; then
    echo "table.sh: no $tests; give the build folder" >&2
    exit 2
fi

rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
for file in "$here"/test_*.c; do
    name=${file##*/test_}
    name=${name%.c}
    status=0
    CK_RUN_SUITE=$name CK_VERBOSITY=silent MEMSIM_TRUTH_TABLE=$rows \
        "$tests" >/dev/null || status=$?
    case $status in
    0 | 77) ;; # 77: skipped
    *) echo "table.sh: truth.$name fails" >&2 ;;
    esac
done

widths() { # columns as wide as their widest cell; numbers to the right
    awk -F '\t' '{ n[NR] = $0; for (i = 1; i <= 6; i++)
            if (length($i) > w[i]) w[i] = length($i) }
        END { for (r = 1; r <= NR; r++) { split(n[r], c, "\t")
            printf "%-*s  %-*s  %-*s  %*s  %*s  %*s%s\n", w[1], c[1],
                w[2], c[2], w[3], c[3], w[4], c[4], w[5], c[5], w[6], c[6],
                c[7] == "" ? "" : "  " c[7] } }'
}

counts() { # group, comparisons, equal, expected differences
    awk -F '\t' '!($1 in all) { order[++n] = $1 }
        { all[$1]++; equal[$1] += $6 == 0; other[$1] += $7 == "NOT EXPECTED" }
        END { for (i = 1; i <= n; i++) { g = order[i]
            printf "| %s | %d | %d | %d | %d |\n", g, all[g], equal[g],
                all[g] - equal[g] - other[g], other[g] } }' "$rows"
}

mechanisms() { # group, quantity, how many comparisons, mechanism
    awk -F '\t' '$7 != "" { key = $1 " | " $3 " | " $7
            if (!(key in seen)) order[++n] = key
            seen[key]++ }
        END { for (i = 1; i <= n; i++) { split(order[i], c, " \\| ")
            printf "| %s | %s | %d | %s |\n", c[1], c[2], seen[order[i]],
                c[3] } }' "$rows"
}

{
    printf 'group\tcase\tquantity\ttruth\tmemsim\tdifference\tmechanism\n'
    cat "$rows"
} | widths
[ -n "$readme" ] || exit 0
{
    cat <<'END'
<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<!-- Made by tests/truth/table.sh --readme; do not edit. -->
# Truth: memsim against numbers from outside

`tests/truth/table.sh BUILD` prints every comparison: case, quantity, truth,
memsim, difference, mechanism. The CTests `truth.*` fail on any difference
that `differences.tsv` does not list to the last unit.

| group | comparisons | equal | expected differences | unexpected |
|---|---|---|---|---|
END
    counts
    cat <<'END'

| group | from |
|---|---|
| allocator | PyTorch's own allocator over a simulated device (`allocator/`) |
| chains | closed forms by counting, after Chen et al. 2016 (`test_chains.c`) |
| claims | swap, offload, recomputation as published (`claims.tsv`) |
| costs | Korthikanti et al. 2022, FLOPs (`test_costs.c`) |
| counts | parameter counts of papers, presets and logs (`counts.tsv`) |
| experts | experts and chunked losses, by hand count (`test_experts.c`) |
| h100 | peaks of steps on an H100, PyTorch 2.11 (`h100peaks.tsv`) |
| gpu | recorded steps of real GPUs, torch 2.x (`gpu.tsv`, `gpu_orders.tsv`) |
| gpt3 | Korthikanti et al. 2022 per layer, and the ends (`test_gpt3_shape.c`) |
| hfops | ops of Hugging Face's code as PyTorch 1.13.1 runs them (`hfops.tsv`) |
| huggingface | published counts (`huggingface.tsv`, `heads.tsv`) |
| korthikanti | Korthikanti et al. 2022, bytes (`korthikanti.tsv`) |
| kernels | measured kernels that nothing was fitted on (`kernels.sh`) |
| layers | single layers, rules measured with PyTorch 1.13.1 (`layers.tsv`) |
| liger | operators in Liger's benchmarks, plain and fused (`liger.tsv`) |
| links | collectives by size on real nodes (`links.tsv`) |
| llm.c | what llm.c prints; its tensors in `llmc_gpt2.json` |
| modern | LLaMA's layer, by the save lists of its kernels (`test_modern.c`) |
| nets | small networks of PyTorch 1.13.1, exported and measured (`nets.tsv`) |
| op graphs | exported from PyTorch 1.13.1, and their steps (`opgraphs.tsv`) |
| ladder | torchtune's published peaks, step by step (`ladder.tsv`) |
| nvidia-smi | what it showed of processes (`test_smi.c`) |
| nvidia-smi nets | errors on timm's models that nothing was fitted on, MLPs |
| lora | PEFT's and torchtune's measured runs of Llama-3.2-3B (`lora.tsv`) |
| optimizers | torch.optim of PyTorch 1.13.1, measured (`optimizers.tsv`) |
| saves | what hooks of PyTorch 1.13.1 see nodes save (`saves.tsv`) |
| rules | per-op experiments with PyTorch 1.13.1 (`rules.tsv`, `rules.jsonl`) |
| reductions | scratch of CUDA reductions in recorded steps (`test_scratch.c`) |
| precisions | memory that Transformer Engine documents (`te_memory.tsv`) |
| states | ZeRO (`states.tsv`), tables by precision (`precisions.tsv`) |
| torch | measured steps of PyTorch 1.13.1 (`torch.tsv`) |
| megatron | Megatron-LM's CI and logs (`megatron.tsv`), layers by hand count |
| pipelines | bubbles and sets (`zerobubble.tsv`), Megatron-LM's rates |
| splits | peaks of ranks that split layers: SimuMax, nanotron (`splits.tsv`) |
| vision | built-in networks, steps of PyTorch 1.13.1 (`vision.tsv`) |
| torchinfo | what torchinfo and torchsummary print (`torchinfo*.tsv`) |
| timm | fvcore's counts of timm's models, within 1 % (`timm.tsv`) |
| published | published counts of parameters and FLOPs (`published.tsv`) |
| fits | published runs that fitted their device or did not (`fits.tsv`) |
| changes | published measurements of steps, and between two (`changes.tsv`) |
| orders | published runs, from most memory to least (`orders.tsv`) |
| zero | ZeRO's table 1 and volumes (`zero.tsv`), Megatron-LM's CI |
| deepspeed | DeepSpeed's estimators, parts and volumes (`deepspeed.tsv`) |
| unitchains | equal layers: Checkmate, rk-rotor (`unitchains.tsv`) |
| linearunits | equal layers in DTR's simulator (`linearunits.tsv`) |
| dtrhardware | what DTR recomputed on a Titan V (`dtrhardware.tsv`) |

Expected differences:

| group | quantity | comparisons | mechanism |
|---|---|---|---|
END
    mechanisms
    cat <<'END'

Claims that memsim cannot express, and are not compared: DTR's speed by budget;
windows of layers in device memory (STRONGHOLD) and L2L; DeepSpeed without
16-bit weights, so that STRONGHOLD's rows of ZeRO-Offload run on the paper's
schedule and those of ZeRO-Infinity not at all; FPDT; moving optimizer states in
for the step alone;
activations on the disk (SSDTrain's go to host memory here); G10's placements
(only the order of no limit, planned swaps and paging). axolotl's 3776 has one
peak with and without the inputs of layers in memory: memsim's is within 5 % of
either, and falls by 6 %, to where the last gradients are made.
END
} >"$readme"
