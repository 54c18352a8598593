"""Gets a token with authlib, then calls URLs with it. Prints the token response and the statuses as JSON."""

import json
import sys

from authlib.integrations.requests_client import OAuth2Session

asked = json.loads(sys.argv[1])
session = OAuth2Session(
    asked["clientId"],
    asked["secret"],
    scope=asked["scope"],
    token_endpoint_auth_method=asked["method"],
)
token = session.fetch_token(asked["tokenEndpoint"], grant_type="client_credentials")
statuses = [session.get(url).status_code for url in asked["urls"]]
print(json.dumps({"token": token, "statuses": statuses}))
