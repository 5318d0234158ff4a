# SPDX-License-Identifier: GPL-3.0-or-later
# A whole schema; the message for a wrong name lists those that exist.
"$MEMSIM" schema inspect
"$MEMSIM" schema modle 2>&1
echo "status $?"
"$MEMSIM" schema 1 2>&1
echo "status $?"
"$MEMSIM" schema 2>&1
echo "status $?"
