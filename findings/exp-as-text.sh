#!/usr/bin/env bash
# Packages:  PyJWT 2.15.1, joserfc 1.8.0 (PyPI)
# Behaviour: PyJWT accepts `exp` as a text that Python's int() can read: "2000000000", " 2000000000 " and "2_000_000_000". joserfc
#            refuses all three, as RFC 7519 has `exp` as a number. `sub` as a number is refused by both.
# Seen:      PyJWT accepted, accepted, accepted, InvalidSubjectError; joserfc InvalidClaimError four times.
# Surprise:  one claim is read leniently and its neighbour strictly. A token server that writes its numbers as text works for years
#            with one API and is refused by the next one, in the same language.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check PyJWT==2.15.1 joserfc==1.8.0 cryptography==50.0.2
cat > run.py <<'EOF'
import json

import jwt
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import OctKey

SECRET = 'a-secret-of-at-least-thirty-two-bytes'


def verdicts(claims):
    token = jwt.api_jws.encode(json.dumps(claims).encode(), SECRET, 'HS256')
    seen = []
    try:
        jwt.decode(token, SECRET, ['HS256'])
        seen.append('accepted')
    except jwt.InvalidTokenError as error:
        seen.append(type(error).__name__)
    try:
        registry = joserfc_jwt.JWTClaimsRegistry()
        registry.validate(joserfc_jwt.decode(token, OctKey.import_key(SECRET)).claims)
        seen.append('accepted')
    except Exception as error:
        seen.append(type(error).__name__)
    return seen


for text in ('2000000000', ' 2000000000 ', '2_000_000_000'):
    print(repr(text), verdicts({'exp': text}))
    assert verdicts({'exp': text}) == ['accepted', 'InvalidClaimError']
print('sub 5', verdicts({'sub': 5}))
assert verdicts({'sub': 5}) == ['InvalidSubjectError', 'InvalidClaimError']
EOF
env/bin/python run.py
