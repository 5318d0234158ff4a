/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim completion. */

#include "policies/common/policy.h"
#include "sim/names.h"
#include "tools/cli/commands.h"
#include "tools/cli/help/candidates.h"
#include "tools/options/options.h"
#include "tools/terminal/screen.h"

#include <string.h>

static ms_err fail_shell(const char *word, ms_fault *fault)
{
    const char *names[MS_SHELLSCRIPTS];
    for (size_t i = 0; i < MS_SHELLSCRIPTS; i++)
        names[i] = ms_shellscripts[i].shell;
    const char *near = ms_names_nearest(word, names, MS_SHELLSCRIPTS);
    char hint[64] = "bash, zsh or fish; or words, for a shell of your own";
    if (near != NULL) {
        strcpy(hint, "did you mean \"");
        strcat(hint, near);
        strcat(hint, "\"?");
    }
    return ms_fail(fault, MS_EUSAGE, NULL, hint,
                   "there is no completion for \"%s\"", word);
}

ms_err ms_completion_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    const ms_arguments *arguments = hall->arguments;
    const char *const *words = (const char *const *)arguments->operands;
    ms_text text = {.arena = hall->keep};
    *status = 0;
    if (strcmp(words[0], "words") == 0) {
        if (arguments->n_operands > 1)
            ms_candidates_write(hall->commands, words + 1,
                                arguments->n_operands - 1, &text);
        return ms_screen_print(&text, fault);
    }
    for (size_t i = 0; i < MS_SHELLSCRIPTS; i++)
        if (strcmp(ms_shellscripts[i].shell, words[0]) == 0) {
            if (arguments->n_operands > 1)
                return ms_fail(fault, MS_EUSAGE, NULL, NULL,
                               "\"%s\" is one word too many", words[1]);
            ms_text_add(&text, "%s", ms_shellscripts[i].script);
            return ms_screen_print(&text, fault);
        }
    return fail_shell(words[0], fault);
}
