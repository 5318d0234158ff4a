/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TEMPLATE_H
#define MS_TEMPLATE_H

/* Private to graphs/models: the layers of a page with values in place of
 * expressions.
 *
 *     {"type": "linear", "out": "=4 * hidden_size", "bias": "=bias"}
 *     {"type": "linear", "out": 256, "bias": false}
 *
 * A repeat whose blocks are not all alike becomes repeats of those that
 * are: {"repeat": 3, ...}, {"repeat": 58, "first": 3, ...}. */

#include "graphs/models/pages/page.h"

/* A list or an object that a page has ("layers", "input") as JSON. */
ms_err ms_template_entry(ms_page *page, const char *entry, ms_text *text);

#endif
