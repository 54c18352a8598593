"""An authorization server of Authlib with clients in memory. Arguments: its port, the port of Redis."""

import json
import sys
import time

import redis
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin
from authlib.oauth2.rfc6749.grants import ClientCredentialsGrant
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from flask import Flask, request
from joserfc.jwk import KeySet, RSAKey

PORT, REDIS = int(sys.argv[1]), int(sys.argv[2])
ISSUER, AUDIENCE, SCOPES = f"http://127.0.0.1:{PORT}", "https://api.example.com", ["orders:read"]
keys = KeySet([RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True)])
log = redis.Redis(host="127.0.0.1", port=REDIS)
clients = {}


class Client(ClientMixin):
    def __init__(self, client_id, secret):
        self.client_id, self.secret, self.description, self.generation = client_id, secret, "", 0

    def get_client_id(self):
        return self.client_id

    def get_allowed_scope(self, scope):
        return " ".join(one for one in (scope or "").split() if one in SCOPES)

    def check_client_secret(self, secret):
        return secret == self.secret

    def check_endpoint_auth_method(self, method, endpoint):
        return method == "client_secret_basic"

    def check_grant_type(self, grant_type):
        return grant_type == "client_credentials"


def client_changed(client):
    client.generation = max(client.generation + 1, time.time_ns() // 1_000_000)
    fields = {"client_id": client.client_id, "generation": client.generation}
    log.xadd("tillgate:generations", fields, minid=f"{client.generation - 90_000_000}", approximate=True)


class AsMade(JWTBearerTokenGenerator):
    def get_jwks(self):
        return keys.as_dict(private=True)


class Tokens(AsMade):
    def get_audiences(self, client, user, scope):
        return AUDIENCE

    def get_extra_claims(self, client, grant_type, user, scope):
        return {"generation": client.generation}


app = Flask(__name__)
server = AuthorizationServer(app, query_client=clients.get, save_token=lambda token, request: None)
server.register_grant(ClientCredentialsGrant)
server.register_token_generator("default", Tokens(ISSUER, expires_generator=lambda client, grant: 3600))
as_made = AuthorizationServer(app, query_client=clients.get, save_token=lambda token, request: None)
as_made.register_grant(ClientCredentialsGrant)
as_made.register_token_generator("default", AsMade(ISSUER))


@app.post("/as-made/token")
def token_as_made():
    return as_made.create_token_response()


@app.post("/token")
def token():
    return server.create_token_response()


@app.get("/.well-known/openid-configuration")
def metadata():
    return {"issuer": ISSUER, "token_endpoint": f"{ISSUER}/token", "jwks_uri": f"{ISSUER}/jwks"}


@app.get("/jwks")
def jwks():
    return keys.as_dict(private=False)


@app.post("/clients/<client_id>")
def change(client_id):
    """Creates a client, or changes members of it; a member `deleted` removes it."""
    values = json.loads(request.data)
    client = clients.setdefault(client_id, Client(client_id, values.get("secret")))
    vars(client).update(values)
    if values.get("deleted"):
        del clients[client_id]
    client_changed(client)
    return {}


app.run("127.0.0.1", PORT)
