#!/bin/sh
# Installs what the callers in other languages need, into node_modules/.callers: python3-venv, go, java and mvn must be there, and their registries.
set -eu
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
root=$(CDPATH='' cd "$here/../../.." && pwd)
target=${CALLERS:-$root/node_modules/.callers}
examples=$root/examples/callers

mkdir -p "$target/go/run" "$target/java/src/main/java"
python3 -m venv "$target/python"
"$target/python/bin/pip" install --quiet Authlib==1.9.10 requests

cp "$examples/caller.go" "$here/go/go.mod" "$target/go/"
cp "$here/go/main.go" "$target/go/run/"
(cd "$target/go" && go mod tidy && go build -o caller ./run)

cp "$here/java/pom.xml" "$target/java/"
cp "$examples/TokenInterceptor.java" "$here/java/Main.java" "$target/java/src/main/java/"
(cd "$target/java" && mvn --quiet package)
