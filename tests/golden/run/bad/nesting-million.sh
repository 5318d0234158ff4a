# SPDX-License-Identifier: GPL-3.0-or-later
head -c 1000000 /dev/zero | tr '\0' '[' >deep.json
exec "$MEMSIM" run deep.json
