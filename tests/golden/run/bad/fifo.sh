# SPDX-License-Identifier: GPL-3.0-or-later
mkfifo fifo
printf '[' >fifo &
"$MEMSIM" run ./fifo
status=$?
wait
exit $status
