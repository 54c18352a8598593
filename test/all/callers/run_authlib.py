import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../examples/callers"))
from authlib_caller import Caller  # noqa: E402

env = os.environ
token_url = env["AUTH_URL"] + "/connect/token"
caller = Caller(token_url, env["CLIENT_ID"], env["CLIENT_SECRET"], env["SCOPE"], env["BASE_URL"])


def outcome_of(path):
    try:
        return caller.call("GET", path).status_code
    except Exception as error:
        return str(error)


with ThreadPoolExecutor(100) as pool:
    for line in sys.stdin:
        count, path = line.split()
        print(json.dumps(list(pool.map(outcome_of, [path] * int(count)))), flush=True)
