# SPDX-License-Identifier: GPL-3.0-or-later
# Names that would steer a terminal, a shell or gnuplot are only shown.
# shellcheck disable=SC2016 # meant to stay as it is
name=$(printf 'a\033[31m$(touch pwned)`'"'"'\\ EOD')
cp names.json "$name.json"
"$MEMSIM" run "$name.json" --json >"$name.result.json"
"$MEMSIM" compare "$name.json" tiny.json "$name.result.json" | sed -n '1,12p'
"$MEMSIM" compare "$name.json" tiny.json --csv - | cut -d, -f1-4 | cat -v
"$MEMSIM" compare "$name.json" tiny.json -q --plot="$name.svg" --keep-script
echo "$?"
find . -name pwned
grep -c 'touch pwned' ./*.gp
