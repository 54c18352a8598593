#!/usr/bin/env bash
# Packages:  oauth4webapi 3.8.8, @modelcontextprotocol/sdk 1.32.2 (npm), Authlib 1.9.10 (PyPI)
# Behaviour: for the metadata of an issuer RFC 8414 section 3.1 has the slash at the end of its path removed; for that of a resource
#            RFC 9728 section 3.1 names the slash after the host only. The SDK removes it in both, Authlib keeps it for an issuer,
#            and oauth4webapi does what each RFC says.
# Seen:      issuer https://as.example/shop/: oauth4webapi and the SDK ask at .../oauth-authorization-server/shop, Authlib names
#            .../shop/. Resource https://api.example/shop/: oauth4webapi .../oauth-protected-resource/shop/, the SDK .../shop.
# Surprise:  two RFCs with one scheme of URLs differ in one character, so a library with one rule for both is wrong for one of them. A
#            document that one client finds is 404 for the next one, under the same identifier.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --prefix . --silent --no-audit --no-fund oauth4webapi@3.8.8 @modelcontextprotocol/sdk@1.32.2
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check authlib==1.9.10
cat > run.mjs <<'EOF'
import assert from 'node:assert';
import { discoverAuthorizationServerMetadata, discoverOAuthProtectedResourceMetadata } from '@modelcontextprotocol/sdk/client/auth.js';
import * as oauth from 'oauth4webapi';

async function firstUrl(discover) {
  const asked = [];
  const recorder = (url) => {
    asked.push(String(url));
    return Promise.resolve(new Response(null, { status: 404 }));
  };
  await discover(recorder).catch(() => undefined);
  return asked[0];
}

const issuer = 'https://as.example/shop/';
const resource = 'https://api.example/shop/';
const seen = {
  issuer: {
    oauth4webapi: await firstUrl((fetch) =>
      oauth.discoveryRequest(new URL(issuer), { algorithm: 'oauth2', [oauth.customFetch]: fetch }),
    ),
    sdk: await firstUrl((fetchFn) => discoverAuthorizationServerMetadata(issuer, { fetchFn })),
  },
  resource: {
    oauth4webapi: await firstUrl((fetch) => oauth.resourceDiscoveryRequest(new URL(resource), { [oauth.customFetch]: fetch })),
    sdk: await firstUrl((fetch) => discoverOAuthProtectedResourceMetadata(resource, {}, fetch)),
  },
};
console.log(seen);
assert.deepEqual(seen, {
  issuer: {
    oauth4webapi: 'https://as.example/.well-known/oauth-authorization-server/shop',
    sdk: 'https://as.example/.well-known/oauth-authorization-server/shop',
  },
  resource: {
    oauth4webapi: 'https://api.example/.well-known/oauth-protected-resource/shop/',
    sdk: 'https://api.example/.well-known/oauth-protected-resource/shop',
  },
});
EOF
cat > run.py <<'EOF'
from authlib.oauth2.rfc8414 import get_well_known_url

url = get_well_known_url('https://as.example/shop/', external=True)
print('Authlib', url)
assert url == 'https://as.example/.well-known/oauth-authorization-server/shop/'
EOF
node run.mjs
env/bin/python run.py
