# SPDX-License-Identifier: GPL-3.0-or-later
policy=$(head -c 100000 /dev/zero | tr '\0' '+')
exec "$MEMSIM" run tiny.json --policy "$policy"
