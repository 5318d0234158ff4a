/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "graphs/models/files/namewords.h"
#include "graphs/device.h"
#include "graphs/model.h"
#include "graphs/models/files/reader.h"
#include "sim/names.h"

#include <stdio.h>
#include <string.h>

/* ---- devices ------------------------------------------------------------- */

#define NEAR "the nearest that is built in, with its memory; or write a file "

/* The names that people use for devices, without brands. */
static const ms_word devices[] = {
    MS_WORD_MEANS(NULL,
                  "a100-80gb|a100-sxm|a100-sxm4|a100-sxm4-80gb|a100-sxm-80gb",
                  "a100-80gb-sxm"),
    MS_WORD_MEANS(NULL, "a100-40gb|a100-sxm4-40gb|a100-sxm-40gb",
                  "a100-40gb-sxm"),
    MS_WORD_MEANS(NULL, "a100-pcie|a100-pcie-80gb", "a100-80gb-pcie"),
    MS_WORD_MEANS(NULL, "a100-pcie-40gb", "a100-40gb-pcie"),
    MS_WORD_MEANS(NULL,
                  "h100-80gb|h100-sxm|h100-sxm5|h100-sxm5-80gb|h100-sxm-80gb|"
                  "h100-80gb-hbm3|h100-hbm3",
                  "h100-80gb-sxm"),
    MS_WORD_MEANS(NULL, "h100-pcie|h100-pcie-80gb", "h100-80gb-pcie"),
    MS_WORD_MEANS(NULL, "h200-sxm|h200-141gb|h200-sxm5", "h200-141gb-sxm"),
    MS_WORD_MEANS(NULL, "b200-sxm|b200-180gb|b200-192gb", "b200-180gb-sxm"),
    MS_WORD_MEANS(NULL, "gb200-nvl72|gb200-192gb", "gb200-186gb"),
    MS_WORD_MEANS(NULL, "gh200-480gb|grace-hopper", "gh200-96gb"),
    MS_WORD_MEANS(NULL, "h100-nvl|h100-nvl-94gb", "h100-94gb-nvl"),
    MS_WORD_MEANS(NULL, "a10g", "a10-24gb"),
    MS_WORD_MEANS(NULL, "mi250", "mi250x-64gb"),
    MS_WORD_MEANS(NULL, "trillium|tpu-trillium", "tpu-v6e"),
    MS_WORD_MEANS(NULL,
                  "v100-32gb|v100-sxm|v100-sxm2|v100-sxm2-32gb|v100-sxm-32gb",
                  "v100-32gb-sxm2"),
    MS_WORD_MEANS(NULL, "v100-16gb|v100-sxm-16gb|v100-sxm2-16gb",
                  "v100-16gb-sxm2"),
    MS_WORD_MEANS(NULL, "v100-pcie|v100-pcie-32gb", "v100-32gb-pcie"),
    MS_WORD_MEANS(NULL, "m2-ultra", "m2-ultra-192gb"),
    MS_WORD_INSTEAD(NULL, "cpu", "--set training.device=cpu",
                    "the framework's device is a setting, --device a machine"),
    MS_WORD_INSTEAD(NULL, "cuda|gpu|cuda:*|gpu:*", "--device h100",
                    "which one? memsim help devices lists them"),
    MS_WORD_INSTEAD(NULL, "4500-ada|a5000|3090-ti|titan-rtx|p40",
                    "--device 3090 --memory 24GiB",
                    NEAR "(memsim help devices)"),
    MS_WORD_INSTEAD(
        NULL, "4080|4080-super|4070-ti-super|5080|a4000|4060-ti-16gb|a2|p100",
        "--device 4090 --memory 16GiB", NEAR "(memsim help devices)"),
    MS_WORD_INSTEAD(NULL, "3080|3080-ti|4070|4070-ti|3060|titan-xp|4070-super",
                    "--device 3090 --memory 12GiB",
                    NEAR "(memsim help devices)"),
    MS_WORD_INSTEAD(NULL, "2080-ti|1080-ti", "--device 3090 --memory 11GiB",
                    NEAR "(memsim help devices)"),
    MS_WORD_INSTEAD(NULL, "l40|a40|6000-ada|8000",
                    "--device l40s --memory 48GiB",
                    NEAR "(memsim help devices)"),
    MS_WORD_INSTEAD(NULL, "pro-6000|pro-6000-blackwell",
                    "--device l40s --memory 96GiB",
                    NEAR "(memsim help devices)"),
    MS_WORD_INSTEAD(NULL, "h20", "--device h100 --memory 96GiB",
                    NEAR "(memsim help devices)"),
    MS_WORD_INSTEAD(NULL, "h800", "--device h100",
                    "the same but for its NVLink"),
    MS_WORD_INSTEAD(NULL, "a800", "--device a100",
                    "the same but for its NVLink"),
    MS_WORD_INSTEAD(NULL, "b100", "--device b200",
                    NEAR "(memsim help devices)"),
    MS_WORD_INSTEAD(NULL, "b300|gb300", "--device b200 --memory 270GiB",
                    NEAR "(memsim help devices)"),
    MS_WORD_INSTEAD(NULL, "mi210", "--device mi300x --memory 64GiB",
                    NEAR "(memsim help devices)"),
    MS_WORD_INSTEAD(NULL, "mi325x", "--device mi300x --memory 256GiB",
                    NEAR "(memsim help devices)"),
    {.words = "tpu|tpu-v2|tpu-v3|trainium*|gaudi*|mps|ipu",
     .say = "the rules are those of PyTorch on CUDA and ROCm; memsim help "
            "devices lists what is there"},
};
const ms_words ms_namewords_devices = {
    .title = "Devices", .rows = devices, .n = sizeof devices / sizeof *devices};

