# SPDX-License-Identifier: GPL-3.0-or-later
# Stages that have nothing to agree upon; what there is no way for.
exec 2>&1
"$MEMSIM" run tiny16.json -p pipeline:2,optimizer=sync+microbatch:4 --batch 4
echo "status $?"
"$MEMSIM" run tiny16.json -p pipeline:2,optimizer=late+microbatch:4 --batch 4
echo "status $?"
