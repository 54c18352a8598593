#!/usr/bin/env bash
# Packages:  Babel 2.19.0, iso4217 1.16.20260101, py-moneyed 3.0 (PyPI), currency-codes 2.2.0 (npm)
# Behaviour: ISO 4217 gives the forint, the Colombian peso and the rupiah two digits and the Iraqi dinar three. iso4217, py-moneyed and
#            currency-codes say so. Babel, which follows CLDR, says none for all four, and formats accordingly. py-moneyed counts by the
#            one and prints by the other.
# Seen:      HUF, COP, IDR: 2 from the lists, 0 from Babel; IQD 3 and 0; EUR 2 and JPY 0 everywhere. Money("12.50", "HUF") is 1250 in its
#            sub-unit and is printed as "HUF 12".
# Surprise:  an amount in minor units is a hundred times too high or too low when the payment API asks the list and the receipt asks the
#            locale data, and no test with EUR and JPY sees it. py-moneyed alone prints another amount than it counts.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund currency-codes@2.2.0
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check babel==2.19.0 iso4217==1.16.20260101 py-moneyed==3.0
cat > run.py <<'EOF'
import json
import math
import subprocess

from babel.numbers import format_currency, get_currency_precision
from iso4217 import Currency
from moneyed import Money, get_currency

CODES = ['EUR', 'JPY', 'HUF', 'COP', 'IDR', 'IQD']
script = 'const { code } = require("currency-codes"); console.log(JSON.stringify(process.argv.slice(1).map((c) => code(c).digits)))'
of_node = dict(zip(CODES, json.loads(subprocess.run(['node', '-e', script, *CODES], capture_output=True, check=True).stdout)))
seen = {
    code: (Currency(code).exponent, round(math.log10(get_currency(code).sub_unit)), of_node[code], get_currency_precision(code))
    for code in CODES
}
total = Money('12.50', 'HUF')
printed = str(total).replace('\xa0', ' ')
print(seen, total.get_amount_in_sub_unit(), printed, format_currency(1250, 'HUF', locale='en'))
assert seen['EUR'] == (2, 2, 2, 2) and seen['JPY'] == (0, 0, 0, 0)
assert seen['HUF'] == seen['COP'] == seen['IDR'] == (2, 2, 2, 0)
assert seen['IQD'] == (3, 3, 3, 0)
assert (total.get_amount_in_sub_unit(), printed) == (1250, 'HUF 12')
EOF
env/bin/python run.py
