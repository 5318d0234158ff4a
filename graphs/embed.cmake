# SPDX-License-Identifier: GPL-3.0-or-later
#
# Turns graphs/models/*.json, graphs/huggingface/*.json and
# graphs/devices/*.json into three C files: builtin.c and pages.c (texts, read
# like any model file) and devices.c (rows of numbers).
# Included by CMakeLists.txt it adds them to the target "graphs"; by hand:
#
#   cmake -DEMBED_OUTPUT=/tmp/embedded -P graphs/embed.cmake

set(EMBED_FOLDER ${CMAKE_CURRENT_LIST_DIR})

# Sorted by family, then size.
set(EMBED_MODELS
    bert-base bert-large
    gpt2 gpt2-medium gpt2-large gpt2-xl
    gpt3-small gpt3-medium gpt3-large gpt3-xl gpt3-2.7b gpt3-6.7b gpt3-13b
    gpt3
    llama-3.2-1b llama-2-7b llama-3-8b mixtral-8x7b
    mlp alexnet vgg11 vgg13 vgg16 vgg19
    resnet18 resnet34 resnet50 resnet101 resnet152 resnext50-32x4d
    densenet121 mobilenet-v2 efficientnet-b0
    vit-b16 vit-l16 swin-t convnext-t unet sd-1.5-unet lstm-lm)

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
    file(GLOB files ${EMBED_FOLDER}/models/*.json)
    list(LENGTH files n_files)
    list(LENGTH EMBED_MODELS n)
    if(NOT n EQUAL n_files)
        message(FATAL_ERROR "graphs/models has ${n_files} files, "
                            "graphs/embed.cmake lists ${n}")
    endif()
    set(rows "")
    foreach(name IN LISTS EMBED_MODELS)
        set(file ${EMBED_FOLDER}/models/${name}.json)
        file(READ ${file} json)
        embed_get("${json}" ${file} summary summary)
        embed_literal("${json}" text)
        embed_literal("${summary}" summary)
        string(APPEND rows "    {\"${name}\",\n     ${text},\n"
                           "     ${summary}},\n")
    endforeach()
    file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "${EMBED_HEAD}\
const ms_builtin ms_builtin_models[] = {\n${rows}};
const uint32_t ms_builtin_n_models = ${n};\n")
endfunction()

function(embed_pages output)
    file(GLOB files ${EMBED_FOLDER}/huggingface/*.json) # sorted by name
    list(LENGTH files n)
    set(rows "")
    foreach(file IN LISTS files)
        file(READ ${file} json)
        embed_get("${json}" ${file} model_type name)
        embed_literal("${json}" text)
        string(APPEND rows "    {\"${name}\",\n     ${text}},\n")
    endforeach()
    set(include "#include \"graphs/huggingface/huggingface.h\"\n\n")
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
            cublas_workspace_bytes multiprocessors threads_per_multiprocessor
            launch_us kernel_us fp32_tflops tf32_tflops
            half_tflops half_matmul_tflops h2d_gbps d2h_gbps
            nvlink_gbps network_gbps gpus_per_node
            dram_gbps pageable_share nvme_read_gbps nvme_write_gbps
            host_memory_gib nvme_gib peer_gbps nvls_share)
        embed_get("${json}" ${file} ${key} ${key})
    endforeach()
    embed_literal("${source}" source)
    embed_curves("${json}" ${file} curves n_curves)
    set(${result} "    {.name = \"${name}\",
     .alias = \"${alias}\",
     .source = ${source},
     .memory_bytes = (uint64_t)(${memory_gib} * 1073741824.0),
     .context_bytes = (uint64_t)(${context_mib} * 1048576.0),
     .cublas_workspace_bytes = ${cublas_workspace_bytes},
     .multiprocessors = ${multiprocessors},
     .threads_per_multiprocessor = ${threads_per_multiprocessor},
     .launch_ns = (uint64_t)(${launch_us} * 1e3),
     .kernel_ns = (uint64_t)(${kernel_us} * 1e3),
     .hbm_bytes_per_s = ${hbm_gbps} * 1e9,
     .fp32_flops = ${fp32_tflops} * 1e12,
     .tf32_flops = ${tf32_tflops} * 1e12,
     .half_flops = ${half_tflops} * 1e12,
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
     .dram_bytes_per_s = ${dram_gbps} * 1e9,
     .pageable_share = ${pageable_share},
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
    file(GLOB files CONFIGURE_DEPENDS ${EMBED_FOLDER}/models/*.json
         ${EMBED_FOLDER}/huggingface/*.json ${EMBED_FOLDER}/devices/*.json)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
    # A model's text is longer than the 4095 characters that C11 promises.
    set_source_files_properties(${EMBED_OUTPUT}/builtin.c
                                ${EMBED_OUTPUT}/pages.c PROPERTIES
                                COMPILE_OPTIONS -Wno-overlength-strings)
    target_sources(graphs PRIVATE ${EMBED_OUTPUT}/builtin.c
                                  ${EMBED_OUTPUT}/devices.c
                                  ${EMBED_OUTPUT}/pages.c)
endif()
