# SPDX-License-Identifier: GPL-3.0-or-later
# A page of one's own for a model_type that memsim has none of: as a file, by
# --set, from the folder of MEMSIM_PAGES; and what is wrong with pages.
show() { # two lines of a model, or a message
    sed -n '1,2p; 3,5{/^ /p;}' | sed '/^layer/,$d'
}
printf '{"model_type": "tiny", "hidden_size": 128,\n' >config.json
printf ' "architectures": ["TinyForCausalLM"]}\n' >>config.json
mkdir pages
cat >pages/tiny.json <<'EOF'
{"model_type": "tiny",
 "class": "Tiny",
 "source": "written for this test",
 "defaults": {"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
              "intermediate_size": null},
 "also": {"n_embd": "hidden_size"},
 "heads": {"ForCausalLM": "lm", "absent": "lm", "Model": "none"},
 "let": {"ffn": "intermediate_size ?? 4 * hidden_size"},
 "check": [{"positive": ["hidden_size", "vocab_size"]}],
 "layers": [
   {"type": "embedding", "vocab": "=vocab_size", "dim": "=hidden_size"},
   {"repeat": "=num_hidden_layers", "name": "layers", "layers": [
     {"type": "linear", "out": "=ffn"}, {"type": "relu"},
     {"type": "linear", "out": "=hidden_size"}]},
   {"type": "linear", "name": "head", "if": "head == 'lm'",
    "out": "=vocab_size"},
   {"type": "cross_entropy"}]}
EOF
echo "# --page"
"$MEMSIM" inspect config.json --page pages/tiny.json 2>&1 | show
echo "# --set, and run"
"$MEMSIM" run config.json --set model.page=pages/tiny.json 2>&1 | sed 1q
echo "# MEMSIM_PAGES"
MEMSIM_PAGES=pages "$MEMSIM" inspect config.json 2>&1 | show
echo "# none"
"$MEMSIM" inspect config.json 2>&1 | sed -n 1,3p
broken() { # the same page with one thing wrong
    echo "# $1"
    sed "$2" pages/tiny.json >broken.json
    "$MEMSIM" inspect config.json --page broken.json 2>&1 | show
}
broken "a key" 's/"heads"/"haeds"/'
broken "a rule" 's/\["hidden_size", "vocab_size"\]/[]/'
broken "no rule" 's/"positive"/"why"/'
broken "no type" 's/"model_type": "tiny",//'
broken "a kind" 's/"also": {[^}]*}/"also": ["n_embd"]/'
broken "no head" 's/"absent": "lm", *//'
broken "no layers" 's/"layers": \[$/"mtp": [/'
broken "a name" 's/=vocab_size"}/=vocab_sze"}/'
echo "# another model_type's page"
sed 's/"tiny"/"small"/' pages/tiny.json >small.json
"$MEMSIM" inspect config.json --page small.json 2>&1 | sed -n 1,1p
echo "# llama by a page that is like llama"
printf '{"model_type": "llama", "like": "llama",\n' >llama.json
printf ' "defaults": {"num_hidden_layers": 2}}\n' >>llama.json
echo '{"model_type": "llama", "vocab_size": 100}' >config.json
"$MEMSIM" inspect config.json --page llama.json 2>&1 | show
echo "# of an image, by \"input\""
cat >image.json <<'EOF'
{"model_type": "image", "class": "Image", "source": "written for this test",
 "defaults": {"size": 32, "hidden_size": 8}, "heads": {"absent": "none"},
 "input": {"shape": [3, "=size", "=size"]},
 "layers": [{"type": "conv2d", "out": "=hidden_size", "kernel": 3},
            {"type": "mean", "name": "loss"}]}
EOF
echo '{"model_type": "image", "hidden_size": 4}' >config.json
"$MEMSIM" inspect config.json --page image.json 2>&1 | show
