"""The addresses of what allauth does here, under the names by which it knows them: second factors and single sign-on.

What else it brings has no address: signing up, mail addresses, passwords by mail, connecting accounts.
"""

from collections.abc import Callable

from allauth.account.decorators import reauthentication_required
from allauth.account.views import reauthenticate
from allauth.mfa.base import views as base
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as passkeys
from django.db import transaction
from django.http import HttpResponseBase
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from inspector.accounts.single_sign_on import come_back

from .account import show_recovery_codes
from .sign_in import go_to_provider, hash_in_turn, sign_in, within_pace


def _serve(route: str, view: Callable[..., HttpResponseBase], name: str) -> URLPattern:
    """A page of secrets, kept by no cache; what it changes and the entry in the audit log are one transaction."""
    return path(f"second-factor/{route}", never_cache(transaction.atomic(view)), name=name)


urlpatterns = [
    # Where allauth leads whoever has to begin anew.
    path("sign-in/", sign_in, name="account_login"),
    path("single-sign-on/", go_to_provider, name="single-sign-on"),
    path("single-sign-on/<slug:provider_id>/", never_cache(come_back), name="openid_connect_callback"),
    path(
        "second-factor/password/",
        never_cache(sensitive_post_parameters("password")(within_pace(hash_in_turn(reauthenticate)))),
        name="account_reauthenticate",
    ),
    _serve("", base.index, "mfa_index"),
    _serve("sign-in/", base.authenticate, "mfa_authenticate"),
    _serve("proof/", base.reauthenticate, "mfa_reauthenticate"),
    _serve("app/add/", totp.activate_totp, "mfa_activate_totp"),
    _serve("app/remove/", totp.deactivate_totp, "mfa_deactivate_totp"),
    _serve("passkeys/", base.index, "mfa_list_webauthn"),
    _serve("passkeys/add/", passkeys.add_webauthn, "mfa_add_webauthn"),
    _serve("passkeys/proof/", passkeys.reauthenticate_webauthn, "mfa_reauthenticate_webauthn"),
    _serve("passkeys/<int:pk>/remove/", passkeys.remove_webauthn, "mfa_remove_webauthn"),
    _serve("codes/", reauthentication_required(app="allauth.mfa")(show_recovery_codes), "recovery-codes"),
]
