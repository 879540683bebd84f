"""Creates an account of the v1 API and prints its key: registers, reads the mail, and opens its link.

usage: account.py ADDRESS OUTBOX EMAIL
"""

import email
import email.policy
import json
import pathlib
import re
import sys
import time
import urllib.request

address, outbox, mailbox = sys.argv[1:]


def call(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def mail():
    """Returns the text of the mail, which the server writes to its outbox folder asynchronously."""
    for _ in range(3000):
        for path in sorted(pathlib.Path(outbox).glob("*.eml")):
            message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
            if message["To"] == mailbox:
                return message.get_body(("plain",)).get_content()
        time.sleep(0.01)
    sys.exit("no mail arrived")


call("/api/v1/register", {"email": mailbox})
token = re.search(r"/api/v1/verify\?token=([0-9a-f]{64})\b", mail()).group(1)
print(call(f"/api/v1/verify?token={token}")["api_key"])
