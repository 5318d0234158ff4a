/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A recorded history as a side. */

#include "sim/names.h"
#include "tools/differences/side.h"
#include "tools/recordings/recordedfile.h"
#include "tools/recordings/recordedlives.h"

#include <string.h>

/* ---- what memsim wrote --------------------------------------------------- */

/* The bytes of a frame's name in "aten::mm (forward) (gpt2.json:12)". */
static size_t name_length(const char *frame, size_t length)
{
    for (size_t i = length; i > 1; i--)
        if (frame[i - 1] == '(' && frame[i - 2] == ' ')
            return i - 2;
    return length;
}

static size_t frame_length(const char *label)
{
    const char *end = strstr(label, " < ");
    return end != NULL ? (size_t)(end - label) : strlen(label);
}

/* "aten::mm (forward)" or "start": the phase of its pass. */
static uint8_t phase_of(const char *op, size_t length)
{
    size_t name =
        length > 0 && op[length - 1] == ')' ? name_length(op, length) : 0;
    for (int pass = 0; pass < MS_N_PASSES; pass++) {
        const char *word = ms_names_pass[pass];
        size_t n = strlen(word);
        bool in_brackets = name > 0 && length - name == n + 3 &&
                           memcmp(op + name + 2, word, n) == 0;
        bool alone = length == n && memcmp(op, word, n) == 0;
        if (pass != MS_START && (in_brackets || alone))
            return (uint8_t)ms_names_phase_of((ms_pass)pass);
    }
    return MS_N_PHASES;
}

/* Its frames are the tensor and the op that makes it. */
static ms_err read_own(const ms_recording *recording, ms_arena *arena,
                       ms_side *side, ms_fault *fault)
{
    const char **words =
        ms_arena_take(arena, recording->n_sites + 1u, sizeof *words);
    uint8_t *phases =
        ms_arena_take(arena, recording->n_sites + 1u, sizeof *phases);
    if (words == NULL || phases == NULL)
        return ms_fail_nomem(fault);
    for (uint32_t i = 0; i < recording->n_sites; i++) {
        const char *tensor = recording->sites[i], *op = tensor;
        size_t n = frame_length(tensor), m = 0;
        ms_text word = {.arena = arena};
        if (tensor[n] != '\0') {
            op = tensor + n + 3;
            m = name_length(op, frame_length(op));
        }
        ms_text_put(&word, tensor, name_length(tensor, n));
        ms_text_add(&word, ", ");
        ms_text_put(&word, op, m);
        if (word.failed)
            return ms_fail_nomem(fault);
        words[i] = word.bytes;
        phases[i] = phase_of(op, m);
    }
    side->tells_layers = true;
    side->words = words;
    side->phases = phases;
    return MS_OK;
}

/* ---- all ----------------------------------------------------------------- */

/* Autograd's thread has no Python: in a recording of Python's stacks, what has
 * none was made there. */
static uint8_t phase_without(const ms_recording *recording)
{
    for (uint32_t i = 0; i < recording->n_sites; i++)
        if (recording->site_phases[i] != MS_N_PHASES)
            return MS_PHASE_BACKWARD;
    return MS_N_PHASES;
}

ms_err ms_recordedside_read(const char *path, ms_arena *arena, ms_side *side,
                            ms_fault *fault)
{
    ms_recording *recording = ms_arena_take(arena, 1, sizeof *recording);
    if (recording == NULL)
        return ms_fail_nomem(fault);
    MS_TRY(ms_recordedfile_read(path, arena, recording, fault));
    *side = (ms_side){.name = path, .kind = MS_SIDE_RECORDED};
    MS_TRY(ms_recordedlives_find(recording, arena, &side->lives, &side->n,
                                 &side->n_states, fault));
    side->n_words = recording->n_sites;
    side->phase_without = MS_N_PHASES;
    if (recording->has_categories)
        return read_own(recording, arena, side, fault);
    side->words = recording->sites;
    side->phases = recording->site_phases;
    side->phase_without = phase_without(recording);
    return MS_OK;
}
