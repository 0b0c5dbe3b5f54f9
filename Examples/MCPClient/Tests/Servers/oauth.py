"""A server that requires tokens, and its authorization server, which approves each log-in."""

import secrets
import time

from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken

from tools import EFFECT, add_tools, listen, log, run


class Provider:
    """Clients, codes and tokens in memory. Each refresh token is valid once."""

    def __init__(self) -> None:
        self.clients, self.codes, self.tokens, self.refresh_tokens = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        log("register", client_info.client_name)
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        log("authorize", params.resource, ",".join(params.scopes or []))
        code = secrets.token_urlsafe(32)
        self.codes[code] = AuthorizationCode(
            code=code, scopes=params.scopes or [], expires_at=time.time() + 60, client_id=client.client_id,
            code_challenge=params.code_challenge, redirect_uri=params.redirect_uri, resource=params.resource,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly, subject="ann",
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        log("exchange")
        code = self.codes.pop(authorization_code.code)
        return self.issue(client, code.scopes, code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh_tokens.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        log("refresh")
        old = self.refresh_tokens.pop(refresh_token.token)
        return self.issue(client, scopes, old.resource)

    def issue(self, client, scopes, resource):
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        values = {"client_id": client.client_id, "scopes": scopes, "resource": resource, "subject": "ann"}
        self.tokens[access] = AccessToken(token=access, expires_at=int(time.time()) + 3600, **values)
        self.refresh_tokens[refresh] = RefreshToken(token=refresh, **values)
        return OAuthToken(access_token=access, expires_in=3600, scope=" ".join(scopes), refresh_token=refresh)

    async def load_access_token(self, token):
        return self.tokens.get(token)

    async def revoke_token(self, token):
        log("revoke")
        self.tokens.clear()
        self.refresh_tokens.clear()


listener, port = listen()
origin = f"http://127.0.0.1:{port}"
provider = Provider()
server = MCPServer(
    "oauth",
    log_level="CRITICAL",
    auth_server_provider=provider,
    auth=AuthSettings(
        issuer_url=origin,
        resource_server_url=f"{origin}/mcp",
        required_scopes=["tools"],
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["tools"], default_scopes=["tools"]
        ),
        revocation_options=RevocationOptions(enabled=True),
    ),
)
add_tools(server)


@server.tool(annotations=EFFECT)
async def forget(refresh_tokens: bool = False) -> str:
    """Ends the validity of all access tokens, or of all tokens."""
    provider.tokens.clear()
    if refresh_tokens:
        provider.refresh_tokens.clear()
    return "forgotten"


run(server.streamable_http_app(), listener)
