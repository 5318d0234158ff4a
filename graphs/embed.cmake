# SPDX-License-Identifier: GPL-3.0-or-later
#
# Turns graphs/models/builtin/*.json, graphs/models/huggingface/*.json with
# graphs/models/families/*.json, and graphs/devices/*.json into three C files:
# builtin.c, pages.c and devices.c: texts, read like those of users.
# Included by CMakeLists.txt it adds them to the target "graphs"; by hand:
#
#   cmake -DEMBED_OUTPUT=/tmp/embedded -P graphs/embed.cmake

set(EMBED_FOLDER ${CMAKE_CURRENT_LIST_DIR})

# A heading of memsim help models, with a colon, then its models by size.
set(EMBED_MODELS
    "Encoders and T5:"
    bert-base bert-large roberta-base roberta-large
    t5-small t5-base t5-large t5-3b t5-11b t5-v1.1-base flan-t5-large
    t5-v1.1-xxl megatron-t5
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
#include \"graphs/device.h\"
#include \"graphs/model.h\"\n\n")

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

# A table of the pages of a folder, and their number.
function(embed_page_table folder key table number result)
    file(GLOB files ${EMBED_FOLDER}/models/${folder}/*.json) # sorted by name
    list(LENGTH files n)
    set(rows "")
    foreach(file IN LISTS files)
        file(READ ${file} json)
        embed_get("${json}" ${file} ${key} name)
        embed_literal("${json}" text)
        string(APPEND rows "    {\"${name}\",\n     ${text}},\n")
    endforeach()
    set(${result} "const ms_page_text ${table}[] = {\n${rows}};
const uint32_t ${number} = ${n};\n" PARENT_SCOPE)
endfunction()

function(embed_pages output)
    embed_page_table(huggingface model_type ms_pages_all ms_pages_n types)
    embed_page_table(families family ms_pages_families ms_pages_n_families
                     families)
    set(include "#include \"graphs/models/pages/pagefile.h\"\n\n")
    file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "${EMBED_HEAD}${include}\
${types}\n${families}")
endfunction()

function(embed_devices output)
    file(GLOB files ${EMBED_FOLDER}/devices/*.json) # sorted by name
    list(LENGTH files n)
    set(rows "")
    foreach(file IN LISTS files)
        file(READ ${file} json)
        embed_get("${json}" ${file} name name)
        embed_get("${json}" ${file} alias alias)
        embed_literal("${json}" text)
        string(APPEND rows "    {\"${name}\", \"${alias}\",\n"
                           "     ${text}},\n")
    endforeach()
    file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "${EMBED_HEAD}\
const ms_device_text ms_devices[] = {\n${rows}};
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
         ${EMBED_FOLDER}/models/huggingface/*.json
         ${EMBED_FOLDER}/models/families/*.json ${EMBED_FOLDER}/devices/*.json)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
    # A model's text is longer than the 4095 characters that C11 promises.
    set_source_files_properties(${EMBED_OUTPUT}/builtin.c
                                ${EMBED_OUTPUT}/devices.c
                                ${EMBED_OUTPUT}/pages.c PROPERTIES
                                COMPILE_OPTIONS -Wno-overlength-strings)
    target_sources(graphs PRIVATE ${EMBED_OUTPUT}/builtin.c
                                  ${EMBED_OUTPUT}/devices.c
                                  ${EMBED_OUTPUT}/pages.c)
endif()
