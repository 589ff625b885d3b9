"""Single sign-on: who comes from the provider, and which roles the groups that it names give them.

A person of the provider is an account of their own: nobody comes into one that was made here, whatever name or address
the provider gives. Roles that were given here by hand stay; those that groups gave are looked at anew at each sign-in.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import jwt
import requests
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponseBase

from inspector.tokens import hide_tokens
from inspector.trail.acting import Actor, act_as
from inspector.trail.models import Deed

from .models import Membership, Role, User, Workspace
from .services import add_member, note_failed_sign_in, remove_member
from .sessions import refuse_sign_in
from .workspaces import check_name

logger = logging.getLogger(__name__)

# What a provider may sign with: public keys alone, so that nobody who knows its key set can sign.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_WELL_KNOWN: Final = "/.well-known/"


class ProviderTokens(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """What allauth asks the provider for, with an ID token that is believed by its signature and not by its way."""

    @property
    def openid_config(self) -> dict[str, Any]:
        """The provider's metadata (OpenID Connect Discovery 1.0, section 4.3).

        Raises:
            OAuth2Error: where they are of another issuer than the one that is set.
        """
        config: dict[str, Any] = super().openid_config
        wanted = self.get_provider().server_url.partition(_WELL_KNOWN)[0]
        if str(config.get("issuer")).rstrip("/") != wanted.rstrip("/"):
            raise OAuth2Error(f"the issuer {config.get('issuer')!r} is not the one that is set")
        return config

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        config = self.openid_config
        with get_adapter().get_requests_session() as session:
            answer = session.get(config["jwks_uri"])
            answer.raise_for_status()
        try:
            header = jwt.get_unverified_header(id_token)
            if str(header.get("typ", "JWT")).upper() != "JWT":
                raise OAuth2Error("it is no ID token")
            # A token that names no key is signed by the only one (OpenID Connect Core 1.0, section 10.1).
            known, name = jwt.PyJWKSet.from_dict(answer.json()).keys, header.get("kid")
            keys = [key for key in known if name is None or key.key_id == name]
            if len(keys) != 1:
                raise OAuth2Error("no key of the provider signed the ID token")
            required = ["iss", "sub", "aud", "exp", "iat"]
            claims: dict[str, Any] = jwt.decode(
                id_token,
                keys[0],
                algorithms=ALGORITHMS,
                audience=app.client_id,
                issuer=config["issuer"],
                options={"require": required},
            )
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError) as error:
            raise OAuth2Error("the ID token is not valid") from error
        return claims


def come_back(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Sign in who comes back from the provider.

    Raises:
        Http404: where there is no such provider.
    """
    try:
        answer: HttpResponseBase = OAuth2CallbackView.adapter_view(ProviderTokens(request, provider_id))(request)
    except SocialApp.DoesNotExist as error:
        raise Http404 from error
    except (OAuth2Error, requests.RequestException) as error:
        return _refuse(request, error)
    return answer


def _refuse(request: HttpRequest, error: object) -> HttpResponseBase:
    logger.warning("single sign-on failed: %s", hide_tokens(str(error))[:300])
    why = f"{settings.OIDC_NAME} did not sign you in. Try again from the sign-in page."
    return refuse_sign_in(request, why, status=401)


class ProviderAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """What allauth is told of people who come from the provider."""

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Make the account of somebody new, and bring their roles up to date."""
        try:
            claims = read_claims(sociallogin.account.extra_data)
            with act_as(Actor(Deed.Actor.PRODUCT, "", settings.OIDC_NAME)):
                _admit(request, sociallogin, claims)
        except ValidationError as error:
            name = hide_tokens(str(sociallogin.account.uid))[:100]
            logger.warning("single sign-on refused for %r: %s", name, "; ".join(error.messages))
            note_failed_sign_in(name=f"{name} of {settings.OIDC_NAME}")
            raise ImmediateHttpResponse(refuse_sign_in(request, " ".join(error.messages))) from error

    def get_requests_session(self) -> requests.Session:
        """How the provider is asked: it leads nowhere else."""
        session: requests.Session = super().get_requests_session()
        session.max_redirects = 0
        return session

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: Any = None
    ) -> NoReturn:
        """The provider did not answer, or said no."""
        raise ImmediateHttpResponse(_refuse(request, exception or error))


def read_claims(data: Mapping[str, Any]) -> dict[str, Any]:
    """What the provider says of a person, in its signed token and when asked.

    Raises:
        ValidationError: where the two are about different people (OpenID Connect Core 1.0, section 5.3.2).
    """
    signed, asked = data.get("id_token") or {}, data.get("userinfo") or {}
    if not signed or (asked and asked.get("sub") != signed.get("sub")):
        raise ValidationError(f"{settings.OIDC_NAME} did not say clearly who you are.")
    return {**signed, **asked}


def choose_roles(claims: Mapping[str, Any]) -> dict[str, str]:
    """By the slug of each workspace, the highest role that one of the person's groups gives there."""
    said = claims.get(settings.OIDC_GROUPS_CLAIM) or []
    groups = {said} if isinstance(said, str) else {each for each in said if isinstance(each, str)}
    return {
        slug: next(role for role in Role.values if groups & set(by_role.get(role, ())))
        for slug, by_role in settings.OIDC_ROLES.items()
        if groups & {group for named in by_role.values() for group in named}
    }


@transaction.atomic
def _admit(request: HttpRequest, sociallogin: SocialLogin, claims: Mapping[str, Any]) -> None:
    if sociallogin.state.get("process") != "login":
        raise ValidationError("An account cannot be connected with another.")
    roles = choose_roles(claims)
    workspaces = list(Workspace.objects.filter(slug__in=settings.OIDC_ROLES).order_by("pk"))
    if not sociallogin.is_existing:
        joined = [each for each in workspaces if each.slug in roles]
        if not joined:
            raise ValidationError("None of your groups may enter here. Ask the operator of this server for access.")
        sociallogin.user = User(username=_choose_name(claims, joined))
        sociallogin.user.set_unusable_password()
        sociallogin.save(request, connect=True)
    user = sociallogin.user
    if not user.is_active:
        return
    held = {each.workspace_id: each for each in Membership.objects.filter(user=user).select_related("user")}
    for workspace in workspaces:
        try:
            _set_role(workspace, user, held.get(workspace.pk), roles.get(workspace.slug))
        except ValidationError as error:
            logger.warning("the role of %s in %s stays: %s", user, workspace.slug, "; ".join(error.messages))


def _set_role(workspace: Workspace, user: User, held: Membership | None, role: str | None) -> None:
    if held is not None and (not held.is_by_group or held.role == role):
        return
    if role is not None:
        made = add_member(workspace=workspace, user=user, role=role)
        Membership.objects.filter(pk=made.pk).update(is_by_group=True)
    elif held is not None:
        remove_member(membership=held)


def _choose_name(claims: Mapping[str, Any], workspaces: list[Workspace]) -> str:
    """The first name that the provider gives, is free and looks like no member's."""
    for claim in ("preferred_username", "email", "sub"):
        user = User(username=str(claims.get(claim) or "").strip())
        try:
            user.full_clean(exclude=["password"])
            for workspace in workspaces:
                check_name(workspace=workspace, name=user.username)
        except ValidationError:
            continue
        return user.username
    raise ValidationError("Your user name is taken or looks like a member's. Ask an owner of the workspace.")
