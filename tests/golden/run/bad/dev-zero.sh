# SPDX-License-Identifier: GPL-3.0-or-later
exec "$MEMSIM" run /dev/zero
