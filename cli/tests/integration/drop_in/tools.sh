# Called with a link `sops` on the path, in a folder with a rule for all files.
fail() { echo "failed: $*"; exit 1; }

# helm-secrets tells sealed files from others by text, and opens them to a file of its own.
sops --encrypt --input-type yaml --output-type yaml --in-place values.yaml
grep -q 'mac.*,type:str]' values.yaml || fail "the text by which a sealed file is known"
grep -qx 'sops:' values.yaml || fail "the block's first line"
grep -q 'version: 3\.' values.yaml || fail "the version"
sops --decrypt --input-type yaml --output-type yaml --output values.dec.yaml values.yaml
grep -qx '  password: correct horse' values.dec.yaml || fail "the opened values"
sops --decrypt --input-type yaml --output-type yaml values.yaml | cmp - values.dec.yaml
if sops --encrypt --in-place values.yaml 2>/dev/null; then fail "sealed twice"; fi
rm values.dec.yaml

# direnv and shells read an environment.
sops -e -i app.env
eval "$(sops -d --output-type dotenv app.env)"
[ "$TOKEN" = t0ken ] || fail "dotenv"
eval "$(sops decrypt app.env)"
[ "$MODE" = dev ] || fail "dotenv by its name"

# Editors pipe buffers through it.
sops --decrypt --input-type yaml --output-type yaml /dev/stdin < values.yaml > buffer
sops --encrypt --input-type yaml --output-type yaml --filename-override values.yaml /dev/stdin < buffer > again
sops --decrypt --input-type yaml --output-type yaml /dev/stdin < again | cmp - buffer
rm buffer again

# A script as the editor.
cat > edit.sh <<'SCRIPT'
#!/bin/sh
sed -i 's/correct horse/battery staple/' "$1"
SCRIPT
chmod +x edit.sh
EDITOR="$PWD/edit.sh" sops values.yaml
[ "$(sops -d --extract '["db"]["password"]' values.yaml)" = "battery staple" ] || fail "the edited value"
code=0; EDITOR=true sops values.yaml 2>/dev/null || code=$?
[ "$code" = 200 ] || fail "nothing changed is $code"

# Binary files are known by their text, too.
sops -e -i key.txt
grep -q '"data": "ENC' key.txt || fail "binary"
[ "$(sops -d key.txt)" = "binary text" ] || fail "binary opened"

# git shows what changed.
git init -q . && echo '*.yaml diff=sopsdiffer' > .gitattributes
git config diff.sopsdiffer.textconv "sops -d"
git -c user.name=ops -c user.email=ops@example.org add -A
git -c user.name=ops -c user.email=ops@example.org commit -qm one
sops --set '["db"]["password"] "third"' values.yaml
git -c core.pager=cat diff values.yaml | grep -qx '+  password: third' || fail "the diff"

# Others ask for the version and look for a number.
sops --version | head -1 | grep -Eq '^sops 3\.13\.3' || fail "the version"
sops --version --disable-version-check | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1 | grep -qx 3.13.3 || fail "the number"
[ "$(sops --version | wc -l)" = 1 ] || fail "one line"
echo all of them
