#!/usr/bin/env bash
# Packages:  github.com/golang-jwt/jwt/v5 5.3.1 (Go), jose 6.2.18 (npm)
# Behaviour: `exp` may have a fraction. golang-jwt drops it when it reads the claim and keeps it in the clock it compares with; jose
#            keeps the fraction of `exp` and drops that of its clock. So at 2000000000.5 the verdicts on 2000000000.4 and .9 differ.
# Seen:      golang-jwt "token is expired", jose accepted; with `exp` 2000000001 both accept.
# Surprise:  both libraries know fractions, and each rounds the other side of the comparison. A token that one service accepts is
#            expired at the next one for up to a second before its end.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOMODCACHE="$dir/modules" GOFLAGS=-modcacherw
npm install --prefix . --silent --no-audit --no-fund jose@6.2.18
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { writeFileSync } from 'node:fs';
import { SignJWT, jwtVerify } from 'jose';

const secret = new TextEncoder().encode('a-secret-of-at-least-thirty-two-bytes');
const tokens = [];
for (const exp of [2_000_000_000.4, 2_000_000_000.9, 2_000_000_001]) {
  const token = await new SignJWT({ exp }).setProtectedHeader({ alg: 'HS256' }).sign(secret);
  const { payload } = await jwtVerify(token, secret, { currentDate: new Date(2_000_000_000_500) });
  assert.equal(payload.exp, exp);
  console.log('jose accepted', exp);
  tokens.push(token);
}
writeFileSync('tokens', tokens.join('\n'));
EOF
node run.mjs
go mod init finding 2> log
go get github.com/golang-jwt/jwt/v5@v5.3.1 2> log
cat > main.go <<'EOF'
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func main() {
	text, err := os.ReadFile("tokens")
	if err != nil {
		panic(err)
	}
	secret := []byte("a-secret-of-at-least-thirty-two-bytes")
	clock := jwt.WithTimeFunc(func() time.Time { return time.UnixMilli(2_000_000_000_500) })
	var seen []error
	for _, token := range strings.Split(string(text), "\n") {
		_, err := jwt.Parse(token, func(*jwt.Token) (any, error) { return secret, nil }, clock)
		fmt.Println("golang-jwt", err)
		seen = append(seen, err)
	}
	if !errors.Is(seen[0], jwt.ErrTokenExpired) || !errors.Is(seen[1], jwt.ErrTokenExpired) || seen[2] != nil {
		os.Exit(1)
	}
}
EOF
go run .
