#!/usr/bin/env bash
# Packages:  jose 6.2.18 (npm), github.com/coreos/go-oidc/v3 3.21.0, github.com/go-jose/go-jose/v4 4.1.9,
#            github.com/lestrrat-go/jwx/v3 3.4.0, github.com/MicahParks/keyfunc/v3 3.9.2 with golang-jwt 5.3.1 (Go)
# Behaviour: RFC 7517 section 5 has an implementation ignore the keys of a set whose `kty` it does not know. jose and go-oidc do so. jwx,
#            keyfunc and go-jose refuse the whole set when one such key is in it.
# Seen:      a set of an ML-DSA key (`kty` "AKP") and the RSA key of the token: accepted, accepted; "invalid key type from JSON (AKP)",
#            "unsupported key: AKP (kty)", "unsupported key type"; without the ML-DSA key all five accept.
# Surprise:  the day an issuer publishes its first post-quantum key next to the old one, these services refuse every token, those of the
#            old key included. go-oidc is built on go-jose and still behaves otherwise.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOMODCACHE="$dir/modules" GOFLAGS=-modcacherw
npm install --prefix . --silent --no-audit --no-fund jose@6.2.18
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { SignJWT, createLocalJWKSet, exportJWK, generateKeyPair, jwtVerify } from 'jose';

const { publicKey, privateKey } = await generateKeyPair('RS256');
const rsa = { ...(await exportJWK(publicKey)), kid: 'rsa', use: 'sig', alg: 'RS256' };
const mlDsa = { kty: 'AKP', kid: 'pq', use: 'sig', alg: 'ML-DSA-44', pub: randomBytes(1312).toString('base64url') };
const token = await new SignJWT({ iss: 'https://login.example', aud: 'orders' })
  .setProtectedHeader({ alg: 'RS256', kid: 'rsa' })
  .setExpirationTime('5m')
  .sign(privateKey);
const { payload } = await jwtVerify(token, createLocalJWKSet({ keys: [mlDsa, rsa] }));
assert.equal(payload.aud, 'orders');
console.log('jose accepted');
writeFileSync('token', token);
writeFileSync('both.json', JSON.stringify({ keys: [mlDsa, rsa] }));
writeFileSync('rsa.json', JSON.stringify({ keys: [rsa] }));
EOF
node run.mjs
go mod init finding 2> log
go get github.com/coreos/go-oidc/v3@v3.21.0 github.com/go-jose/go-jose/v4@v4.1.9 github.com/lestrrat-go/jwx/v3@v3.4.0 \
  github.com/MicahParks/keyfunc/v3@v3.9.2 github.com/golang-jwt/jwt/v5@v5.3.1 2> log
cat > main.go <<'EOF'
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/lestrrat-go/jwx/v3/jwk"
	jwx "github.com/lestrrat-go/jwx/v3/jwt"
)

func read(name string) []byte {
	text, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return text
}

func goOIDC(set []byte, token string) error {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(set) }))
	defer server.Close()
	keys := oidc.NewRemoteKeySet(context.Background(), server.URL)
	_, err := oidc.NewVerifier("https://login.example", keys, &oidc.Config{ClientID: "orders"}).Verify(context.Background(), token)
	return err
}

func goJose(set []byte, token string) error {
	var keys jose.JSONWebKeySet
	if err := json.Unmarshal(set, &keys); err != nil {
		return err
	}
	signed, err := jose.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
	if err == nil {
		_, err = signed.Verify(keys)
	}
	return err
}

func ofJWX(set []byte, token string) error {
	keys, err := jwk.Parse(set)
	if err == nil {
		_, err = jwx.Parse([]byte(token), jwx.WithKeySet(keys))
	}
	return err
}

func ofKeyfunc(set []byte, token string) error {
	keys, err := keyfunc.NewJWKSetJSON(set)
	if err == nil {
		_, err = jwt.Parse(token, keys.Keyfunc)
	}
	return err
}

func main() {
	token, both, alone := string(read("token")), read("both.json"), read("rsa.json")
	for _, row := range []struct {
		name   string
		verify func([]byte, string) error
		expect string
	}{
		{"go-oidc", goOIDC, ""},
		{"jwx", ofJWX, "invalid key type from JSON (AKP)"},
		{"keyfunc", ofKeyfunc, "unsupported key: AKP (kty)"},
		{"go-jose", goJose, "unsupported key type"},
	} {
		err := row.verify(both, token)
		fmt.Println(row.name, err)
		changed := (err == nil) != (row.expect == "") || (err != nil && !strings.Contains(err.Error(), row.expect))
		if changed || row.verify(alone, token) != nil {
			os.Exit(1)
		}
	}
}
EOF
go mod tidy 2> log
go run .
