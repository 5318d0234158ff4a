# SPDX-License-Identifier: GPL-3.0-or-later
#
# Turns graphs/models/builtin/*.json, graphs/models/huggingface/*.json and
# graphs/devices/*.json into three C files: builtin.c and pages.c (texts, read
# like any model file) and devices.c (rows of numbers).
# Included by CMakeLists.txt it adds them to the target "graphs"; by hand:
#
#   cmake -DEMBED_OUTPUT=/tmp/embedded -P graphs/embed.cmake

set(EMBED_FOLDER ${CMAKE_CURRENT_LIST_DIR})

# A heading of memsim help models, with a colon, then its models by size.
set(EMBED_MODELS
    "Encoders and T5:"
    bert-base bert-large roberta-base roberta-large
    t5-small t5-base t5-large t5-3b t5-11b t5-v1.1-base flan-t5-large
    t5-v1.1-xxl
    "GPT-2, GPT-3 and those after them:"
    gpt2 gpt2-medium gpt2-large gpt2-xl
    gpt3-small gpt3-medium gpt3-large gpt3-xl gpt3-2.7b gpt3-6.7b gpt3-13b
    gpt3
    opt-125m opt-350m opt-1.3b opt-6.7b
    bloom-560m bloom-3b bloom-7b1 bloom
    pythia-410m pythia-1.4b pythia-2.8b pythia-12b gpt-neox-20b
    falcon-7b falcon-40b mpt-7b mpt-30b
    "LLaMA and Mistral:"
    llama-7b llama-13b llama-33b llama-65b
    llama-2-7b llama-2-13b llama-2-70b
    llama-3-8b llama-3-70b llama-3.1-8b llama-3.1-70b llama-3.1-405b
    llama-3.2-1b llama-3.2-3b
    mistral-7b
    "Qwen, Gemma, Phi and OLMo:"
    qwen2-0.5b qwen2-1.5b qwen2-7b qwen2-72b
    qwen2.5-0.5b qwen2.5-3b qwen2.5-7b qwen2.5-32b qwen2.5-72b
    qwen3-0.6b qwen3-1.7b qwen3-4b qwen3-8b qwen3-14b qwen3-32b
    gemma-2b gemma-7b gemma-2-2b gemma-2-9b gemma-2-27b
    gemma-3-1b gemma-3-4b gemma-3-12b gemma-3-27b
    phi-3-mini phi-4 olmo-2-7b olmo-2-13b
    "Mixtures of experts:"
    mixtral-8x7b mixtral-8x22b qwen3-30b-a3b qwen3-235b-a22b
    gpt-oss-20b gpt-oss-120b
    deepseek-v2-lite deepseek-v2 deepseek-v3 kimi-k2
    "Images, and others:"
    mlp alexnet vgg11 vgg13 vgg16 vgg19
    resnet18 resnet34 resnet50 resnet101 resnet152 resnext50-32x4d
    densenet121 mobilenet-v2 efficientnet-b0
    vit-b16 vit-l16 vit_tiny_patch16_224 vit_small_patch16_224
    vit_base_patch32_224 vit_base_patch16_224 vit_large_patch16_224
    swin-t convnext-t unet sd-1.5-unet lstm-lm)

set(EMBED_HEAD "/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Made by graphs/embed.cmake. */
#include \"graphs/graphs.h\"\n\n")

# The text as C string literals, one per line.
function(embed_literal text result)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" "\\n\"\n     \"" text "${text}")
    set(${result} "\"${text}\"" PARENT_SCOPE)
endfunction()

# The value of a key of a JSON text; a missing key is fatal.
function(embed_get json file key result)
    string(JSON value ERROR_VARIABLE error GET "${json}" ${key})
    if(error)
        message(FATAL_ERROR "${file}: ${error}")
    endif()
    set(${result} "${value}" PARENT_SCOPE)
endfunction()

