#!/usr/bin/env bash
# Packages:  python-jose 3.5.0, PyJWT 2.15.1 (PyPI)
# Behaviour: python-jose accepts a whole key set as the key. It does not look for the token's `kid` there: it tries the keys in turn, and
#            the first one of another type than the token's `alg` ends the attempt with an error. PyJWT takes the key that `kid` names.
# Seen:      set [EC key "a", RSA key "b"], token RS256 with kid "b": JWKError "Incorrect key type. Expected: 'RSA', Received: EC"; set
#            [RSA, EC]: accepted, and then the token ES256 of kid "a" is refused. PyJWT accepts all four.
# Surprise:  each key has a `kid` of its own and each token names one, which is what `kid` is for. A set of two types has no order in
#            which both tokens are good, so it works until the token server publishes its second type.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'python-jose[cryptography]==3.5.0' 'PyJWT[crypto]==2.15.1'
cat > run.py <<'EOF'
import json

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jose import jwt as python_jose
from jose.exceptions import JOSEError
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

private = {'a': ec.generate_private_key(ec.SECP256R1()), 'b': rsa.generate_private_key(65537, 2048)}
algorithms = {'a': 'ES256', 'b': 'RS256'}
public = {
    'a': json.loads(ECAlgorithm.to_jwk(private['a'].public_key())),
    'b': json.loads(RSAAlgorithm.to_jwk(private['b'].public_key())),
}
for kid, key in public.items():
    key.update(kid=kid, use='sig', alg=algorithms[kid])
    key.pop('key_ops', None)
tokens = {kid: jwt.encode({'sub': 'till-1'}, private[kid], algorithms[kid], headers={'kid': kid}) for kid in private}


def of_python_jose(token, keys):
    try:
        return python_jose.decode(token, {'keys': keys}, algorithms=['RS256', 'ES256'])['sub']
    except JOSEError as error:
        return str(error)


def of_pyjwt(token, keys):
    key = jwt.PyJWKSet(keys)[jwt.get_unverified_header(token)['kid']]
    return jwt.decode(token, key, ['RS256', 'ES256'])['sub']


seen = {}
for order in ('ab', 'ba'):
    keys = [public[kid] for kid in order]
    for kid, token in tokens.items():
        seen[f'{order} {algorithms[kid]}'] = of_python_jose(token, keys)
        assert of_pyjwt(token, keys) == 'till-1'
print(seen)
assert seen['ab ES256'] == seen['ba RS256'] == 'till-1'
assert "Expected: 'RSA', Received: EC" in seen['ab RS256']
assert "Expected: 'EC', Received: RSA" in seen['ba ES256']
EOF
env/bin/python run.py
