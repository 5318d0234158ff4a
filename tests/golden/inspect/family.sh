# SPDX-License-Identifier: GPL-3.0-or-later
# A family of one's own: a page with typed keys, models of it, --set, and what
# is wrong with models and pages.
show() { # two lines of a model, or a message
    sed -n '1,2p; 3,5{/^ /p;}' | sed '/^layer/,$d; /without the head/d'
}
cat >mlp.page.json <<'EOF'
{"family": "mlp",
 "summary": "layers of one width",
 "source": "written for this test",
 "keys": {
   "depth": {"type": "integer", "low": 1, "high": 1000,
             "required": true, "help": "hidden layers"},
   "width": {"type": "integer", "low": 1, "high": 65536,
             "default": 512, "help": "features of each"},
   "inner": {"type": "integer", "low": 1, "high": 65536,
             "help": "features between; default 4 * width"},
   "p": {"type": "number", "low": 0, "high": 1, "default": 0.12345678,
         "help": "of dropout"},
   "act": {"type": "word", "words": "relu|gelu", "help": "between"},
   "bias": {"type": "boolean", "help": "of linear layers"}},
 "let": {"wide": "inner ?? 4 * width"},
 "check": [{"divides": ["width", "wide_too"], "if": "false"},
           {"that": "act == 'relu' || width % 8 == 0",
            "else": "gelu needs a width in eights", "why": "round it up"}],
 "input": {"shape": ["=width"]},
 "layers": [
   {"repeat": "=depth", "name": "layers", "layers": [
     {"type": "linear", "name": "up", "out": "=wide", "bias": "=bias"},
     {"type": "=act", "name": "act"},
     {"type": "dropout", "name": "dropout", "if": "p > 0", "p": "=p"},
     {"type": "linear", "name": "down",
      "out": "=i == 0 ? width : width // 2 * 2", "bias": "=bias"}]},
   {"type": "mean", "name": "loss"}]}
EOF
model() {
    printf '{"memsim": 1, "family": "mlp",\n "config": %s}\n' "$1" >m.json
}
page() { "$MEMSIM" inspect m.json --page mlp.page.json "$@" 2>&1 | show; }
model '{"depth": 3}'
echo "# a model"
page
echo "# --set"
page --set model.width=64 --set model.inner=100 --set model.p=0 \
    --set model.act=gelu
echo "# run"
"$MEMSIM" run m.json --page mlp.page.json 2>&1 | sed 1q
echo "# MEMSIM_PAGES"
mkdir pages
cp mlp.page.json pages/mlp.json
MEMSIM_PAGES=pages "$MEMSIM" inspect m.json 2>&1 | show
echo '{' >pages/broken.json
MEMSIM_PAGES=pages "$MEMSIM" help mlp
MEMSIM_PAGES=pages "$MEMSIM" help families | grep '^[^ ]*:'
echo "# none"
"$MEMSIM" inspect m.json 2>&1 | sed -n 1,4p
echo "# out of range, a word, a key, a rule"
page --set model.depth=1001
page --set model.act=glu
model '{"depth": 0}' && page
model '{"depht": 3}' && page
model '{"width": 3}' && page
model '{"depth": 3, "act": "gelu", "width": 12}' && page
model '{"depth": 3}'
broken() { # the same page with one thing wrong
    echo "# $1"
    sed "$2" mlp.page.json >broken.json
    "$MEMSIM" inspect m.json --page broken.json 2>&1 | sed -n 1,4p
}
broken "a key of a page" 's/"let"/"lte"/'
broken "a member" 's/"low": 1, "high": 1000/"least": 1/'
broken "no range" 's/"low": 1, "high": 1000,/"low": 1,/'
broken "a default" 's/"default": 512/"default": 0/'
broken "nothing where it is not given" 's/; default 4 \* width//'
broken "no words" 's/"words": "relu|gelu", //'
broken "a name" 's/"depth": {/"i": {/'
broken "a name in a rule" 's/"if": "false"/"if": "true"/'
broken "a name in a layer" 's/=wide"/=wdie"/'
broken "an expression" 's/=wide"/=wide +"/'
broken "a field of a layer" 's/"out": "=wide"/"out": "=0"/'
echo "# no layers"
echo '{"family": "mlp", "keys": {}}' >broken.json
"$MEMSIM" inspect m.json --page broken.json 2>&1 | sed -n 1,4p
echo "# like the decoder"
cat >gpt.json <<'EOF'
{"family": "tiny-gpt", "like": "decoder", "keys": {
  "layers": {"required": false, "default": 2},
  "vocab": {"required": false, "default": 1000},
  "norm_type": {"default": "rms_norm"}}}
EOF
echo '{"family": "tiny-gpt", "config": {"hidden": 64, "heads": 4,' >m.json
echo '  "positions": 128}}' >>m.json
"$MEMSIM" inspect m.json --page gpt.json 2>&1 | show
"$MEMSIM" inspect m.json --page gpt.json --set model.heads=5 2>&1 | show
sed 's/"decoder"/"decodr"/' gpt.json >broken.json
"$MEMSIM" inspect m.json --page broken.json 2>&1 | sed -n 1,4p
