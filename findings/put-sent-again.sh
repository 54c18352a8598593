#!/usr/bin/env bash
# Packages:  requests 2.34.2 with urllib3 2.8.0 (PyPI)
# Behaviour: `HTTPAdapter(max_retries=2)` is documented for failed lookups and connections only, "never to requests where data has made it
#            to the server". A PUT whose body arrived and whose response is 503, 429 or 413 with `Retry-After` is sent again all the same.
#            Without `Retry-After` it is sent once; a POST is always sent once.
# Seen:      PUT, DELETE and GET: 3 requests with `Retry-After`, 1 without; POST 1; the bodies of all three PUTs arrived.
# Surprise:  one header of the response switches on retries that the option excludes. A server that adds `Retry-After` to its 503, as
#            RFC 9110 section 10.2.3 has it, gets each order three times from a caller that wanted nothing but reconnects.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check requests==2.34.2 urllib3==2.8.0
cat > run.py <<'EOF'
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from requests.adapters import HTTPAdapter

bodies = []


class Shop(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_PUT(self):
        bodies.append(self.rfile.read(int(self.headers.get('Content-Length') or 0)))
        self.send_response(int(self.path[1:4]))
        if self.path.endswith('later'):
            self.send_header('Retry-After', '0')
        self.send_header('Content-Length', '0')
        self.end_headers()

    do_GET = do_POST = do_DELETE = do_PUT


server = ThreadingHTTPServer(('127.0.0.1', 0), Shop)
threading.Thread(target=server.serve_forever, daemon=True).start()
session = requests.Session()
session.mount('http://', HTTPAdapter(max_retries=2))


def count(method, path):
    bodies.clear()
    response = session.request(method, f'http://127.0.0.1:{server.server_port}/{path}', data=None if method == 'GET' else b'order')
    assert response.status_code == int(path[:3])
    return len(bodies)


assert 'never to requests where data has' in HTTPAdapter.__doc__
seen = {f'{method} {path}': count(method, path) for method in ('PUT', 'DELETE', 'GET', 'POST') for path in ('503', '503/later')}
seen.update({f'PUT {path}': count('PUT', path) for path in ('413/later', '429/later', '500/later')})
print(seen)
assert count('PUT', '503/later') == 3 and bodies == [b'order'] * 3
for method in ('PUT', 'DELETE', 'GET'):
    assert (seen[f'{method} 503'], seen[f'{method} 503/later']) == (1, 3)
assert seen['POST 503/later'] == 1
assert (seen['PUT 413/later'], seen['PUT 429/later'], seen['PUT 500/later']) == (3, 3, 1)
server.shutdown()
EOF
env/bin/python run.py
