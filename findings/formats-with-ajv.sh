#!/usr/bin/env bash
# Packages:  ajv 8.20.0, ajv-formats 3.0.1 (npm)
# Behaviour: `date-time` accepts a leap second, which `Date` cannot read, and refuses a time without a zone, which `Date` reads.
#            `format: int32` has limits, `format: int64` has none: 1e300 is a valid int64.
# Seen:      2016-12-31T23:59:60Z: valid, Invalid Date; 2026-11-28T10:00:00: not valid, a date; int32 2147483648 false; int64 1e300 true.
# Surprise:  "valid" and "can be read" are two things in both directions, and the larger of two sibling formats checks nothing
#            but that the number is whole.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund ajv@8.20.0 ajv-formats@3.0.1
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import Ajv from 'ajv';
import addFormats from 'ajv-formats';

const ajv = new Ajv();
addFormats(ajv);
const time = (text) => [ajv.validate({ type: 'string', format: 'date-time' }, text), !Number.isNaN(Date.parse(text))];
const leap = time('2016-12-31T23:59:60Z');
const local = time('2026-11-28T10:00:00');
const int32 = ajv.validate({ type: 'integer', format: 'int32' }, 2 ** 31);
const int64 = ajv.validate({ type: 'integer', format: 'int64' }, 1e300);
console.log({ leap, local, int32, int64 });
assert.deepEqual({ leap, local, int32, int64 }, { leap: [true, false], local: [false, true], int32: false, int64: true });
EOF
node run.mjs