/* Skips the words before the name of a device that add nothing to it. */
static const char *without_brand(const char *name)
{
    static const char *const brands[] = {"nvidia", "geforce", "tesla",
                                         "quadro", "amd",     "instinct",
                                         "apple",  "rtx",     "gtx"};
    size_t n = sizeof brands / sizeof *brands, length = strlen(name);
    for (size_t i = 0; i < n; i++) {
        size_t own = strlen(brands[i]);
        if (own >= length || !ms_words_same(name, own, brands[i], own))
            continue;
        const char *rest = name + own;
        rest += strspn(rest, " -_");
        return without_brand(rest);
    }
    return name;
}

static bool is_device(const char *known, const char *name)
{
    known = without_brand(known);
    return *known != '\0' &&
           ms_words_same(known, strlen(known), name, strlen(name));
}

static uint32_t find_device(const char *name)
{
    name = without_brand(name);
    for (uint32_t i = 0; i < ms_devices_n; i++)
        if (is_device(ms_devices[i].name, name) ||
            is_device(ms_devices[i].alias, name))
            return i;
    return MS_NONE;
}

#define MOST_NAMES 128u

static const char *nearest_device(const char *name)
{
    const char *names[MOST_NAMES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < ms_devices_n && n + 2 <= MOST_NAMES; i++) {
        names[n++] = ms_devices[i].name;
        if (ms_devices[i].alias[0] != '\0')
            names[n++] = ms_devices[i].alias;
    }
    return ms_names_nearest(name, names, n);
}

uint32_t ms_namewords_device(const char *name, char *hint, size_t size)
{
    const char *plain = without_brand(name);
    uint32_t device = find_device(plain);
    const ms_word *row =
        ms_words_find(&ms_namewords_devices, NULL, plain, strlen(plain));
    if (device != MS_NONE)
        return device;
    if (row != NULL && row->means != NULL)
        return find_device(row->means);
    const char *near = nearest_device(name);
    if (row != NULL)
        ms_words_hint(row, hint, size);
    else if (near != NULL)
        snprintf(hint, size, "did you mean \"%s\"?", near);
    else
        snprintf(hint, size, "see memsim help devices");
    return MS_NONE;
}

/* ---- models -------------------------------------------------------------- */

