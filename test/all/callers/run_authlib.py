import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../examples/callers"))
from authlib_caller import Caller  # noqa: E402

env = os.environ
caller = Caller(env["AUTH_URL"] + "/connect/token", env["CLIENT_ID"], env["CLIENT_SECRET"], env["SCOPE"])
with ThreadPoolExecutor(100) as pool:
    for line in sys.stdin:
        one = lambda _: caller.call("GET", env["BASE_URL"] + "/v1/orders").status_code  # noqa: E731
        print(json.dumps(list(pool.map(one, range(int(line))))), flush=True)
