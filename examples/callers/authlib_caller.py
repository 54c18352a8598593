"""One token for all calls, with Authlib and requests. After 401 invalid_token, only the token that was refused is replaced."""

import threading
import time

import requests
from authlib.integrations.requests_client import OAuth2Session


class Caller:
    def __init__(self, token_url, client_id, client_secret, scope, base_url):
        # In the form: Authlib does not form-encode id and secret inside Basic.
        self._options = {"client_id": client_id, "client_secret": client_secret, "scope": scope,
                         "token_endpoint_auth_method": "client_secret_post"}
        self._token_url, self._base_url = token_url, base_url
        self._lock = threading.Lock()
        self._current = None
        self._failed = None  # (error, until)

    def call(self, method, path, headers=None, **options):
        """Calls a path of the API. No redirect is followed: its target gets no token."""
        held = self._take()
        for attempt in (1, 2, 3):
            sent = {**(headers or {}), "Authorization": f"Bearer {held['text']}"}
            response = requests.request(method, self._base_url + path, headers=sent, allow_redirects=False, **options)
            if response.status_code not in (401, 429) and response.status_code < 500:
                held["accepted"] = True
            refused = 'error="invalid_token"' in response.headers.get("WWW-Authenticate", "")
            if attempt == 3 or response.status_code != 401 or not refused:
                return response
            following = self._take(held)
            if following is held:
                return response
            held = following

    def _take(self, refused=None):
        """The token for the next attempt, requested once for all; the refused one itself if no other one is available."""
        with self._lock:
            now, held = time.monotonic(), self._current
            if held and held is not refused and now < held["until"]:
                return held
            if self._failed and now < self._failed[1]:
                raise self._failed[0]
            refusals = 0  # tokens in a row that were refused and never accepted, or one that was accepted
            if held and held is refused:
                refusals = 1 if held["accepted"] else 2
                if not held["accepted"] and held["refusals"] == 2 and now < held["born"] + 30:
                    return held  # two refused in a row
                if not held["accepted"] and held["refusals"] == 1:
                    # Where the API compares the time of issue, a token of the second of the change is refused too.
                    time.sleep(max(0, held["born"] + 1 - now))
            self._current = self._request(refusals)
            return self._current

    def _request(self, refusals):
        born, rest = time.monotonic(), 1

        def read_retry_after(response):
            nonlocal rest
            seconds = response.headers.get("Retry-After", "")
            rest = min(int(seconds), 60) if seconds.isdigit() else 1
            return response

        try:
            with OAuth2Session(**self._options) as session:
                session.register_compliance_hook("access_token_response", read_retry_after)
                token = session.fetch_token(self._token_url, grant_type="client_credentials", timeout=10)
        except Exception as error:
            self._current, self._failed = None, (error, time.monotonic() + rest)
            raise
        seconds = token.get("expires_in") or 60
        until = born + seconds - min(seconds / 10, 60)
        return {"text": token["access_token"], "born": born, "until": until, "refusals": refusals, "accepted": False}