/* The names that people use for models, without what is in endings[]. */
static const ms_word models[] = {
    MS_WORD_MEANS(NULL, "gpt2-small|gpt2-124m|gpt2-117m", "gpt2"),
    MS_WORD_MEANS(NULL, "gpt2-355m|gpt2-345m", "gpt2-medium"),
    MS_WORD_MEANS(NULL, "gpt2-774m", "gpt2-large"),
    MS_WORD_MEANS(NULL, "gpt2-1.5b|gpt2-1558m|gpt2-1.6b", "gpt2-xl"),
    MS_WORD_MEANS(NULL, "gpt3-175b|davinci", "gpt3"),
    MS_WORD_MEANS(NULL, "gpt3-125m", "gpt3-small"),
    MS_WORD_MEANS(NULL, "gpt3-350m", "gpt3-medium"),
    MS_WORD_MEANS(NULL, "gpt3-760m", "gpt3-large"),
    MS_WORD_MEANS(NULL, "gpt3-1.3b", "gpt3-xl"),
    MS_WORD_MEANS(NULL, "bloom-176b", "bloom"),
    MS_WORD_MEANS(NULL, "gpt-neox", "gpt-neox-20b"),
    MS_WORD_MEANS(NULL, "llama-30b", "llama-33b"),
    MS_WORD_MEANS(NULL, "meta-llama-3-8b", "llama-3-8b"),
    MS_WORD_MEANS(NULL, "meta-llama-3-70b", "llama-3-70b"),
    MS_WORD_MEANS(NULL, "meta-llama-3.1-8b", "llama-3.1-8b"),
    MS_WORD_MEANS(NULL, "meta-llama-3.1-70b", "llama-3.1-70b"),
    MS_WORD_MEANS(NULL, "meta-llama-3.1-405b", "llama-3.1-405b"),
    MS_WORD_MEANS(NULL, "mistral-7b-v0.3|mistral-7b-instruct-v0.3",
                  "mistral-7b"),
    MS_WORD_MEANS(NULL, "mixtral-8x7b-v0.1|mixtral-8x7b-instruct-v0.1",
                  "mixtral-8x7b"),
    MS_WORD_MEANS(NULL, "mixtral-8x22b-v0.1|mixtral-8x22b-instruct-v0.1",
                  "mixtral-8x22b"),
    MS_WORD_MEANS(NULL, "phi-3-mini-4k", "phi-3-mini"),
    MS_WORD_MEANS(NULL, "olmo-2-1124-7b", "olmo-2-7b"),
    MS_WORD_MEANS(NULL, "olmo-2-1124-13b", "olmo-2-13b"),
    MS_WORD_MEANS(NULL, "t5-v1_1-base", "t5-v1.1-base"),
    MS_WORD_MEANS(NULL, "t5-v1_1-xxl", "t5-v1.1-xxl"),
    MS_WORD_MEANS(NULL, "qwen3-30b-a3b-2507", "qwen3-30b-a3b"),
    MS_WORD_MEANS(NULL, "stable-diffusion|stable-diffusion-v1-5|sd15|sd-1.5",
                  "sd-1.5-unet"),
    MS_WORD_INSTEAD(NULL, "bert-base-uncased|bert", "bert-base",
                    "without the head, which its config.json would bring"),
    MS_WORD_INSTEAD(NULL, "bert-large-uncased", "bert-large",
                    "without the head, which its config.json would bring"),
    MS_WORD_INSTEAD(NULL, "roberta", "roberta-base",
                    "or a config.json with numbers of its own"),
    MS_WORD_INSTEAD(
        NULL,
        "mistral|mistral-7b-v0.1|mistral-7b-instruct-v0.1|mistral-7b-v0.2|"
        "mistral-7b-instruct-v0.2",
        "mistral-7b --set model.vocab=32000",
        "mistral-7b is v0.3, whose vocabulary is larger"),
    MS_WORD_INSTEAD(NULL, "llama|llama-3|llama-3.1", "llama-3.1-8b",
                    "memsim help models lists the sizes"),
    MS_WORD_INSTEAD(NULL, "llama-2", "llama-2-7b",
                    "memsim help models lists the sizes"),
    MS_WORD_INSTEAD(NULL, "llama-3.3-70b", "llama-3.1-70b",
                    "it has the same layers"),
    MS_WORD_INSTEAD(NULL, "mixtral", "mixtral-8x7b",
                    "memsim help models lists the sizes"),
    MS_WORD_INSTEAD(NULL, "qwen|qwen2|qwen2.5|qwen3", "qwen3-8b",
                    "memsim help models lists the sizes"),
    MS_WORD_INSTEAD(NULL, "gemma|gemma2|gemma3", "gemma-3-4b",
                    "memsim help models lists the sizes"),
    MS_WORD_INSTEAD(NULL, "falcon", "falcon-7b",
                    "memsim help models lists the sizes"),
    MS_WORD_INSTEAD(NULL, "pythia", "pythia-1.4b",
                    "memsim help models lists the sizes"),
    MS_WORD_INSTEAD(NULL, "opt", "opt-1.3b",
                    "memsim help models lists the sizes"),
    MS_WORD_INSTEAD(NULL, "t5", "t5-base",
                    "memsim help models lists the sizes"),
    MS_WORD_INSTEAD(NULL, "deepseek|deepseek-r1|deepseek-v3.1", "deepseek-v3",
                    "it has the same layers"),
    MS_WORD_INSTEAD(NULL, "resnet", "resnet50",
                    "memsim help models lists the sizes"),
    MS_WORD_INSTEAD(NULL, "vgg", "vgg16", "memsim help models lists the sizes"),
    MS_WORD_INSTEAD(NULL, "vit", "vit-b16",
                    "memsim help models lists the sizes"),
    {.words = "gpt4*|gpt5*|claude*|gemini*|chatgpt",
     .say = "its layers are not published; memsim help models lists those "
            "built in"},
};
const ms_words ms_namewords_models = {
    .title = "Models", .rows = models, .n = sizeof models / sizeof *models};

