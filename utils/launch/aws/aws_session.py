"""Talking to AWS: clients made when they are first needed, and its errors in plain words."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

CREDENTIALS = (
    "There are no AWS credentials that work here. Set up the AWS command line with `aws configure` "
    "or `aws sso login`, or set AWS_PROFILE; `aws sts get-caller-identity` must answer. (A region "
    "that the account has not switched on answers the same.)"
)
CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 5, 30, 3
"""Without a network a call gives up after some fifteen seconds."""
STALE = {
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
    "AuthFailure",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "SignatureDoesNotMatch",
}
DENIED = {"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}
NO_ROOM = {"InsufficientInstanceCapacity", "CapacityError"}
QUOTA = {"VcpuLimitExceeded", "InstanceLimitExceeded", "ResourceLimitExceeded"}


class Refused(Exception):
    """Something that is needed is missing; the text says what and what to do. Nothing runs."""


class Denied(Refused):
    """The credentials lack a permission."""


@dataclass
class Session:
    """One region of one account. Clients are made when first asked for."""

    region: str
    _clients: dict[str, Any] = field(default_factory=dict)
    _boto3: Any = None

    def client(self, service: str) -> Any:
        """A boto3 client. It repeats a call whose answer is lost; a repeated start has the same
        client token and starts nothing twice.
        """
        if service not in self._clients:
            import boto3  # late: 0.3 s, and a plan needs no AWS
            from botocore.config import Config

            patient = Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            )
            self._boto3 = self._boto3 or boto3.Session(region_name=self.region)
            self._clients[service] = self._boto3.client(service, config=patient)
        return self._clients[service]

    def call(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """One call, with errors in plain words."""
        with plainly(f"{service}:{operation}", self.region):
            return getattr(self.client(service), operation)(**request)

    def pages(self, service: str, operation: str, **request: Any) -> Iterator[dict[str, Any]]:
        """All pages of a listing."""
        with plainly(f"{service}:{operation}", self.region):
            yield from self.client(service).get_paginator(operation).paginate(**request)

    def me(self) -> str:
        """Who the credentials belong to, as a tag may say it: the end of their ARN, with the role
        where they are of one.

        Raises:
            Refused: if there are none, or they do not work.
        """
        arn = self.call("sts", "get_caller_identity")["Arn"]
        return owner(arn)


def owner(arn: str) -> str:
    """The name in an ARN, in the letters that tags of all services take.

    >>> owner("arn:aws:iam::123456789012:user/team/ada,b"), owner("arn:aws:iam::123456789012:root")
    ('ada-b', 'root')
    >>> owner("arn:aws:sts::123456789012:assumed-role/Student/ada@example.org")
    'Student/ada@example.org'
    """
    kind, *parts = arn.rpartition(":")[2].split("/")
    name = "/".join(parts if kind == "assumed-role" else parts[-1:]) or kind
    return re.sub(r"[^\w.:/=+@-]", "-", name)


@contextmanager
def plainly(what: str, region: str) -> Iterator[None]:
    """Turns errors of boto3 into `Refused` with words for a learner."""
    from botocore import exceptions, parsers  # late, as boto3 is

    try:
        yield
    except (
        exceptions.NoCredentialsError,
        exceptions.PartialCredentialsError,
        exceptions.CredentialRetrievalError,
        exceptions.TokenRetrievalError,
        exceptions.SSOError,
        exceptions.ProfileNotFound,
        exceptions.ConfigParseError,
    ) as error:
        raise Refused(f"{CREDENTIALS} ({error})") from None
    except exceptions.ClientError as error:
        raise _refuse(error, what, region) from error
    except (exceptions.EndpointConnectionError, exceptions.HTTPClientError) as error:
        raise Refused(
            f"AWS could not be reached for {what} in {region}: {error}. Look at the network, and "
            "whether there is such a region"
        ) from None
    except (exceptions.BotoCoreError, parsers.ResponseParserError, OSError) as error:
        # An OSError: credentials are refreshed into a file, and the disk may be full.
        raise Refused(f"{what} in {region} could not be asked: {error}") from None


def _refuse(error: Any, what: str, region: str) -> Refused:
    code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    if code in STALE:
        return Refused(f"{CREDENTIALS} ({code}: {message})")
    if code in DENIED:
        return Denied(
            f"the credentials may not do {what} in {region}: the plan prints the policy that is "
            f"needed ({code})"
        )
    if code in NO_ROOM:
        return Refused(
            f"AWS has no free machine of this type in {region} now ({code}): try later, or another "
            "region that offers it. A quota is a permission and no promise"
        )
    if code in QUOTA:
        return Refused(
            f"the quota is too small ({code}): the plan says which to ask for. {message}"
        )
    return Refused(f"{what} in {region} failed: {code}: {message}")


def code_of(error: Refused) -> str:
    """AWS's own code of an error, empty if it has none."""
    cause: Any = error.__cause__
    return cause.response["Error"]["Code"] if hasattr(cause, "response") else ""


Say = Callable[[str], None]
