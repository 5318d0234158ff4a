/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "plots/record/works.h"
#include "plots/record/record.h"
#include "sim/measure/waits.h"

/* Works are saturated and differ in lightness, waits are pale. */
const ms_look ms_works_look[MS_N_WORKS] = {
    [MS_WORK_FORWARD] = {"forward", "#6FA3D8"},
    [MS_WORK_RECOMPUTE] = {"recompute", "#F6BE5C"},
    [MS_WORK_BACKWARD] = {"backward", "#B9481F"},
    [MS_WORK_OPTIMIZER] = {"optimizer", "#2F9C8B"},
    [MS_WORK_COMM] = {"collectives", "#7B4B9A"},
    [MS_WORK_H2D] = {"copies H2D", "#2B2B2B"},
    [MS_WORK_D2H] = {"copies D2H", "#6E6E6E"},
    [MS_WORK_HOST] = {"host cores", "#2F62A8"},
    [MS_WORK_NVME] = {"disk", "#1F5F55"},
    [MS_WORK_PACK] = {"buffer copies", "#96752E"},
    [MS_WORK_WAIT_HOST] = {"wait: host", "#F4CFC6"},
    [MS_WORK_WAIT_COMM] = {"wait: comm", "#CBB0E0"},
    [MS_WORK_WAIT_COPY] = {"wait: copies", "#BBBBBB"},
    [MS_WORK_WAIT_DISK] = {"wait: disk", "#A9CFC7"},
    [MS_WORK_WAIT_CORES] = {"wait: host cores", "#B9CDEB"},
    [MS_WORK_WAIT_RANK] = {"wait: ranks", "#EFE3A8"},
    [MS_WORK_WAIT_PAGES] = {"wait: pages", "#D9C7A0"},
    [MS_WORK_WAIT_MEMORY] = {"wait: memory", "#F2A6B8"},
    [MS_WORK_IDLE] = {"idle", NULL},
};

const uint8_t ms_works_wait[MS_N_CAUSES] = {
    [MS_CAUSE_HOST] = MS_WORK_WAIT_HOST,
    [MS_CAUSE_GATHER] = MS_WORK_WAIT_COMM,
    [MS_CAUSE_REDUCE] = MS_WORK_WAIT_COMM,
    [MS_CAUSE_MEETING] = MS_WORK_WAIT_COMM,
    [MS_CAUSE_TO_DEVICE] = MS_WORK_WAIT_COPY,
    [MS_CAUSE_TO_HOST] = MS_WORK_WAIT_COPY,
    [MS_CAUSE_DISK] = MS_WORK_WAIT_DISK,
    [MS_CAUSE_HOST_WORK] = MS_WORK_WAIT_CORES,
    [MS_CAUSE_PACK] = MS_WORK_WAIT_COPY,
    [MS_CAUSE_RANK] = MS_WORK_WAIT_RANK,
    [MS_CAUSE_PAGES] = MS_WORK_WAIT_PAGES,
    [MS_CAUSE_MEMORY] = MS_WORK_WAIT_MEMORY,
    [MS_CAUSE_IDLE] = MS_WORK_IDLE,
};
