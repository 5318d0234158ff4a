/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is compared: members of the rank reports that memsim run prints. */

#include "tools/cli/compare/compare_rows.h"
#include "sim/names.h"

#include <stddef.h>

#define SIZE(label, key, field)                                                \
    {                                                                          \
        label, key, offsetof(ms_rank_report, field), false                     \
    }
#define HELD(label, key, category) SIZE(label, key, peak.by_category[category])
#define SPAN(label, key, field)                                                \
    {                                                                          \
        label, key, offsetof(ms_rank_report, field), true                      \
    }
#define TIME(label, key) SPAN(label, #key, time.key)
#define PHASE(label, key, phase)                                               \
    SIZE(label, key, phase_peaks_with_workspace[phase])

#define THEN(phase, label, key, number, category)                              \
    SIZE("  " label, phase "_" key, phase_by_category[number][category])
#define IN_PHASE(name, number)                                                 \
    THEN(name, "parameters", "parameters_bytes", number, MS_PARAMETERS),       \
        THEN(name, "optim. state", "optimizer_state_bytes", number,            \
             MS_OPTIMIZER_STATE),                                              \
        THEN(name, "gradients", "gradients_bytes", number, MS_GRADIENTS),      \
        THEN(name, "inputs", "inputs_bytes", number, MS_INPUTS),               \
        THEN(name, "activations", "activations_bytes", number,                 \
             MS_ACTIVATIONS),                                                  \
        THEN(name, "temporaries", "temporaries_bytes", number,                 \
             MS_TEMPORARIES),                                                  \
        THEN(name, "workspace", "workspace_bytes", number, MS_WORKSPACE),      \
        THEN(name, "communication", "communication_bytes", number,             \
             MS_COMMUNICATION)

const ms_compare_row ms_compare_rows[MS_COMPARE_N_ROWS] = {
    [MS_COMPARE_PEAK] =
        SIZE("peak", "peak_allocated_bytes", peak.allocated_bytes),
    [MS_COMPARE_RESERVED] =
        SIZE("reserved", "peak_reserved_bytes", peak.reserved_bytes),
    [MS_COMPARE_PHASES] =
        PHASE("forward peak", "forward_peak_bytes", MS_PHASE_FORWARD),
    PHASE("loss peak", "loss_peak_bytes", MS_PHASE_LOSS),
    PHASE("backward peak", "backward_peak_bytes", MS_PHASE_BACKWARD),
    PHASE("optimizer peak", "optimizer_peak_bytes", MS_PHASE_OPTIMIZER),
    [MS_COMPARE_HELD] = HELD("parameters", "parameters_bytes", MS_PARAMETERS),
    HELD("optimizer state", "optimizer_state_bytes", MS_OPTIMIZER_STATE),
    HELD("gradients", "gradients_bytes", MS_GRADIENTS),
    HELD("inputs", "inputs_bytes", MS_INPUTS),
    HELD("activations", "activations_bytes", MS_ACTIVATIONS),
    HELD("temporaries", "temporaries_bytes", MS_TEMPORARIES),
    HELD("workspace", "workspace_bytes", MS_WORKSPACE),
    HELD("communication", "communication_bytes", MS_COMMUNICATION),
    [MS_COMPARE_STEP] = TIME("step", step_ns),
    TIME("forward", forward_ns),
    TIME("backward", backward_ns),
    TIME("recompute", recompute_ns),
    TIME("optimizer", optimizer_ns),
    TIME("wait: comm", exposed_comm_ns),
    TIME("wait: copies", stall_ns),
    TIME("wait: ranks", bubble_ns),
    TIME("wait: host", host_bound_ns),
    TIME("wait: pages", page_wait_ns),
    TIME("wait: memory", memory_wait_ns),
    TIME("idle", idle_ns),
    [MS_COMPARE_MOVED] = SIZE("collectives", "comm_bytes", comm_bytes),
    SPAN("comm busy", "comm_busy_ns", comm.busy_ns),
    SIZE("to device", "h2d_bytes", h2d_bytes),
    SIZE("to host", "d2h_bytes", d2h_bytes),
    SIZE("disk reads", "nvme_read_bytes", links[MS_LINK_NVME_READ].bytes),
    SIZE("disk writes", "nvme_write_bytes", links[MS_LINK_NVME_WRITE].bytes),
    SPAN("copies busy", "copies_busy_ns", copies.busy_ns),
    [MS_COMPARE_IN_TIME] = IN_PHASE("forward", MS_PHASE_FORWARD),
    IN_PHASE("loss", MS_PHASE_LOSS),
    IN_PHASE("backward", MS_PHASE_BACKWARD),
    IN_PHASE("optimizer", MS_PHASE_OPTIMIZER),
};
