# SPDX-License-Identifier: GPL-3.0-or-later
# Each says where, what and what next; nothing is written.
bad() {
    printf '%s\n' "$1" >cases.json
    "$MEMSIM" check cases.json --update 2>&1
    echo "exit $?"
}
bad '[]'
bad '{"cases": []}'
bad '{"memsim_checks": 2, "cases": []}'
bad '{"memsim_checks": 1}'
bad '{"memsim_checks": 1, "cases": []}'
bad '{"memsim_checks": 1, "case": []}'
bad '{"memsim_checks": 1, "cases": [{"model": "gpt2"}]}'
bad '{"memsim_checks": 1, "cases": [{"name": 3}]}'
case_of() { # what a case has besides
    bad "{\"memsim_checks\": 1, \"cases\": [
  {\"name\": \"a\", \"model\": \"gpt2\"$1}]}"
}
case_of ', "limit": "80G"'
case_of ', "limits": "80GB"'
case_of ', "tolerance_percent": -1'
case_of ', "settings": {"btch": 8}'
case_of ', "settings": {"policy": "checkpoint:sqrd"}'
case_of ', "settings": {"batch": [8]}'
case_of '}, {"name": "a", "model": "gpt2"'
bad '{"memsim_checks": 1, "cases": [{"name": "a", "model": "no-such"}]}'
bad '{"memsim_checks": 1, "cases": [{"name": "a", "model": "./gpt2"}]}'
bad '{"memsim_checks": 1, "cases": [{"name": "a", "model": "gpt2"'
echo '{"memsim_checks": 1, "cases": [{"name": "a", "model": "gpt2"}]}' \
    >cases.json
try() {
    "$MEMSIM" check "$@" 2>&1
    echo "exit $?"
}
try cases.json --baseline cases.json
try cases.json --baseline gpt2.html --markdown gpt2.html
try cases.json --json --markdown -
echo '{"memsim_baseline": 1, "cases": {"a": {"used_bytes": -1}}}' >other
try cases.json --baseline other
try nowhere.json
ls ./*.baseline 2>/dev/null
