/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "tools/recordings/recordedfile.h"
#include "sim/base/files.h"
#include "tools/recordings/recordings.h"

#include <stdio.h>
#include <string.h>

#define MOST_BYTES (UINT64_C(1) << 30)
#define HEAD_BYTES 4096u /* in which JSON must show what it is */
#define PICKLE 0x80      /* the first byte of protocol 2 and later */

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* Is there a key with an array?  A result counts its events. */
static bool has_array(const char *head, const char *key)
{
    for (const char *at = strstr(head, key); at != NULL;
         at = strstr(at + 1, key)) {
        const char *colon = skip_blanks(at + strlen(key));
        if (*colon == ':' && *skip_blanks(colon + 1) == '[')
            return true;
    }
    return false;
}

bool ms_recordedfile_is(const char *path)
{
    char head[HEAD_BYTES + 1];
    FILE *file = strcmp(path, "-") == 0 ? NULL : fopen(path, "rb");
    if (file == NULL)
        return false;
    size_t n = fread(head, 1, HEAD_BYTES, file);
    fclose(file);
    head[n] = '\0';
    if (n > 0 && (unsigned char)head[0] == PICKLE)
        return true;
    return *skip_blanks(head) == '{' &&
           (has_array(head, "\"events\"") || has_array(head, "\"start\""));
}

ms_err ms_recordedfile_read(const char *path, ms_arena *arena,
                            ms_recording *recording, ms_fault *fault)
{
    char *bytes;
    size_t length;
    MS_TRY(ms_files_read(path, MOST_BYTES, arena, &bytes, &length, fault));
    if (length > 0 && (unsigned char)bytes[0] == PICKLE)
        MS_TRY(ms_snapshot_read(path, bytes, length, arena, recording, fault));
    else
        MS_TRY(ms_recording_read(path, bytes, length, arena, recording, fault));
    if (recording->n_events > 0)
        return MS_OK;
    return ms_fail(fault, MS_EINPUT, path,
                   "did the recording begin before the first allocation?",
                   "there is nothing in it: no allocation");
}
