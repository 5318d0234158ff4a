/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_RULES_H
#define MS_RULES_H

/* What must hold of the keys of a page ("check"), those of what it is like
 * first:
 *
 *     {"positive": ["width"]}                  none is 0 or null
 *     {"divides": ["heads", "width"]}          the second by the first
 *     {"list": ["kinds", "depth"]}             an element for each
 *     {"unsupported": ["act"], "if": "act == 'mish'"}
 *     {"that": "a < b", "keys": ["a", "b"]}    else they contradict each other
 *     {"that": "a < b", "else": "a message"}
 *
 * "if" says when a rule counts, "why" is the hint of its message. */

#include "graphs/models/pages/page.h"

/* Faults: MS_EINPUT at a key that breaks a rule. */
ms_err ms_rules_check(ms_page *page);

#endif
