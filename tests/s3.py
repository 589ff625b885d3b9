"""An S3 server for the tests: moto's, in a process of its own. It checks who asks, the signature and what they may.

As a script it says its address and a key on a line of JSON, and serves until its standard input ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BUCKET = "files"
# What docs/operations.md says that the key needs, and nothing more.
ACTIONS = ("s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject")


@dataclass(frozen=True)
class Server:
    """Where it is, a key that may use the bucket, and its process, which may be ended."""

    url: str
    key_id: str
    secret: str
    process: subprocess.Popen[str]

    def spell(self, prefix: str, **more: str) -> dict[str, str]:
        """The variables of a product that keeps its files under this prefix."""
        options = "&".join(f"{name}={value}" for name, value in more.items())
        address = f"s3://{BUCKET}/{prefix}?endpoint_url={self.url}&region_name=us-east-1&{options}".rstrip("&")
        return {"OBJECT_STORE": address, "OBJECT_STORE_KEY_ID": self.key_id, "OBJECT_STORE_SECRET": self.secret}


@contextmanager
def s3_server(folder: Path) -> Iterator[Server]:
    """A server with an empty bucket; it ends with the block."""
    with (folder / "s3.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert process.stdout is not None
    with process:
        lines = (line for line in process.stdout if line.startswith("{"))
        told = next(lines, None)
        assert told is not None, (folder / "s3.log").read_text()[-3000:]
        try:
            yield Server(process=process, **json.loads(told))
        finally:
            process.kill()


def serve() -> None:
    """Let a user have the bucket and no more, close everything else, and wait."""
    os.environ.update(AWS_ACCESS_KEY_ID="nobody", AWS_SECRET_ACCESS_KEY="nothing", AWS_DEFAULT_REGION="us-east-1")
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    people = boto3.client("iam", endpoint_url=url)
    people.create_user(UserName="inspector")
    may = {
        "Effect": "Allow",
        "Action": list(ACTIONS),
        "Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"],
    }
    document = json.dumps({"Version": "2012-10-17", "Statement": [may]})
    people.put_user_policy(UserName="inspector", PolicyName="files", PolicyDocument=document)
    key = people.create_access_key(UserName="inspector")["AccessKey"]
    boto3.client("s3", endpoint_url=url).create_bucket(Bucket=BUCKET)
    # From here on each request needs a key, its signature and the right to what it asks for.
    closing = urllib.request.Request(f"{url}/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"})
    urllib.request.urlopen(closing).close()
    print(json.dumps({"url": url, "key_id": key["AccessKeyId"], "secret": key["SecretAccessKey"]}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve()
