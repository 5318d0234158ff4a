/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which options a command has. */

#include "tools/options/options.h"

#include <assert.h>
#include <string.h>

const ms_option_use *ms_optionuses_of(const ms_option *option, uint16_t command)
{
    for (uint32_t i = 0; i < MS_OPTION_USES; i++)
        if ((option->uses[i].commands & command) != 0)
            return &option->uses[i];
    return NULL;
}

/* Lists the options that the command's help has behind one; NULL: those in the
 * order of the table. */
static void list_behind(uint16_t command, const char *behind,
                        const ms_option **list, uint32_t *n)
{
    for (uint32_t i = 0; i < ms_options_table_n; i++) {
        const ms_option *row = &ms_options_table[i];
        const ms_option_use *use = ms_optionuses_of(row, command);
        if (use == NULL || (use->behind == NULL) != (behind == NULL) ||
            (behind != NULL && strcmp(use->behind, behind) != 0))
            continue;
        assert(*n < MS_OPTIONS_MOST);
        list[(*n)++] = row;
        list_behind(command, row->name, list, n);
    }
}

uint32_t ms_optionuses_list(uint16_t command,
                            const ms_option *list[MS_OPTIONS_MOST])
{
    uint32_t n = 0;
    list_behind(command, NULL, list, &n);
    return n;
}
