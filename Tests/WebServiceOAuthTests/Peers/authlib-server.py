"""An authorization server of Authlib with a resource, on any free port of 127.0.0.1.

The user agrees to each log-in. Prints the port. Ends when its standard input ends.

    python3 authlib-server.py PUBLIC_JWK
"""
import json
import logging
import os
import sys
import threading
import time

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # http on loopback

from authlib.integrations.flask_oauth2 import AuthorizationServer, ResourceProtector, current_token
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc6749.models import AuthorizationCodeMixin, ClientMixin, TokenMixin
from authlib.oauth2.rfc6750 import BearerTokenValidator
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7523 import JWTBearerClientAssertion
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant, DeviceCredentialMixin
from authlib.oauth2.rfc9207 import IssuerParameter
from flask import Flask, jsonify, request
from werkzeug.serving import make_server

USER = "ann"
LOOPBACK = "http://127.0.0.1"


class Client(ClientMixin):
    def __init__(self, client_id, method, grant_types, secret=None):
        self.client_id, self.method, self.grant_types, self.secret = client_id, method, grant_types, secret

    def get_client_id(self):
        return self.client_id

    def get_default_redirect_uri(self):
        return None

    def get_allowed_scope(self, scope):
        return " ".join(s for s in (scope or "").split() if s in ("profile", "jobs"))

    def check_redirect_uri(self, uri):  # any port of loopback (RFC 8252, section 7.3)
        return uri.startswith(LOOPBACK + ":") and uri.endswith("/callback")

    def check_client_secret(self, secret):
        return secret == self.secret

    def check_endpoint_auth_method(self, method, endpoint):
        return method == self.method

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type in self.grant_types


class Row(AuthorizationCodeMixin, TokenMixin, DeviceCredentialMixin):
    """A code, a token, or the codes of a device."""

    def __init__(self, **values):
        self.__dict__.update(values)
        self.issued, self.is_gone, self.polls = time.time(), False, 0

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope

    def get_expires_in(self):
        return self.expires_in

    def get_client_id(self):
        return self.client_id

    def get_user_code(self):
        return self.user_code

    def get_client(self):
        return CLIENTS[self.client_id]

    def get_user(self):
        return USER

    def check_client(self, client):
        return self.client_id == client.client_id

    def is_expired(self):
        return time.time() > self.issued + self.expires_in

    def is_revoked(self):
        return self.is_gone


DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
CLIENTS = {
    c.client_id: c
    for c in (
        Client("cli", "none", ["authorization_code", "refresh_token", DEVICE]),
        Client("basic", "client_secret_basic", ["client_credentials"], "s:e cret"),
        Client("post", "client_secret_post", ["client_credentials"], "secret"),
        Client("jwt", "client_assertion_jwt", ["client_credentials"]),
    )
}
CODES, DEVICES, TOKENS = {}, {}, []


class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["none"]

    def save_authorization_code(self, code, request):
        payload = request.payload
        CODES[code] = Row(
            code=code, client_id=request.client.client_id, redirect_uri=payload.redirect_uri, scope=payload.scope,
            code_challenge=payload.data.get("code_challenge"),
            code_challenge_method=payload.data.get("code_challenge_method"))

    def query_authorization_code(self, code, client):
        row = CODES.get(code)
        return row if row and row.check_client(client) else None

    def delete_authorization_code(self, row):
        CODES.pop(row.code, None)

    def authenticate_user(self, row):
        return USER


class RefreshGrant(grants.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["none"]
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, text):
        return next((t for t in TOKENS if t.refresh_token == text and not t.is_gone), None)

    def authenticate_user(self, token):
        return USER

    def revoke_old_credential(self, token):
        token.is_gone = True


class CredentialsGrant(grants.ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post", "client_assertion_jwt"]


class DeviceGrant(DeviceCodeGrant):
    def query_device_credential(self, device_code):
        return DEVICES.get(device_code)

    def query_user_grant(self, user_code):
        row = next(d for d in DEVICES.values() if d.user_code == user_code)
        row.polls += 1
        return (USER, True) if row.polls > 2 else None  # the user needs a while

    def should_slow_down(self, row):
        return row.polls == 2


class DeviceEndpoint(DeviceAuthorizationEndpoint):
    def get_verification_uri(self):
        return issuer() + "/activate"

    def save_device_credential(self, client_id, scope, data):
        DEVICES[data["device_code"]] = Row(client_id=client_id, scope=scope, **data)


class Revocation(RevocationEndpoint):
    CLIENT_AUTH_METHODS = ["none"]

    def query_token(self, text, hint):
        return next((t for t in TOKENS if text in (t.access_token, t.refresh_token)), None)

    def revoke_token(self, token, request):
        token.is_gone = True


class Assertion(JWTBearerClientAssertion):
    seen = set()

    def get_audiences(self):
        return [issuer()]

    def validate_jti(self, claims, jti):
        is_new = jti not in self.seen
        self.seen.add(jti)
        return is_new

    def resolve_client_public_key(self, client):
        return json.loads(sys.argv[1])


class Issuer(IssuerParameter):
    def get_issuer(self):
        return issuer()


class Validator(BearerTokenValidator):
    def authenticate_token(self, text):
        return next((t for t in TOKENS if t.access_token == text), None)


def save_token(token, request):
    values = {"refresh_token": None, "scope": "", **token}
    TOKENS.append(Row(client_id=request.client.client_id, **values))


app = Flask(__name__)
app.config.update(OAUTH2_REFRESH_TOKEN_GENERATOR=True, OAUTH2_SCOPES_SUPPORTED=["profile", "jobs"])
server = AuthorizationServer(app, CLIENTS.get, save_token)
server.register_grant(CodeGrant, [CodeChallenge(required=True)])
for grant in (RefreshGrant, CredentialsGrant, DeviceGrant):
    server.register_grant(grant)
server.register_endpoint(DeviceEndpoint)
server.register_endpoint(Revocation)
server.register_client_auth_method("client_assertion_jwt", Assertion())
server.register_extension(Issuer())
require = ResourceProtector()
require.register_token_validator(Validator())


def issuer():
    return f"{LOOPBACK}:{listener.server_port}"


@app.get("/.well-known/oauth-authorization-server")
def metadata():
    return jsonify(
        issuer=issuer(), authorization_endpoint=issuer() + "/authorize", token_endpoint=issuer() + "/token",
        device_authorization_endpoint=issuer() + "/device", revocation_endpoint=issuer() + "/revoke",
        response_types_supported=["code"], code_challenge_methods_supported=["S256"],
        authorization_response_iss_parameter_supported=True)


@app.get("/authorize")
def authorize():
    grant = server.get_consent_grant(end_user=USER)
    return server.create_authorization_response(grant_user=USER, grant=grant)


@app.post("/token")
def token():
    return server.create_token_response()


@app.post("/device")
def device():
    return server.create_endpoint_response(DeviceEndpoint.ENDPOINT_NAME)


@app.post("/revoke")
def revoke():
    return server.create_endpoint_response(Revocation.ENDPOINT_NAME)


@app.get("/me")
@require(None)
def me():
    return jsonify(name=USER, client=current_token.client_id, scope=current_token.scope)


logging.getLogger("werkzeug").setLevel(logging.ERROR)
listener = make_server("127.0.0.1", 0, app, threaded=True)
threading.Thread(target=listener.serve_forever, daemon=True).start()
print(listener.server_port, flush=True)
sys.stdin.read()
