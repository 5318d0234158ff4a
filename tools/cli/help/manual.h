/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_MANUAL_H
#define MS_TOOLS_MANUAL_H

/* The man page, from a template in mdoc(7), memsim.1.in. The template's prose
 * is kept; its lines that begin with @ are replaced by what the tables have:
 *
 *     @synopsis       a line per command
 *     @command NAME   an item: the command and its summary
 *     @option NAME    an item: the option, and its help for each command
 *     @options        items of the options that no other line names
 *     @topics         items: the topics of memsim help
 *     @documents      items: the documents of memsim schema
 *     @policies       items: the policies with their parameters
 *     @exits          items: the exit statuses
 *
 * Text behind such a line continues the item. A new row of a table is on the
 * page without a line in the template. */

#include "policies/common/policy.h"
#include "tools/cli/commands.h"

/* template is the text, name what faults call it. MS_EINPUT where a line names
 * what no table has, or where a row of a table is nowhere on the page. */
ms_err ms_manual_write(const ms_commands *commands, const char *name,
                       const char *template, ms_text *page, ms_fault *fault);

#endif
