# SPDX-License-Identifier: GPL-3.0-or-later
# A case grows beyond its tolerance, over its limit, out of the device, in time;
# it shrinks; one is refused.  The baseline is written and read.
cat >memory.json <<'JSON'
{"memsim_checks": 1, "tolerance_percent": 3, "cases": [
  {"name": "a|b <i>", "model": "tiny.json", "settings": {"batch": 64}},
  {"name": "limited", "model": "gpt2", "settings": {"batch": 8},
   "limit": "11GiB"},
  {"name": "in time", "model": "gpt2", "tolerance_percent": 50,
   "time_tolerance_percent": 2, "settings": {"policy": "checkpoint:sqrt",
   "batch": 8}},
  {"name": "on a 4090", "model": "gpt2", "settings": {"device": "4090",
   "batch": 8, "kernels": "flash"}}]}
JSON
gate() {
    echo "-- $*"
    "$MEMSIM" check memory.json "$@"
    echo "exit $?"
}
now() { # the two digits that follow: of one rate, which may change
    sed -E 's/[0-9.]+ [mµ]?s$/T/; s/\| [0-9.]+ [mµ]?s \|/| T |/;
            s/by [0-9.]+ %, more/by P %, more/'
}
gate | now
gate --update --quiet
gate | now | tail -n 2
sed -i 's/"batch": 64/"batch": 1/; s/11GiB/10GiB/
    s/checkpoint:sqrt/checkpoint:full+microbatch:4/
    s/"batch": 8, "kernels"/"batch": 64, "kernels"/' memory.json
gate | now
gate --markdown - | now
gate --quiet --markdown comment.md 2>/dev/null
head -n 1 comment.md
sed -i 's/checkpoint:full+microbatch:4/microbatch:3/' memory.json
gate --json | python3 -c 'import json, sys
text = sys.stdin.read()
for case in json.loads(text[text.index("{"):text.rindex("}") + 1])["cases"]:
    print(case["name"], case["verdict"], case["message"])'
