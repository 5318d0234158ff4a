# SPDX-License-Identifier: GPL-3.0-or-later
# What a link points to is replaced, not the link.
echo old >real.csv
ln -s real.csv out.csv
"$MEMSIM" run mlp.json -q --csv out.csv
readlink out.csv
head -n 1 real.csv
