/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_FAMILYPAGE_H
#define MS_FAMILYPAGE_H

/* A family of native models is a page: keys with types and ranges, what must
 * hold of them, and layers with expressions over them.
 *
 *     {"family": "mlp",
 *      "summary": "layers of one width",
 *      "source": "where that is from",
 *      "keys": {
 *        "depth": {"type": "integer", "low": 1, "high": 1000,
 *                  "required": true, "help": "hidden layers"},
 *        "width": {"type": "integer", "low": 1, "high": 65536,
 *                  "default": 512, "help": "features of each"},
 *        "act": {"type": "word", "words": "relu|gelu", "help": "between"}},
 *      "let": {"inner": "4 * width"},
 *      "check": [{"that": "act == 'relu' || width % 8 == 0",
 *                 "else": "gelu needs a width in eights",
 *                 "why": "round \"width\" up"}],
 *      "input": {"shape": ["=width"]},
 *      "layers": [
 *        {"repeat": "=depth", "name": "layers", "layers": [
 *          {"type": "linear", "out": "=inner"}, {"type": "=act"},
 *          {"type": "linear", "out": "=width"}]},
 *        {"type": "mean", "name": "loss"}]}
 *
 * is what {"family": "mlp", "config": {"depth": 3}} and --set model.depth=3
 * are checked against and built from; with "flat" the keys stand beside
 * "family" instead of in "config".  "input" is as in a layer list, with
 * expressions; without it the model has states only.  "max_sequence" is an
 * expression for the longest sequence where no layer's table of positions
 * says it.  Another page's is taken for what a page "like" it does not say,
 * key by key of "keys" and "let"; its "check" counts, too. */

#include "graphs/layertypes.h"
#include "graphs/models/pages/page.h"

/* Opens the page that a model names and tells the family's keys.  Faults:
 * MS_EINPUT at the name, or in a page. */
ms_err ms_familypage_open(ms_page *page, const ms_known *name,
                          ms_family *family);
/* The page's "input" and "layers" for page->values, as the text of a layer
 * list; longest: "max_sequence", or 0.  Faults: MS_EINPUT at page->config_row,
 * where a rule of the page is broken. */
ms_err ms_familypage_write(ms_page *page, ms_text *text, uint64_t *longest);

#endif
