# SPDX-License-Identifier: GPL-3.0-or-later
# A schema whole; what is wrong says what there is.
"$MEMSIM" schema inspect
"$MEMSIM" schema modle 2>&1
echo "status $?"
"$MEMSIM" schema 1 2>&1
echo "status $?"
"$MEMSIM" schema 2>&1
echo "status $?"
