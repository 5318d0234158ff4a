#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs a command under a Slurm of this one machine, with its own daemons, keys
# and files in a folder that is removed afterwards:
#
#   tests/slurm.sh COMMAND [ARGUMENT]...     e.g. sbatch --wait job.sh
#
# Exit status 77: Slurm is not installed, or we are not root.
set -eu
for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null || exit 77
done
[ "$(id -u)" = 0 ] || exit 77
folder=$(mktemp -d)
stop() {
    for daemon in slurmd slurmctld munged; do
        [ ! -s "$folder/$daemon.pid" ] ||
            kill "$(cat "$folder/$daemon.pid")" 2>/dev/null || :
    done
    sleep 1 # they write their state
    rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT TERM

host=$(hostname -s)
mkdir "$folder/spool" "$folder/state"
chmod 755 "$folder"
dd if=/dev/urandom of="$folder/key" bs=1024 count=1 2>/dev/null
chmod 600 "$folder/key"
munged --force --key-file="$folder/key" --socket="$folder/socket" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" \
    --seed-file="$folder/seed" 2>/dev/null
cat >"$folder/slurm.conf" <<CONF
ClusterName=memsim
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$folder/socket
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES State=UP
CONF
export SLURM_CONF="$folder/slurm.conf"
slurmctld
slurmd
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] && break
    sleep 1
done
[ "$(sinfo -h -o %T)" = idle ] || {
    cat "$folder/slurmctld.log" "$folder/slurmd.log" >&2
    exit 1
}
"$@"
