#!/bin/sh
# Builds Ory Hydra into the folder given, with Go: some minutes of two cores.
set -e
cd "$1"
[ -f go.mod ] || go mod init example.com/hydra
go get -tool github.com/ory/hydra/v2@v2.3.0
# The replacement is Hydra's own: one of a dependency is not applied by the module that needs it.
go mod edit -replace github.com/gobuffalo/pop/v6=github.com/ory/pop/v6@v6.2.1-0.20241121111754-e5dfc0f3344b
go mod tidy -e
go build -tags sqlite -o hydra github.com/ory/hydra/v2