function(embed_models output)
    file(GLOB files ${EMBED_FOLDER}/models/builtin/*.json)
    list(LENGTH files n_files)
    set(n 0)
    set(rows "")
    foreach(name IN LISTS EMBED_MODELS)
        if(name MATCHES ":$")
            string(REPLACE ":" "" group "${name}")
            continue()
        endif()
        math(EXPR n "${n} + 1")
        set(file ${EMBED_FOLDER}/models/builtin/${name}.json)
        file(READ ${file} json)
        embed_get("${json}" ${file} summary summary)
        embed_literal("${json}" text)
        embed_literal("${summary}" summary)
        string(APPEND rows "    {\"${name}\",\n     ${text},\n"
                           "     ${summary},\n     \"${group}\"},\n")
    endforeach()
    if(NOT n EQUAL n_files)
        message(FATAL_ERROR "graphs/models/builtin has ${n_files} files, "
                            "graphs/embed.cmake lists ${n}")
    endif()
    file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "${EMBED_HEAD}\
const ms_builtin ms_builtin_models[] = {\n${rows}};
const uint32_t ms_builtin_n_models = ${n};\n")
endfunction()

function(embed_pages output)
    file(GLOB files ${EMBED_FOLDER}/models/huggingface/*.json) # sorted by name
    list(LENGTH files n)
    set(rows "")
    foreach(file IN LISTS files)
        file(READ ${file} json)
        embed_get("${json}" ${file} model_type name)
        embed_literal("${json}" text)
        string(APPEND rows "    {\"${name}\",\n     ${text}},\n")
    endforeach()
    set(include "#include \"graphs/models/huggingface/huggingface.h\"\n\n")
    file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "${EMBED_HEAD}${include}\
const ms_huggingface_page ms_pages_all[] = {\n${rows}};
const uint32_t ms_pages_n = ${n};\n")
endfunction()

# The array of curves of a device as a C expression, and its length.
function(embed_curves json file result length)
    string(JSON n LENGTH "${json}" allreduce_curves)
    set(${length} ${n} PARENT_SCOPE)
    set(${result} NULL PARENT_SCOPE)
    if(n EQUAL 0)
        return()
    endif()
    embed_get("${json}" ${file} gpus_per_node per_node)
    set(rows "")
    math(EXPR last "${n} - 1")
    foreach(i RANGE ${last})
        string(JSON ranks GET "${json}" allreduce_curves ${i} ranks)
        string(JSON n_points LENGTH "${json}" allreduce_curves ${i} kib)
        set(points "")
        math(EXPR last_point "${n_points} - 1")
        foreach(j RANGE ${last_point})
            string(JSON kib GET "${json}" allreduce_curves ${i} kib ${j})
            string(JSON gbps GET "${json}" allreduce_curves ${i} gbps ${j})
            string(APPEND points "{UINT64_C(${kib}) << 10, ${gbps} * 1e9}, ")
        endforeach()
        string(APPEND rows "{${ranks}, ${per_node}, ${n_points},
         (const ms_curve_point[]){${points}}}, ")
    endforeach()
    set(${result} "(const ms_curve[]){${rows}}" PARENT_SCOPE)
endfunction()

# The device files speak GiB, us, GB/s and TFLOP/s as data sheets do; the C
# compiler turns them into bytes, ns and units per second.
function(embed_device file result)
    file(READ ${file} json)
    foreach(key IN ITEMS name alias source memory_gib context_mib hbm_gbps
            context_eager_mib context_11_3_mib context_11_7_mib
            context_station_mib context_station_cudnn_mib
            cudnn_share cudnn_from_mib nccl_mib nccl_channels
            cublas_workspace_bytes multiprocessors threads_per_multiprocessor
            launch_us kernel_us fp32_tflops tf32_tflops
            half_tflops half_matmul_tflops fp8_tflops fp8_matmul_tflops
            compute_capability h2d_gbps d2h_gbps
            nvlink_gbps network_gbps gpus_per_node
            dram_gbps pageable_share nvme_read_gbps nvme_write_gbps
            host_memory_gib nvme_gib host_memory_source peer_gbps nvls_share
            fault_us one_memory)
        embed_get("${json}" ${file} ${key} ${key})
    endforeach()
    embed_literal("${source}" source)
    embed_literal("${host_memory_source}" host_memory_source)
    set(fp8_share "${half_matmul_tflops} / (double)${half_tflops}")
    if(fp8_tflops GREATER 0)
        set(fp8_share "${fp8_matmul_tflops} / (double)${fp8_tflops}")
    endif()
    embed_curves("${json}" ${file} curves n_curves)
    set(${result} "    {.name = \"${name}\",
     .alias = \"${alias}\",
     .source = ${source},
     .memory_bytes = (uint64_t)(${memory_gib} * 1073741824.0),
     .context_bytes = (uint64_t)(${context_mib} * 1048576.0),
     .context_eager_bytes = (uint64_t)(${context_eager_mib} * 1048576.0),
     .context_11_3_bytes = (uint64_t)(${context_11_3_mib} * 1048576.0),
     .context_11_7_bytes = (uint64_t)(${context_11_7_mib} * 1048576.0),
     .context_station_bytes = (uint64_t)(${context_station_mib} * 1048576.0),
     .context_station_cudnn_bytes =
         (uint64_t)(${context_station_cudnn_mib} * 1048576.0),
     .cudnn_share = ${cudnn_share},
     .cudnn_from_bytes = (uint64_t)(${cudnn_from_mib} * 1048576.0),
     .nccl_bytes = (uint64_t)(${nccl_mib} * 1048576.0),
     .nccl_channels = ${nccl_channels},
     .cublas_workspace_bytes = ${cublas_workspace_bytes},
     .multiprocessors = ${multiprocessors},
     .threads_per_multiprocessor = ${threads_per_multiprocessor},
     .launch_ns = (uint64_t)(${launch_us} * 1e3),
     .kernel_ns = (uint64_t)(${kernel_us} * 1e3),
     .hbm_bytes_per_s = ${hbm_gbps} * 1e9,
     .fp32_flops = ${fp32_tflops} * 1e12,
     .tf32_flops = ${tf32_tflops} * 1e12,
     .half_flops = ${half_tflops} * 1e12,
     .fp8_flops = ${fp8_tflops} * 1e12,
     .fp8_matmul_share = ${fp8_share},
     .compute_capability = ${compute_capability},
     .h2d_bytes_per_s = ${h2d_gbps} * 1e9,
     .d2h_bytes_per_s = ${d2h_gbps} * 1e9,
     .nvlink_bytes_per_s = ${nvlink_gbps} * 1e9,
     .network_bytes_per_s = ${network_gbps} * 1e9,
     .peer_bytes_per_s = ${peer_gbps} * 1e9,
     .gpus_per_node = ${gpus_per_node},
     .nvls_share = ${nvls_share},
     .curves = ${curves},
     .n_curves = ${n_curves},
     .host_memory_bytes = (uint64_t)(${host_memory_gib} * 1073741824.0),
     .nvme_bytes = (uint64_t)(${nvme_gib} * 1073741824.0),
     .host_memory_source = ${host_memory_source},
     .dram_bytes_per_s = ${dram_gbps} * 1e9,
     .pageable_share = ${pageable_share},
     .fault_ns = (uint64_t)(${fault_us} * 1e3),
     .one_memory = ${one_memory},
     .nvme_read_bytes_per_s = ${nvme_read_gbps} * 1e9,
     .nvme_write_bytes_per_s = ${nvme_write_gbps} * 1e9,
     .matmul_share = ${half_matmul_tflops} / (double)${half_tflops}},\n" PARENT_SCOPE)
endfunction()

function(embed_devices output)
    file(GLOB files ${EMBED_FOLDER}/devices/*.json) # sorted by name
    list(LENGTH files n)
    set(rows "")
    foreach(file IN LISTS files)
        embed_device(${file} row)
        string(APPEND rows "${row}")
    endforeach()
    file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "${EMBED_HEAD}\
const ms_device ms_devices[] = {\n${rows}};
const uint32_t ms_devices_n = ${n};\n")
endfunction()

if(NOT EMBED_OUTPUT)
    set(EMBED_OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/embedded)
endif()
embed_models(${EMBED_OUTPUT}/builtin.c)
embed_devices(${EMBED_OUTPUT}/devices.c)
embed_pages(${EMBED_OUTPUT}/pages.c)

if(NOT CMAKE_SCRIPT_MODE_FILE)
    file(GLOB files CONFIGURE_DEPENDS ${EMBED_FOLDER}/models/builtin/*.json
         ${EMBED_FOLDER}/models/huggingface/*.json ${EMBED_FOLDER}/devices/*.json)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
    # A model's text is longer than the 4095 characters that C11 promises.
    set_source_files_properties(${EMBED_OUTPUT}/builtin.c
                                ${EMBED_OUTPUT}/pages.c PROPERTIES
                                COMPILE_OPTIONS -Wno-overlength-strings)
    target_sources(graphs PRIVATE ${EMBED_OUTPUT}/builtin.c
                                  ${EMBED_OUTPUT}/devices.c
                                  ${EMBED_OUTPUT}/pages.c)
endif()
