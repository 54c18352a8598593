#!/usr/bin/env bash
# Packages:  golang.org/x/oauth2 0.38.0 (Go)
# Behaviour: with its default AuthStyle a new client asks with HTTP Basic first. Any failure, not only invalid_client, makes it ask again at
#            once with the id and secret in the body: a 429 with `Retry-After: 30`, a 503, a 400 invalid_scope. Only a success ends
#            this, so a client that never had one asks twice each time.
# Seen:      429, 503 and invalid_scope: two requests each, Basic and then client_secret in the body, the second before the 30 s are over;
#            after a token was issued one request each.
# Surprise:  that it tries both styles is documented. That a 429 counts as "wrong style" is not: a server that asks for rest gets the next
#            request immediately, twice as many from each process that starts, and the secret where a body may be logged.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOMODCACHE="$dir/modules" GOFLAGS=-modcacherw
go mod init finding 2> log
go get golang.org/x/oauth2/clientcredentials@v0.38.0 2> log
cat > main.go <<'EOF'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"time"

	"golang.org/x/oauth2/clientcredentials"
)

func main() {
	var styles []string
	status, body := 200, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		if _, _, ok := r.BasicAuth(); ok {
			styles = append(styles, "basic")
		}
		if r.PostForm.Get("client_secret") == "secret" {
			styles = append(styles, "body")
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	defer server.Close()
	client := func() *clientcredentials.Config {
		return &clientcredentials.Config{ClientID: "till", ClientSecret: "secret", TokenURL: server.URL, Scopes: []string{"orders:read"}}
	}
	known := client()
	body = `{"access_token":"a","token_type":"Bearer"}`
	if _, err := known.Token(context.Background()); err != nil {
		panic(err)
	}
	for _, failure := range []struct {
		status int
		body   string
	}{{429, `{"error":"slow_down"}`}, {503, `{}`}, {400, `{"error":"invalid_scope"}`}} {
		status, body = failure.status, failure.body
		fresh := client()
		for _, row := range []struct {
			config *clientcredentials.Config
			expect []string
		}{{fresh, []string{"basic", "body"}}, {fresh, []string{"basic", "body"}}, {known, []string{"basic"}}} {
			styles = nil
			start := time.Now()
			_, err := row.config.Token(context.Background())
			fmt.Println(status, styles, err)
			if err == nil || !slices.Equal(styles, row.expect) || time.Since(start) > 30*time.Second {
				os.Exit(1)
			}
		}
	}
}
EOF
go run .
