"""One token for all calls, with Authlib and requests. After 401 invalid_token, only the refused token is replaced."""

import threading
import time

import requests
from authlib.integrations.requests_client import OAuth2Session


class Caller:
    def __init__(self, token_url, client_id, client_secret, scope):
        # In the form: Authlib does not form-encode id and secret inside Basic.
        self._options = (client_id, client_secret, "client_secret_post", None, scope)
        self._token_url = token_url
        self._lock = threading.Lock()
        self._current = None
        self._failed = None  # (error, until)

    def _take(self, refused=None):
        """The token for the next attempt: one request for all, and only if the refused one is still the current one."""
        with self._lock:
            now, held = time.monotonic(), self._current
            if held and held is not refused and now < held["until"]:
                return held
            if held and held is refused and held["replaces"] and not held["accepted"] and now < held["born"] + 30:
                return held  # two refused in a row
            if self._failed and now < self._failed[1]:
                raise self._failed[0]
            try:
                with OAuth2Session(*self._options[:3], scope=self._options[4]) as session:
                    token = session.fetch_token(self._token_url, grant_type="client_credentials")
            except Exception as error:
                self._current, self._failed = None, (error, time.monotonic() + 1)
                raise
            seconds = token.get("expires_in") or 60
            until = now + seconds - min(seconds / 10, 60)
            self._current = {"text": token["access_token"], "born": now, "until": until,
                             "replaces": refused is not None, "accepted": False}
            return self._current

    def call(self, method, url, **options):
        held = self._take()
        for attempt in (1, 2):
            headers = {**options.pop("headers", {}), "Authorization": f"Bearer {held['text']}"}
            response = requests.request(method, url, headers=headers, allow_redirects=False, **options)
            if response.status_code not in (401, 429) and response.status_code < 500:
                held["accepted"] = True
            refused = 'error="invalid_token"' in response.headers.get("WWW-Authenticate", "")
            if attempt == 2 or response.status_code != 401 or not refused:
                return response
            following = self._take(held)
            if following is held:
                return response
            held = following
