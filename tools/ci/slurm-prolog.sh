#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A prolog for a Slurm job (sbatch --export=ALL,MEMORY_CASES=memory.json, or the
# first line of the job itself): a job whose step does not fit ends here, before
# it takes the nodes for hours.  With TaskProlog, what is printed after "print "
# goes into the job's output, and the job is cancelled.
#
#   slurm-prolog.sh [CASES]     CASES: memsim help checks
set -u
cases=${1:-${MEMORY_CASES:-memory.json}}
[ -e "$cases" ] || exit 0 # nothing to check
table=$(memsim check "$cases" 2>&1) && exit 0
echo "$table" | sed 's/^/print /'
[ -z "${SLURM_JOB_ID-}" ] || scancel "$SLURM_JOB_ID"
exit 1
