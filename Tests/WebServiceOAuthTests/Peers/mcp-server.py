"""The OAuth server of the `mcp` package with a protected resource, on any free port of 127.0.0.1.

The user agrees to each log-in. Prints the port. Ends when its standard input ends.
"""
import os
import secrets
import socket
import sys
import threading
import time

import uvicorn
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import (
    AccessToken, AuthorizationCode, OAuthAuthorizationServerProvider, ProviderTokenVerifier, RefreshToken,
    construct_redirect_uri)
from mcp.server.auth.routes import (
    build_resource_metadata_url, create_auth_routes, create_protected_resource_routes)
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route


class Provider(OAuthAuthorizationServerProvider):
    def __init__(self):
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client):
        self.clients[client.client_id] = client

    async def authorize(self, client, params):
        code = secrets.token_hex(20)
        self.codes[code] = AuthorizationCode(
            code=code, scopes=params.scopes or [], expires_at=time.time() + 60, client_id=client.client_id,
            code_challenge=params.code_challenge, redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly, resource=params.resource)
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    def issue(self, client, scopes, resource):
        access, refresh = secrets.token_hex(20), secrets.token_hex(20)
        self.access[access] = AccessToken(
            token=access, client_id=client.client_id, scopes=scopes, expires_at=int(time.time()) + 3600,
            resource=resource)
        self.refresh[refresh] = RefreshToken(
            token=refresh, client_id=client.client_id, scopes=scopes, resource=resource)
        return OAuthToken(
            access_token=access, token_type="Bearer", expires_in=3600, scope=" ".join(scopes), refresh_token=refresh)

    async def exchange_authorization_code(self, client, code):
        del self.codes[code.code]
        return self.issue(client, code.scopes, code.resource)

    async def load_refresh_token(self, client, token):
        return self.refresh.get(token)

    async def exchange_refresh_token(self, client, token, scopes):
        del self.refresh[token.token]
        return self.issue(client, scopes or token.scopes, token.resource)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        self.access = {t: v for t, v in self.access.items() if v.client_id != token.client_id}
        self.refresh.pop(token.token, None)


async def resource(request):
    token = request.user.access_token
    return JSONResponse({"client": token.client_id, "scopes": token.scopes, "resource": token.resource})


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
issuer = AnyHttpUrl(f"http://127.0.0.1:{listener.getsockname()[1]}")
resource_url = AnyHttpUrl(f"{str(issuer).rstrip('/')}/mcp")
provider = Provider()
verifier = ProviderTokenVerifier(provider)
routes = create_auth_routes(
    provider, issuer, None,
    ClientRegistrationOptions(enabled=True, valid_scopes=["user"], default_scopes=["user"]),
    RevocationOptions(enabled=True))
routes += create_protected_resource_routes(resource_url, [issuer], ["user"])
protected = RequireAuthMiddleware(
    Route("/mcp", resource).app, ["user"], build_resource_metadata_url(resource_url))
routes.append(Route("/mcp", endpoint=protected))
app = Starlette(
    routes=routes,
    middleware=[Middleware(
        AuthenticationMiddleware, backend=BearerAuthBackend(verifier, resource_server_url=resource_url))])
server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
threading.Thread(
    target=lambda: (
        [time.sleep(0.01) for _ in iter(lambda: server.started, True)],
        print(listener.getsockname()[1], flush=True)), daemon=True).start()
server.run(sockets=[listener])
