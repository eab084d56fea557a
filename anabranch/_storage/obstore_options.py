"""The options of obstore under one name each, and which of them are credentials or choose a server.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

SERVICES: Mapping[str, str] = {"s3": "aws", "gs": "google", "az": "azure", "abfss": "azure"}
"""The service of a bucket, by the scheme of its canonical URL."""
CREDENTIAL_OPTIONS: Mapping[str, frozenset[str]] = {
    "aws": frozenset(
        {"access_key_id", "secret_access_key", "session_token", "skip_signature", "web_identity_token_file", "role_arn"}
        | {"container_credentials_relative_uri", "container_credentials_full_uri"}
    ),
    "azure": frozenset(
        {"account_key", "sas_key", "token", "client_id", "client_secret", "tenant_id", "federated_token_file"}
        | {"use_azure_cli", "msi_endpoint", "identity_endpoint", "object_id", "msi_resource_id", "skip_signature"}
    ),
    "google": frozenset({"service_account", "service_account_key", "skip_signature", "token"}),
}
"""The options of a service that are credentials."""
SERVER_OPTIONS: Mapping[str, frozenset[str]] = {
    "aws": frozenset({"endpoint", "endpoint_url_s3", "virtual_hosted_style_request"}),
    "azure": frozenset({"endpoint", "use_emulator", "use_fabric_endpoint", "authority_host"}),
    "google": frozenset({"base_url"}),
}
"""The options of a service that choose a server."""
_ALIASES = {
    "aws": {"token": "session_token", "endpoint_url": "endpoint"},
    "azure": {
        "access_key": "account_key",
        "master_key": "account_key",
        "sas_token": "sas_key",
        "bearer_token": "token",
        "authority_id": "tenant_id",
    },
    "google": {
        "service_account_path": "service_account",
        "application_credentials": "service_account",
        "bearer_token": "token",
    },
}


def canonical_option(service: str, option: str) -> str:
    """The canonical name of an option of obstore, which has several names for some.

    Example:
        >>> plain("azure", "AZURE_STORAGE_SAS_TOKEN")
        'sas_key'
    """
    name = option.lower().removeprefix(f"{service}_")
    if service == "azure":
        name = name.removeprefix("storage_")
    return _ALIASES.get(service, {}).get(name, name)
