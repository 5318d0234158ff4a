/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_TOOLS_GATE_H
#define MS_TOOLS_GATE_H

/* The parts of memsim check: a gate for a pull request.
 *
 *     gate.c        the command
 *     gate_file.c   the cases, and the baseline beside them
 *     gate_text.c   the table for people, and in Markdown
 *     gate_keys.c   the keys of --json
 *
 * The cases are written by hand, the baseline by --update:
 *
 *     {"memsim_checks": 1,
 *      "tolerance_percent": 3,
 *      "cases": [
 *       {"name": "7B, one node", "model": "llama-2-7b",
 *        "settings": {"policy": "zero:3", "gpus": 8, "batch": 4},
 *        "limit": "75GiB"}]}
 *
 *     {"memsim_baseline": 1,
 *      "cases": {"7B, one node": {"used_bytes": 70866960384,
 *                                 "step_ns": 2110000000}}}
 *
 * Memory is what nvidia-smi would show: reserved, and what lies outside the
 * pool.  A case passes where it fits into the device and under its limit, and
 * neither memory nor, with time_tolerance_percent, time has grown over the
 * baseline by more than its tolerance. */

#include "tools/job/job.h"
#include "tools/results/keys/keys.h"
#include "tools/terminal/screen.h"

typedef enum ms_gate_verdict {
    MS_GATE_PASSES,
    MS_GATE_NEW,    /* there is no baseline of it; it passes */
    MS_GATE_SHRANK, /* by more than the tolerance; it passes */
    MS_GATE_REFUSED,
    MS_GATE_NO_FIT,
    MS_GATE_OVER, /* its limit */
    MS_GATE_GREW, /* memory */
    MS_GATE_SLOWER,
    MS_GATE_N_VERDICTS
} ms_gate_verdict;

/* What a step needs and takes; 0: not known. */
typedef struct ms_gate_numbers {
    uint64_t used_bytes, step_ns;
} ms_gate_numbers;

typedef struct ms_gate_case {
    const char *name, *model, *policy; /* any bytes */
    ms_job job;
    uint64_t limit_bytes, capacity_bytes; /* limit 0: none */
    /* percent; time: negative where time is not checked */
    double tolerance, time_tolerance;
    ms_gate_numbers now, before;
    const char *refused; /* NULL: it was simulated */
    uint8_t verdict;
} ms_gate_case;

typedef struct ms_gate {
    const char *path, *baseline; /* files */
    ms_gate_case *cases;
    uint32_t n, n_failed;
    bool passes;
} ms_gate;

/* ---- gate_file.c --------------------------------------------------------- */

/* The cases, then the numbers of the baseline where its file is there.  A
 * model's path is one from the folder of the file. */
ms_err ms_gate_file_read(ms_gate *check, ms_arena *arena, ms_fault *fault);
/* The baseline of what was simulated now; what was refused keeps its own. */
ms_err ms_gate_file_update(const ms_gate *check, ms_arena *arena,
                           ms_fault *fault);

/* ---- gate_text.c --------------------------------------------------------- */

void ms_gate_text_write(const ms_gate *check, const ms_style *style,
                        ms_text *text);
void ms_gate_text_markdown(const ms_gate *check, ms_text *text);

/* ---- gate_keys.c --------------------------------------------------------- */

/* The verdicts in words. */
extern const char *const ms_gate_keys_verdicts[MS_GATE_N_VERDICTS];
extern const ms_keys ms_gate_keys;
void ms_gate_keys_write(const ms_gate *check, ms_text *text);

#endif
