/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_HUGGINGFACE_H
#define MS_HUGGINGFACE_H

/* Private to graphs/: config.json files of Hugging Face as models.
 *
 * A **page** (NAME.json beside this file, compiled in) says what a
 * model_type is: the defaults of its configuration class, in the form of a
 * config.json; what its keys mean ("let", expression.h); what must hold of
 * them ("check"); and its layers as a native layer list in which a text that
 * begins with "=" is an expression:
 *
 *     {"model_type": "tiny",
 *      "source": "where the defaults are written",
 *      "defaults": {"hidden_size": 64, "num_hidden_layers": 2,
 *                   "vocab_size": 100, "intermediate_size": null},
 *      "also": {"n_embd": "hidden_size"},
 *      "heads": {"lm": "lm", "absent": "lm", "Model": "none"},
 *      "let": {"ffn": "intermediate_size ?? 4 * hidden_size"},
 *      "check": [{"positive": ["hidden_size", "vocab_size"]}],
 *      "input": {"tokens": true},
 *      "layers": [
 *        {"type": "embedding", "vocab": "=vocab_size", "dim": "=hidden_size"},
 *        {"repeat": "=num_hidden_layers", "name": "layers", "layers": [
 *          {"type": "linear", "out": "=ffn"}, {"type": "relu"},
 *          {"type": "linear", "out": "=hidden_size"}]},
 *        {"type": "linear", "name": "head", "if": "head == 'lm'",
 *         "out": "=vocab_size"}, ...]}
 *
 * A layer with "if" is there where that is true; what is null is left out; in
 * a repeat i is the number of the block, and blocks may differ.  "like" names
 * a page that says what this one does not, key by key of "defaults", "also"
 * and "let".  "settings" are keys that no configuration has: --set chooses
 * them, as which version of the code it is.  A page with "refuse" has no step
 * to simulate: its parameters are counted.
 *
 * From config.json to the model: value of a key = --set model.KEY, else the
 * file's (null included), else the class default; the page's layers with
 * these values are a native layer list, which layerlist.c reads as any other.
 * So null, absent and 0 are three things, and there is one way through the
 * house.  Keys that a page does not know are passed over, as Hugging Face
 * does. */

#include "graphs/json/json.h"
#include "graphs/model.h"

/* Is it the configuration of Hugging Face, not a native model? */
bool ms_huggingface_is(const ms_json *json);
/* MS_EINPUT where a native model has keys of Hugging Face; names both. */
ms_err ms_huggingface_mixed(const ms_json *json, ms_fault *fault);

/* A configuration as a native model file. */
typedef struct ms_huggingface_model {
    ms_text text;
    const char *type;    /* model_type */
    const char *refusal; /* ms_model.refusal */
    const char *assumed; /* ms_model.assumed */
} ms_huggingface_model;
/* name: of the model, unless a setting chooses another; folder: where weights
 * may lie beside it (safetensors.h), or NULL.  Faults: MS_EINPUT at keys, both
 * where two contradict each other; MS_EUSAGE for settings that the page does
 * not know. */
ms_err ms_huggingface_write(const ms_json *json, const char *name,
                            const char *folder, const ms_override *overrides,
                            uint32_t n_overrides, ms_arena *arena,
                            ms_huggingface_model *model, ms_fault *fault);

#endif
