# SPDX-License-Identifier: BSD-2-Clause
"""The guard of a fence in an object store with conditional writes, like S3: each object carries the fence of its last writer."""

FENCE = "redlock-fence"


class Stale(Exception):
    """Somebody else got the lock later, and has written already."""


def put(client, bucket, key, body, fence, attempts=10):
    """Writes an object unless it has a larger fence. client is a boto3 client of S3, 1.36 or later, or what has its head_object and put_object."""
    for _ in range(attempts):
        condition = {"IfNoneMatch": "*"}
        try:
            head = client.head_object(Bucket=bucket, Key=key)
        except client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] not in ("404", "NoSuchKey", "NotFound"):
                raise
        else:
            if int(head["Metadata"].get(FENCE, "0")) > fence:
                raise Stale("%s has the fence %s" % (key, head["Metadata"][FENCE]))
            condition = {"IfMatch": head["ETag"]}
        try:
            return client.put_object(Bucket=bucket, Key=key, Body=body, Metadata={FENCE: str(fence)}, **condition)
        except client.exceptions.ClientError as error:  # somebody wrote between the two: look again
            if error.response["Error"]["Code"] not in ("PreconditionFailed", "412", "ConditionalRequestConflict", "409"):
                raise
    raise TimeoutError("%s was written by others %d times in a row" % (key, attempts))
