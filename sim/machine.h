/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_SIM_MACHINE_H
#define MS_SIM_MACHINE_H

/* The machine: the rates with which a program is expanded, and what its plan is
 * replayed on.  Both are one rank's, as the device file and the job have them.
 */

#include "sim/expand/hostplace.h"
#include "sim/group.h"
#include "sim/names.h"
#include "sim/outside.h"
#include "sim/shape.h"

typedef struct ms_expand_opts {
    bool uses; /* fill plan.use (for --book device) */
    double h2d_bytes_per_s, d2h_bytes_per_s; /* MOVE; 0: takes no time */
    uint64_t copy_ns;                        /* latency of one copy */
    double pageable_share; /* of these rates that pageable copies reach */
    /* This rank's part of what its node's ranks share: all do the same at
     * the same time.  0: takes no time. */
    double host_bytes_per_s; /* DRAM, read and written */
    double nvme_read_bytes_per_s, nvme_write_bytes_per_s;
    double hbm_bytes_per_s; /* of the device's memory, as printed */
    double flops_per_s;     /* WORK: of 16-bit products, as printed */
    ms_group groups[MS_N_GROUP_ROLES]; /* of a program that has none of its own
                                        */
} ms_expand_opts;

/* What ops that run side by side on a rank share. */
typedef enum ms_resource {
    MS_MULTIPROCESSORS,
    MS_LINK_IN,  /* PCIe from the host's side to the device */
    MS_LINK_OUT, /* and back: full duplex, a resource of its own */
    MS_HOST_DRAM,
    MS_MESSAGES_OUT, /* the link by which messages to either neighbour go */
    MS_N_RESOURCES
} ms_resource;

/* In thousandths of the resource, while an op of the stream runs.  held is
 * gone for the others and never slowed here (the multiprocessors on which a
 * collective's kernel sits); shared is what the op uses of the rest when it is
 * alone there.  An op is slowed by the largest, over what it shares, of (sum
 * of shared) / (1000 - what others hold), if that is above 1.  Galvatron's
 * overlap coefficient of 1.3 for both sides is shared = 650 for each. */
typedef struct ms_demand {
    uint16_t held, shared;
} ms_demand;

typedef struct ms_machine {
    uint64_t launch_ns;                 /* host time to launch one kernel */
    uint32_t framework_ns[MS_N_PASSES]; /* and of the code around it */
    uint32_t recorded; /* a bit per ms_pass whose ops the host does not launch
                          one by one (CUDA graphs) */
    uint64_t capacity_bytes; /* device memory the process can have */
    uint64_t context_bytes;  /* outside the pool, in all; its parts: */
    ms_outside outside;      /* 0: not told */
    double peak_flops;       /* for mfu; 0: unknown */
    uint32_t split_ranks;  /* beside each of them, on the same samples (tensor);
                              0, 1: none */
    uint32_t data_ranks;   /* side by side, on other samples; 0, 1: alone */
    bool book_device;      /* book by device time, not in host issue order */
    bool wall;             /* with book_device: ops wait where memory is full */
    bool unmerged;         /* nobody looks at the events: those of several ranks
                              are not merged by time */
    uint32_t node_ranks;   /* of data_ranks that share a node; 0: all */
    uint32_t stage_stride; /* of a pipeline: ranks of one stage next to each
                              other; 0: 1 */
    uint64_t host_memory_bytes, nvme_bytes; /* of a node; 0: not known */
    ms_host_pools host;
    ms_paging paging; /* with book_device; then these: */
    double h2d_bytes_per_s, d2h_bytes_per_s;
    /* All zero: nothing interferes. */
    ms_demand demand[MS_N_STREAMS][MS_N_RESOURCES];
} ms_machine;

#endif
