/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memsim schema: prints a JSON Schema of what memsim reads or prints. */

#include "policies/common/policy.h"
#include "sim/names.h"
#include "tools/cli/commands.h"
#include "tools/cli/schema/documents.h"
#include "tools/terminal/screen.h"

#include <assert.h>
#include <string.h>

#define MOST_DOCUMENTS 16u

static ms_err fail_document(const char *word, ms_fault *fault)
{
    const char *names[MOST_DOCUMENTS] = {NULL};
    char hint[128] = "one of";
    assert(ms_documents_n <= MOST_DOCUMENTS);
    for (size_t i = 0; i < ms_documents_n; i++)
        names[i] = ms_documents[i].name;
    const char *near = ms_names_nearest(word, names, ms_documents_n);
    if (near != NULL) {
        strcpy(hint, "did you mean \"");
        strcat(hint, near);
        strcat(hint, "\"?");
    } else {
        for (size_t i = 0; i < ms_documents_n; i++) {
            strcat(hint, i > 0 ? ", " : " ");
            strcat(hint, names[i]);
        }
    }
    return ms_fail(fault, MS_EUSAGE, NULL, hint, "there is no schema \"%s\"",
                   word);
}

ms_err ms_schema_command(const ms_hall *hall, int *status, ms_fault *fault)
{
    const char *word = hall->arguments->operands[0];
    ms_text text = {.arena = hall->keep};
    *status = 0;
    for (size_t i = 0; i < ms_documents_n; i++)
        if (strcmp(ms_documents[i].name, word) == 0) {
            ms_schema_write(&ms_documents[i], &text);
            return ms_screen_print(&text, fault);
        }
    return fail_document(word, fault);
}
