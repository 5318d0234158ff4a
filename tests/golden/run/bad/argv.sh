# SPDX-License-Identifier: GPL-3.0-or-later
exec "$MEMSIM" run "$(printf 'gpt\377\033[31m.json')"
