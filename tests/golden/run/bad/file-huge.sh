# SPDX-License-Identifier: GPL-3.0-or-later
truncate -s 1G huge.json
exec "$MEMSIM" run huge.json