/* A model that was trained further has the same layers. */
static const char *const endings[] = {".json", "-instruct", "-chat-hf", "-chat",
                                      "-hf",   "-it",       "-base"};

static const ms_builtin *find_model(const char *name, size_t length)
{
    for (uint32_t i = 0; i < ms_builtin_n_models; i++)
        if (ms_words_same(ms_builtin_models[i].name,
                          strlen(ms_builtin_models[i].name), name, length))
            return &ms_builtin_models[i];
    return NULL;
}

/* Returns the length of the name without one of the endings. */
static size_t without_ending(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t own = strlen(endings[i]);
        if (own < length &&
            ms_words_same(name + length - own, own, endings[i], own))
            return length - own;
    }
    return length;
}

/* Finds the built-in model that is meant.  Where it returns NULL, answered is
 * the row that says what to type, or NULL. */
static const ms_builtin *meant_model(const char *name, const ms_word **answered)
{
    size_t length = strlen(name), shorter;
    *answered = NULL;
    for (;; length = shorter) {
        const ms_builtin *builtin = find_model(name, length);
        const ms_word *row =
            ms_words_find(&ms_namewords_models, NULL, name, length);
        if (builtin != NULL)
            return builtin;
        if (row != NULL && row->means != NULL)
            return ms_builtins_find(row->means);
        *answered = row;
        shorter = without_ending(name, length);
        if (row != NULL || shorter == length)
            return NULL;
    }
}

const ms_builtin *ms_namewords_model(const char *name, char *hint, size_t size)
{
    const ms_word *answered;
    const ms_builtin *builtin = meant_model(name, &answered);
    if (builtin == NULL && answered != NULL)
        ms_words_hint(answered, hint, size);
    else if (builtin == NULL)
        ms_builtins_hint(name, hint, size);
    return builtin;
}

/* ---- ids of Hugging Face ------------------------------------------------- */

/* Returns the name in an identifier "organisation/name" of Hugging Face, or
 * NULL where the path is none. */
static const char *name_of_id(const char *path)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t first = strspn(path, letters), length = strlen(path);
    if (first == 0 || path[first] != '/' || path[0] == '.' || length > 90)
        return NULL;
    const char *name = path + first + 1;
    bool is_file = length > 5 && strcmp(path + length - 5, ".json") == 0;
    bool plain = *name != '\0' && name[strspn(name, letters)] == '\0';
    return plain && !is_file ? name : NULL;
}

void ms_namewords_id(const char *path, char *hint, size_t size)
{
    const ms_word *row;
    const char *name = name_of_id(path);
    size_t used = 0;
    *hint = '\0';
    if (name == NULL)
        return;
    const ms_builtin *builtin = meant_model(name, &row);
    if (builtin != NULL)
        used = (size_t)snprintf(hint, size, "write %s, which is built in; or ",
                                builtin->name);
    else if (row != NULL && row->instead != NULL)
        used = (size_t)snprintf(hint, size, "write %s (%s); or ", row->instead,
                                row->say);
    if (used < size)
        snprintf(hint + used, size - used,
                 "fetch a model of Hugging Face:\n"
                 "hf download %s config.json --local-dir %s\n"
                 "and name the folder: %s",
                 path, name, name);
}
