"""The place where two jobs find each other.

It is an object in S3 that holds the head's address while it leads.
"""

from __future__ import annotations

import json
from typing import Any

from train.cluster.hosts import ClusterError
from train.sagemaker.hyperparameters import Meeting

_NAME = "head.json"


class S3MeetingPoint:
    """A `train.cluster.launcher.MeetingPoint` in S3.

    Network errors are raised as `OSError`, after which callers retry, and others as `ClusterError`.
    """

    def __init__(self, meeting: Meeting) -> None:
        import boto3

        self._client = boto3.client("s3", region_name=meeting.region)
        self._place = {"Bucket": meeting.bucket, "Key": f"{meeting.prefix.strip('/')}/{_NAME}"}

    def publish(self, address: str) -> None:
        """Write the address into the object."""
        self._call("put_object", Body=json.dumps({"address": address}).encode())

    def look(self) -> str | None:
        """Return the address in the object, if there is one."""
        answer = self._call("get_object")
        if not answer:
            return None
        return json.loads(answer["Body"].read())["address"]

    def clear(self) -> None:
        """Remove the object."""
        self._call("delete_object")

    def _call(self, operation: str, **arguments: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return getattr(self._client, operation)(**self._place, **arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                return None
            where = f"s3://{self._place['Bucket']}/{self._place['Key']}"
            raise ClusterError(
                f"the jobs can't meet at {where}: {error}. Does the job's role allow it?"
            ) from error
        except BotoCoreError as error:
            raise ConnectionError(str(error)) from error
