"""An API as FastAPI's documentation protects it by scopes (tutorial "OAuth2 scopes"), with tokens of an issuer elsewhere.

argv: port, issuer, audience, and what it forgets: "audience" or "scopes".
"""

import json
import sys
import urllib.request

import jwt
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Security
from fastapi.security import OAuth2PasswordBearer, SecurityScopes
from pydantic import BaseModel

port, issuer, audience, forgotten = sys.argv[1:5]
app = FastAPI()
oauth2 = OAuth2PasswordBearer(tokenUrl="token", scopes={"orders:read": "See orders", "orders:write": "Place orders"})


def signing_key(token: str):
    with urllib.request.urlopen(issuer + "/.well-known/openid-configuration") as response:
        uri = json.load(response)["jwks_uri"]
    return jwt.PyJWKClient(uri).get_signing_key_from_jwt(token).key


def caller(needed: SecurityScopes, token: str = Depends(oauth2)) -> dict:
    challenge = {"WWW-Authenticate": f'Bearer scope="{needed.scope_str}"'}
    options = {"verify_aud": forgotten != "audience"}
    try:
        claims = jwt.decode(token, signing_key(token), ["ES256"], options, audience=audience, issuer=issuer)
    except Exception:
        raise HTTPException(401, "Could not validate credentials", headers=challenge)
    granted = str(claims.get("scope", "")).split()
    if forgotten != "scopes" and not all(scope in granted for scope in needed.scopes):
        raise HTTPException(403, "Not enough permissions", headers=challenge)
    return claims


class Order(BaseModel):
    item: str
    quantity: int = 1


@app.get("/orders")
def list_orders(status: str = "open", user: dict = Security(caller, scopes=["orders:read"])):
    return [{"id": 1, "item": "Margherita"}]


@app.post("/orders", status_code=201)
def place_order(order: Order, user: dict = Security(caller, scopes=["orders:write"])):
    return {"id": 2, **order.dict()}


@app.get("/orders/{order_id}")
def get_order(order_id: int, user: dict = Security(caller, scopes=["orders:read"])):
    return {"id": order_id, "item": "Margherita"}


uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")
