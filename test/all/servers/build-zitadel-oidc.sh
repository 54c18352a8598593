#!/bin/sh
# Builds the example server of zitadel/oidc into the folder given, with Go.
set -e
cd "$1"
[ -f go.mod ] || go mod init example.com/server
go get github.com/zitadel/oidc/v3/example/server@v3.52.0
go build -o server github.com/zitadel/oidc/v3/example/server
