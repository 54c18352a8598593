#!/usr/bin/env bash
# Packages:  requests-oauthlib 2.0.0 with oauthlib 4.0.1, Authlib 1.9.10, requests 2.34.2 (PyPI)
# Behaviour: a caller asks for `orders:read orders:write` and the token server grants one of them and says so, as RFC 6749 section 5.1
#            has it. requests-oauthlib raises a `Warning` as an exception, and the token is not returned; Authlib returns it. The same
#            scopes in another order are no change. `expires_in: 0` is left out of the token of requests-oauthlib.
# Seen:      Warning: Scope has changed from "..." to "orders:read".; Authlib: scope 'orders:read'; expires_in absent.
# Surprise:  a caller fails at a token that would do, on the day an operator removes a scope that it does not use. What is raised is
#            not an OAuth2Error, so a handler for token errors does not catch it.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check requests-oauthlib==2.0.0 oauthlib==4.0.1 authlib==1.9.10 requests==2.34.2
cat > run.py <<'EOF'
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from oauthlib.oauth2 import BackendApplicationClient, OAuth2Error
from requests_oauthlib import OAuth2Session

os.environ['OAUTHLIB_INSECURE_TRANSPORT'] = '1'
ASKED = 'orders:read orders:write'
answer = {}


class TokenServer(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        body = json.dumps({'access_token': 'a', 'token_type': 'Bearer', **answer}).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(('127.0.0.1', 0), TokenServer)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f'http://127.0.0.1:{server.server_port}/token'


def fetch(**members):
    answer.clear()
    answer.update(members)
    session = OAuth2Session(client=BackendApplicationClient('till-1', scope=ASKED), scope=ASKED)
    return session.fetch_token(url, client_id='till-1', client_secret='secret')


try:
    fetch(scope='orders:read')
    raised = None
except Exception as error:
    raised = error
print(type(raised).__name__, raised)
assert type(raised) is Warning and not isinstance(raised, OAuth2Error)
assert 'Scope has changed' in str(raised)
granted = AuthlibSession('till-1', 'secret', scope=ASKED).fetch_token(url, grant_type='client_credentials')
print(dict(granted))
assert granted['scope'] == 'orders:read'
assert sorted(fetch(scope='orders:write orders:read')['scope']) == ['orders:read', 'orders:write']
assert 'expires_in' not in fetch(expires_in=0)
server.shutdown()
EOF
env/bin/python run.py
