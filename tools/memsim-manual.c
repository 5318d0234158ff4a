/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints the man page when memsim is built (tools/install.cmake):
 *
 *     memsim-manual tools/cli/help/memsim.1.in >memsim.1 */

#include "graphs/model.h"
#include "policies/common/policy.h"
#include "sim/base/files.h"
#include "tools/cli/commands.h"
#include "tools/cli/help/manual.h"
#include "tools/terminal/screen.h"

#define MOST_BYTES (UINT64_C(1) << 20)

int main(int argc, char **argv)
{
    ms_arena arena = {0};
    ms_text page = {.arena = &arena};
    ms_fault fault = {.caret = -1};
    char *template;
    size_t length;
    const char *path = argc == 2 ? argv[1] : "-";
    ms_err err =
        ms_files_read(path, MOST_BYTES, &arena, &template, &length, &fault);
    if (err == MS_OK)
        err = ms_manual_write(&ms_commands_all, path, template, &page, &fault);
    if (err == MS_OK)
        err = ms_screen_print(&page, &fault);
    if (err != MS_OK)
        ms_complain(&fault, NULL);
    ms_arena_free(&arena);
    return err == MS_OK ? 0 : ms_complain_status(err);
}
