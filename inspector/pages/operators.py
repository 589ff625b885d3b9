"""Django's admin for operators of the installation: lists of rows to read, without a word of what they hold.

It goes across workspaces, so no owner of one sees it. It is there where `OPERATOR_ADMIN` says so, for superusers of the
installation (`manage.py createsuperuser`) who signed in on the product's own page and have a second factor; for anybody
else there is nothing. No column holds text of a log, a name that a log gave or a secret, whether masked or not: each
list names the columns that it shows, and filters by no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.auth.views import redirect_to_login
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse

from inspector.accounts.models import Membership, User, Workspace
from inspector.accounts.second_factors import has_second_factor
from inspector.audit.models import Finding
from inspector.intake.models import Delivery, Job, Record
from inspector.threads.models import Conversation, Message

# For each list its columns, and by which of them it is filtered.
LISTS: Final[dict[type[Model], tuple[str, str]]] = {
    Workspace: ("slug name created_at archived_at requires_second_factor seals_records", ""),
    Membership: ("workspace user role is_by_group created_at", "role"),
    Delivery: (
        "id workspace door state received_at received stored duplicate quarantined read",
        "door state",
    ),
    Record: ("id workspace dialect is_quarantined is_from_file order_time created_at", "is_quarantined"),
    Message: ("id workspace dialect part performative severity is_sealed order_time told_at", "severity is_sealed"),
    Conversation: ("id workspace state message_count missing_count severity first_at last_at settled_at", "state"),
    Finding: ("id workspace rule severity state holds is_suppressed found_at ended_at", "severity state holds"),
    Job: ("id workspace kind state attempts due_at lease_until created_at updated_at", "kind state"),
}


if TYPE_CHECKING:
    _Admin = ModelAdmin[Any]
else:
    _Admin = ModelAdmin


class RowsAdmin(_Admin):
    """A list to read: no row is added, changed, deleted or opened."""

    list_display_links = None
    actions = None
    show_full_result_count = False
    ordering = ("-pk",)

    def get_list_display(self, request: HttpRequest) -> Any:
        """The columns."""
        return LISTS[self.model][0].split()

    def get_list_filter(self, request: HttpRequest) -> Any:
        """The columns by which the list is filtered."""
        return LISTS[self.model][1].split()

    def get_list_select_related(self, request: HttpRequest) -> list[str]:
        """What is read with a row, for its column."""
        return [name for name in self.get_list_display(request) if name in ("workspace", "user")]

    def get_urls(self) -> list[URLPattern]:
        """The list alone: a row's own page would be headed by the words of the row."""
        meta = self.opts
        view = self.admin_site.admin_view(self.changelist_view)
        return [path("", view, name=f"{meta.app_label}_{meta.model_name}_changelist")]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """What an address may ask: by a column that is not shown, one could guess what it holds."""
        return lookup.removesuffix("__exact") in LISTS[self.model][1].split()

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody deletes."""
        return False


class OperatorSite(AdminSite):
    """The lists, for superusers with a second factor. Signing in and out is the product's."""

    site_title = site_header = index_title = "Operator's lists"
    site_url = None

    def has_permission(self, request: HttpRequest) -> bool:
        """Whether it may be seen.

        Raises:
            Http404: for somebody who has signed in and may not.
        """
        if not isinstance(request.user, User):
            return False
        if request.user.is_active and request.user.is_superuser and has_second_factor(request.user):
            return True
        raise Http404

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Lead to the product's own page, with its bounds on tries and its second factor."""
        return redirect_to_login(request.GET.get("next", reverse("operators:index")))

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The jobs, beside which the other lists are named."""
        return redirect("operators:intake_job_changelist")

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """There is none here: the product's own is in the audit log, and ends the other sessions."""
        raise Http404

    logout = password_change

    def get_log_entries(self, request: HttpRequest) -> Any:
        """None: nothing can be done here that there would be a log of."""
        return ()


site = OperatorSite(name="operators")
for _model in LISTS:
    site.register(_model, RowsAdmin)
