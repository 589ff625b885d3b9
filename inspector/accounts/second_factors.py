"""Second factors, as allauth keeps them: codes of an app, passkeys and recovery codes; and who must have one."""

from __future__ import annotations

import base64
import re
import secrets
import time
from hashlib import sha256
from io import BytesIO
from typing import Any, Final

import segno
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.base.internal.flows import check_rate_limit
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authentication_failed
from allauth.mfa.totp.forms import ActivateTOTPForm
from axes.handlers.proxy import AxesProxyHandler
from cryptography.fernet import InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.conf import settings
from django.contrib.auth.signals import user_login_failed
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import ValidationError
from django.db.models.signals import post_delete, post_save, pre_save
from django.dispatch import receiver
from django.http import HttpRequest

from inspector.trail.acting import find_address

from .limits import reserve
from .models import Membership, User
from .services import end_sessions, make_cipher, note_account
from .sessions import CAME_BY_BREAK_GLASS, CAME_BY_PROVIDER

# Recovery codes stand in for one of these, and are none by themselves.
FACTORS: Final = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
_HASHED: Final = "sha256:"
# What an app is added with, stored beside its secret. One without is from before, and makes codes by HMAC-SHA-1, the
# only ones that allauth knows.
ALGORITHM: Final = "SHA256"
TRY_LATER: Final = "Too many tries: wait a minute and try again."


def has_second_factor(user: User) -> bool:
    """Whether their next sign-in asks for more than a password."""
    return bool(Authenticator.objects.filter(user=user, type__in=FACTORS).exists())


def lacks_second_factor(session: SessionBase, membership: Membership) -> bool:
    """Whether this session may not see the pages of a workspace, which requires a second factor.

    A session that began at the provider of single sign-on is the provider's to secure.
    """
    if not membership.workspace.asks_second_factor:
        return False
    is_let_in = session.get(CAME_BY_PROVIDER) or session.get(CAME_BY_BREAK_GLASS)
    return not is_let_in and not has_second_factor(membership.user)


class FactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """How secrets of second factors are stored, and how one is shown to a phone."""

    def encrypt(self, text: str) -> str:
        """Sealed with a key made from `SECRET_KEY`."""
        return make_cipher(b"second factors").encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """What `encrypt` sealed, with this key or an earlier one; the hash of a recovery code as it is.

        Where no key opens it any more, a random secret, of which nobody has a code.
        """
        if encrypted_text.startswith(_HASHED):
            return encrypted_text
        try:
            return make_cipher(b"second factors").decrypt(encrypted_text.encode()).decode()
        except InvalidToken:
            return base64.b32encode(secrets.token_bytes(20)).decode()

    def generate_authenticator_name(self, user: User, type: str) -> str:  # noqa: A002 (as allauth calls it)
        """What a passkey is called where its owner gives no name."""
        return f"Passkey {Authenticator.objects.filter(user=user, type=type).count() + 1}"

    def build_totp_url(self, user: User, secret: str) -> str:
        """The address of a new secret, which asks for codes by SHA-256."""
        return f"{super().build_totp_url(user, secret)}&algorithm={ALGORITHM}"

    def build_totp_svg(self, url: str) -> str:
        """The address of a new secret, to be scanned: dark on white in either theme."""
        drawn = BytesIO()
        segno.make(url, micro=False).save(drawn, kind="svg", xmldecl=False, omitsize=True, light="#fff")
        return drawn.getvalue().decode()


def make_recovery_codes(user: User) -> list[str]:
    """Ten new codes, each of 120 random bits and to be seen this once; earlier ones stop working.

    Only their hashes are stored, in the place where allauth keeps the codes of another package that it took over: it
    compares them with what `CodeForm` hands it, and takes out the one that was used.
    """
    codes = [secrets.token_hex(15) for _ in range(10)]
    held = {"user": user, "type": Authenticator.Type.RECOVERY_CODES}
    Authenticator.objects.update_or_create(
        **held, defaults={"data": {"migrated_codes": [_hash(code) for code in codes]}}
    )
    note_account(user=user, code="account.recovery-codes-made")
    return ["-".join(re.findall("......", code)) for code in codes]


def count_recovery_codes(user: User) -> int:
    """How many codes can still be used."""
    found = Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).first()
    return len(found.data.get("migrated_codes", ())) if found else 0


def _hash(code: str) -> str:
    return _HASHED + sha256(code.encode()).hexdigest()


