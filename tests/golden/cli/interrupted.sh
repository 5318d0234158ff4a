# SPDX-License-Identifier: GPL-3.0-or-later
# The shell opens the pipe for writing when memsim has it open for reading.
mkfifo model
"$MEMSIM" run ./model &
exec 3>model
kill -TERM $!
wait $!
