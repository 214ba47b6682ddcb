# Clients of OAuth in Python that others wrote: discovery, registration, login, refresh and a tool call.
#
#   python judge.py JUDGE URL [CLIENT_ID]    the client id is the address of a document; without it, the client registers
import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

# The servers are on loopback, where OAuth permits plain HTTP.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

import httpx2
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import OAuth2Client
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata, get_well_known_url
from joserfc import jwt
from joserfc.jwk import KeySet
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

judge, url, *rest = sys.argv[1:]
document = rest[0] if rest else None
redirect_uri = "http://127.0.0.1:7777/cb"
scope = "openid offline_access"


def log_in(address):
    """Where a browser is sent after a login."""
    browser = Path(__file__).with_name("browser.mjs")
    return subprocess.run(["node", browser, address, redirect_uri], check=True, capture_output=True, text=True).stdout.strip()


async def use(http):
    """Lists the tools, and calls one."""
    async with Client(streamable_http_client(url, http_client=http), cache=None) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        echo = next(name for name in names if name.endswith("echo"))
        result = await client.call_tool(echo, {"message": "hello"})
        assert not result.is_error and "hello" in str(result.content), result
        return names


async def authlib():
    with httpx2.Client() as http:
        parts = urlsplit(url)
        described = http.get(f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}").json()
        issuer = described["authorization_servers"][0]
        server = AuthorizationServerMetadata(http.get(get_well_known_url(issuer, external=True)).json())
        server.validate()
        assert server["issuer"] == issuer, server
        client_id = document
        if not client_id:
            metadata = {"client_name": judge, "redirect_uris": [redirect_uri], "token_endpoint_auth_method": "none"}
            registered = http.post(server["registration_endpoint"], json=metadata)
            assert registered.status_code == 201, registered.text
            client_id = registered.json()["client_id"]
        keys = KeySet.import_key_set(http.get(server["jwks_uri"]).json())
    client = OAuth2Client(
        client_id, token_endpoint_auth_method="none", scope=scope, redirect_uri=redirect_uri, code_challenge_method="S256"
    )
    verifier = generate_token(48)
    address, state = client.create_authorization_url(server["authorization_endpoint"], code_verifier=verifier, resource=url)
    back = log_in(address)
    first = client.fetch_token(
        server["token_endpoint"], authorization_response=back, state=state, code_verifier=verifier, resource=url
    )
    second = client.refresh_token(server["token_endpoint"], refresh_token=first["refresh_token"])
    assert second["refresh_token"] != first["refresh_token"], "the refresh token was not replaced"
    claims = jwt.decode(second["access_token"], keys, algorithms=["ES256", "RS256", "EdDSA"]).claims
    expected = {"essential": True, "value": issuer}
    jwt.JWTClaimsRegistry(iss=expected, aud={"essential": True, "value": url}, exp={"essential": True}).validate(claims)
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {second['access_token']}"}) as http:
        names = await use(http)
    client.revoke_token(server["revocation_endpoint"], second["refresh_token"])
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {second['access_token']}"}) as http:
        assert (await http.post(url, json={})).status_code == 401, "a revoked session is still accepted"
    return names


class Storage:
    """Where the SDK stores what it gets."""

    def __init__(self):
        self.tokens, self.client, self.saved = None, None, 0

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens, self.saved = tokens, self.saved + 1

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def sdk():
    storage, backs = Storage(), []

    async def redirect(address):
        backs.append(log_in(address))

    async def callback():
        query = parse_qs(urlsplit(backs[-1]).query)
        code, state, iss = (query[name][0] for name in ("code", "state", "iss"))
        return AuthorizationCodeResult(code=code, state=state, iss=iss)

    metadata = OAuthClientMetadata(
        client_name=judge, redirect_uris=[redirect_uri], token_endpoint_auth_method="none", scope=scope
    )
    provider = OAuthClientProvider(url, metadata, storage, redirect, callback, client_metadata_url=document)
    async with httpx2.AsyncClient(auth=provider) as http:
        await use(http)
        # It refreshes a token that it takes for expired.
        provider.context.token_expiry_time = 1
        names = await use(http)
    assert (storage.saved, len(backs)) == (2, 1), (storage.saved, backs)
    assert document in (None, storage.client.client_id), storage.client
    return names


print(json.dumps(asyncio.run({"authlib": authlib, "sdk": sdk}[judge]())))