def _is_code(secret: str, code: str) -> bool:
    """Whether an app that was added with `ALGORITHM` shows this code now."""
    shown = TOTP(base64.b32decode(secret), 6, SHA256(), 30).generate(time.time())
    return secrets.compare_digest(shown, code.encode())


class _Bounded:
    """A form for a code whose tries are counted for all processes together, and a code of which is taken once."""

    user: User
    cleaned_data: dict[str, Any]

    def clean_code(self) -> str:
        """The code, where it is right.

        Raises:
            ValidationError: for a wrong one, one that was used, and after too many tries.
        """
        most = settings.LIMITS["sign_ins_per_minute"]
        credentials = {"username": self.user.get_username()}
        if not AxesProxyHandler.is_allowed(context.request, credentials):
            raise ValidationError(TRY_LATER)
        if most and not reserve(find_address(), most=most):
            raise ValidationError(TRY_LATER)
        given = re.sub("[^0-9a-z]", "", self.cleaned_data["code"].lower())
        # What is no code of an app can be a recovery code, of which only the hash is compared.
        is_of_app = re.fullmatch("[0-9]{6}", given)
        code = self.cleaned_data["code"] = given if is_of_app else _hash(given)
        app = Authenticator.objects.filter(user=self.user, type=Authenticator.Type.TOTP).first() if is_of_app else None
        if app and app.data.get("algorithm") == ALGORITHM:
            self._check_app(app, code)
        else:
            super().clean_code()  # type: ignore[misc]
        # As a limit of one a minute: no code of an app lasts longer.
        if not reserve(f"code {self.user.pk} {code}"[:45], most=1):
            raise ValidationError("This code was used: wait for the next one.")
        return code

    def _check_app(self, app: Authenticator, code: str) -> None:
        """As allauth does it with codes by HMAC-SHA-1."""
        forget_tries = check_rate_limit(self.user)
        if not _is_code(FactorAdapter().decrypt(app.data["secret"]), code):
            note_wrong_code(self, context.request, self.user)
            raise FactorAdapter().validation_error("incorrect_code")
        forget_tries()
        self.authenticator = app


class CodeForm(_Bounded, AuthenticateForm):  # type: ignore[misc]
    """The second factor of a sign-in."""


class ProofForm(_Bounded, ReauthenticateForm):  # type: ignore[misc]
    """Proof of who it is, before a second factor is changed."""


class AppForm(ActivateTOTPForm):  # type: ignore[misc]
    """The first code of a new app, which shows that it makes codes by SHA-256 before its secret is kept."""

    def clean_code(self) -> str:
        """The code, where it is right.

        Raises:
            ValidationError: for a wrong one.
        """
        code = re.sub(r"\s", "", self.cleaned_data["code"])
        if not _is_code(self.secret, code):
            raise FactorAdapter().validation_error("incorrect_code")
        return code


@receiver(pre_save, sender=Authenticator, dispatch_uid="note the algorithm of a new app")
def note_algorithm(instance: Authenticator, **_: object) -> None:
    """Store it with the app."""
    if instance._state.adding and instance.type == Authenticator.Type.TOTP:
        instance.data["algorithm"] = ALGORITHM


@receiver(authentication_failed, dispatch_uid="note a wrong code")
def note_wrong_code(sender: object, request: HttpRequest, user: User, **_: object) -> None:
    """A wrong code counts as a wrong password does, and is recorded as one."""
    user_login_failed.send(sender=__name__, credentials={"username": user.get_username()}, request=request)


@receiver(post_save, sender=Authenticator, dispatch_uid="note a new second factor")
def note_added(instance: Authenticator, created: bool, **_: object) -> None:
    """Record it; sessions that began without it end, but for the one that adds it."""
    if not created or instance.type == Authenticator.Type.RECOVERY_CODES:
        return
    note_account(user=instance.user, code="account.factor-added", details=_name(instance))
    session = context.request.session if context.request else None
    end_sessions(user=instance.user, but=session.session_key if session else None)


@receiver(post_delete, sender=Authenticator, dispatch_uid="note a removed second factor")
def note_removed(instance: Authenticator, **_: object) -> None:
    """Record it. Recovery codes go with the last factor."""
    if instance.type != Authenticator.Type.RECOVERY_CODES:
        note_account(user=instance.user, code="account.factor-removed", details=_name(instance))


def _name(factor: Authenticator) -> dict[str, Any]:
    is_passkey = factor.type == Authenticator.Type.WEBAUTHN
    return {"factor": f"passkey {factor.wrap().name}" if is_passkey else "authenticator app"}
