#!/usr/bin/env bash
# Packages:  ajv 8.20.0 (npm)
# Behaviour: with `multipleOf: 0.01`, the usual way to describe a price, the prices 19.99 and 8.2 are refused and 1.1 is accepted.
#            With `multipleOfPrecision: 6` all are accepted, and so is 19.99000000001.
# Seen:      19.99 false, 8.2 false, 1.1 true; with the precision true, true, true, and 19.99000000001 true; 19.999 false.
# Surprise:  the remainder is computed in binary fractions, so 1363 of the 10000 prices up to 100.00 fail, while a test with
#            1.1 or 10 passes.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund ajv@8.20.0
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import Ajv from 'ajv';

const schema = { type: 'number', multipleOf: 0.01 };
const strict = new Ajv().compile(schema);
const rounded = new Ajv({ multipleOfPrecision: 6 }).compile(schema);
const prices = [19.99, 8.2, 1.1, 19.99000000001, 19.999];
const seen = prices.map((price) => [price, strict(price), rounded(price)]);
let refused = 0;
for (let cents = 1; cents <= 10_000; cents += 1) if (!strict(cents / 100)) refused += 1;
console.log(seen, `${refused} of 10000 prices up to 100.00 refused`);
assert.deepEqual(seen, [
  [19.99, false, true],
  [8.2, false, true],
  [1.1, true, true],
  [19.99000000001, false, true],
  [19.999, false, false],
]);
assert.equal(refused, 1363);
EOF
node run.mjs
