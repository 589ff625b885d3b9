"""Upload: files go up and wait; their sender looks at the beginning of each, says how it is read, and loads it.

The beginning is told from records that are read with what their delivery says of them; nothing of it is stored.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.contrib import messages as flashes
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from dialects import Context, Entry, LogRecord, Message, Reading, choose_dialect, identify, tell
from inspector.accounts.models import Channel, Membership
from inspector.accounts.selectors import list_channels
from inspector.accounts.services import check_channel_name, ensure_channel
from inspector.accounts.workspaces import ARCHIVED
from inspector.api.bodies import is_asked_first
from inspector.bounds import find_declared_length, refuse_length, stop_reading, takes_large_bodies
from inspector.intake import staging
from inspector.intake.containers import RefusedArchiveError
from inspector.intake.identity import find_time, write_envelope
from inspector.intake.models import Delivery
from inspector.intake.readings import conceal_reading, conceal_told, facts_at, hide_entry, read_with_facts
from inspector.intake.selectors import find_delivery
from inspector.intake.staging import KEPT_FOR, Choices, look_at, read_choices
from inspector.pages.deliveries import make_progress
from inspector.threads.keys import key_of_conversation
from inspector.trail.acting import find_address

from .shell import PLAIN, PageForm, list_dialects, render_page, render_part, within_workspace
from .shown.agents import Cast
from .shown.fields import cut_layers
from .shown.told import Line, list_all_notes, name_dialect

# A longer one takes too long to tell while somebody waits for it.
MAX_WIRE = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """A record of a preview. `reading` is None for what is quarantined, and for what is too long to be told here.
    `time_basis` is wire or envelope where the record carries a time, else empty."""

    record: LogRecord
    reading: Reading | None
    time: str | None
    time_basis: str


class Foretelling(Context):
    """What a file establishes, without the tokens of the record that does."""

    reading: Reading | None = None

    def add(self, entries: Iterable[Entry]) -> None:
        """Let these hold from here on."""
        super().add(entries if self.reading is None else [hide_entry(self.reading, entry) for entry in entries])


def foretell(
    *, records: Iterable[LogRecord], options: Mapping[str, Any], start: datetime | None = None
) -> list[Foretold]:
    """The first records of a log in their order, each told in the context of its conversation. `options` are the
    delivery's (`readings.facts_at`), `start` is when the log begins, for records that carry no time."""
    contexts: dict[bytes, Foretelling] = defaultdict(Foretelling)
    held = list(records)
    now = timezone.now()
    times = {record.index: _find_time(record) for record in held}
    timeline = sorted(held, key=lambda record: (find_time(*times[record.index], start, now)[0], record.index))
    told = {record.index: _foretell(record, times[record.index], options, contexts) for record in timeline}
    return [told[record.index] for record in held]


def _find_time(record: LogRecord) -> tuple[str | None, str | None]:
    """The time on the wire and the time of the envelope, as far as there are any."""
    own = identify(record.wire).time if record.wire is not None else None
    return own, record.envelope.at if record.envelope else None


def _foretell(
    record: LogRecord,
    times: tuple[str | None, str | None],
    options: Mapping[str, Any],
    contexts: dict[bytes, Foretelling],
) -> Foretold:
    if record.wire is None or len(record.wire) > MAX_WIRE:
        return Foretold(record=record, reading=None, time=None, time_basis="")
    facts = facts_at(options, record.index).write()
    reading = read_with_facts(record.wire, write_envelope(record.envelope), facts)
    context = contexts[_find_conversation(reading.messages[0])]
    context.record = str(record.index)
    # Its dialect may be settled otherwise than it was read, and is then read from the wire.
    chosen = choose_dialect(reading, context)
    context.reading = shown = conceal_reading(chosen)
    whole = conceal_told(tell(shown, context), shown).whole
    for message in chosen.messages:
        contexts[_find_conversation(message)].position += 1
    own, outer = times
    basis = "wire" if own else "envelope" if outer else ""
    return Foretold(record=record, reading=whole, time=own or outer, time_basis=basis)


def _find_conversation(message: Message) -> bytes:
    """What stands for the conversation of a message within this file."""
    return key_of_conversation(message, source=b"", is_from_file=True)[0]


MAX_NAME_LENGTH = 200

CHANNEL_HELP = (
    "Message and conversation ids are unique only within a channel. Keep both sides of a conversation in one; "
    "name another where two systems could use the same ids."
)

PREFIX_HELP = "Example: “09:00:01 A -> B: …”. The prefix is split off if the rest decodes better."

WHO = (("unknown", "Nobody knows"), ("one", "One agent"), ("two", "Two, in turns"))

_NAME = {**PLAIN, "maxlength": str(MAX_NAME_LENGTH)}


class ManyFilesInput(forms.ClearableFileInput):
    """A file input that takes several."""

    allow_multiple_selected = True
    template_name = "django/forms/widgets/file.html"


class ManyFilesField(forms.FileField):
    """Several files, empty ones too: an empty log is a fact worth a receipt."""

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile[Any]]:
        """The files in the order they were chosen.

        Raises:
            ValidationError: for none, or for what is no file.
        """
        files = data if isinstance(data, list) else [data] if data else []
        if not files:
            raise forms.ValidationError("Choose at least one file.")
        return [super(ManyFilesField, self).clean(file, initial) for file in files]


class ChannelField(forms.CharField):
    """A channel by its name, which may be new."""

    def __init__(self, **kwargs: Any) -> None:
        widget = forms.TextInput(attrs=PLAIN)
        super().__init__(max_length=64, initial=Channel.DEFAULT, widget=widget, help_text=CHANNEL_HELP, **kwargs)

    def validate(self, value: Any) -> None:
        """Refuse what no channel can be called."""
        super().validate(value)
        check_channel_name(value)


class UploadForm(PageForm):
    """Files, and what their reading begins with."""

    logs = ManyFilesField(
        label="Log files", allow_empty_file=True, max_length=1024, widget=ManyFilesInput(attrs={"multiple": True})
    )
    channel = ChannelField()
    has_prefixes = forms.BooleanField(
        required=False, initial=True, label="Lines may begin with times, labels and speakers", help_text=PREFIX_HELP
    )

    def read(self) -> Choices:
        """How a valid form wants its files to be read at first."""
        return Choices(channel=self.cleaned_data["channel"], has_prefixes=self.cleaned_data["has_prefixes"])


class ReadingForm(PageForm):
    """How one staged file is to be read. Until it `is_final` a name may be missing: somebody is about to type it."""

    dialect = forms.ChoiceField(
        required=False,
        choices=partial(list_dialects, "Detect for each record"),
        help_text="A dialect chosen here is used for every record.",
    )
    channel = ChannelField()
    start = forms.DateTimeField(
        required=False,
        label="The log begins at",
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"],
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    has_prefixes = forms.BooleanField(
        required=False, label="Lines may begin with times, labels and speakers", help_text=PREFIX_HELP
    )
    who = forms.ChoiceField(label="Who speaks?", choices=WHO, widget=forms.RadioSelect, required=False)
    first = forms.CharField(
        required=False,
        max_length=MAX_NAME_LENGTH,
        label="Name",
        widget=forms.TextInput(attrs={**_NAME, "placeholder": "oscar"}),
    )
    second = forms.CharField(
        required=False,
        max_length=MAX_NAME_LENGTH,
        label="The other’s name",
        widget=forms.TextInput(attrs={**_NAME, "placeholder": "radar"}),
    )

    def __init__(self, *args: Any, zone: str, is_final: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_final = is_final
        self.fields["start"].help_text = f"For records without a time, in {zone}; else they are ordered by receipt."

    @staticmethod
    def write(choices: Choices) -> dict[str, Any]:
        """These choices as what the form shows."""
        names = (*choices.speakers, "", "")
        return {
            "dialect": choices.dialect or "",
            "channel": choices.channel,
            "start": choices.start,
            "has_prefixes": choices.has_prefixes,
            "who": ("unknown", "one", "two")[len(choices.speakers)],
            "first": names[0],
            "second": names[1],
        }

    def clean(self) -> dict[str, Any]:
        """Names that are asked for must be there, and two must differ; a log does not begin in the future."""
        said: dict[str, Any] = super().clean() or self.cleaned_data
        wanted = {"one": ("first",), "two": ("first", "second")}.get(said.get("who") or "unknown", ())
        for name in wanted:
            if self._is_final and not said.get(name) and name not in self.errors:
                self.add_error(name, "Name who speaks, or choose “Nobody knows”.")
        if wanted == ("first", "second") and said.get("first") and said.get("first") == said.get("second"):
            self.add_error("second", "Both have the same name. For one speaker choose “One agent”.")
        start = said.get("start")
        if start and (start > timezone.now() + timedelta(days=1) or start.year < 1970):
            self.add_error("start", "A log begins after 1970 and not in the future.")
        return said

    def read(self) -> Choices:
        """The choices of a valid form."""
        said = self.cleaned_data
        names = {"one": (said["first"],), "two": (said["first"], said["second"])}.get(said["who"], ())
        return Choices(
            channel=said["channel"],
            dialect=said["dialect"] or None,
            has_prefixes=said["has_prefixes"],
            start=said["start"],
            speakers=names if all(names) else (),
        )


MAX_NOTES = 3

MAX_PARTS = 3

TIME_WORDS = {"wire": "in the message", "envelope": "before the text"}


def make_card(delivery: Delivery, membership: Membership, form: ReadingForm | None = None) -> dict[str, Any]:
    """What `uploads/_staged.html` shows of a staged file.

    Args:
        form: what was filled in, shown again with its errors; without one the choices in force are shown.
    """
    choices = read_choices(delivery)
    beginning = look_at(delivery=delivery)
    told = foretell(records=beginning.records, options=delivery.options, start=choices.start)
    cast = Cast(choices.speakers)
    silent = [line for line in told if line.reading and not any(one.sender for one in line.reading.messages)]
    zone = membership.user.time_zone
    return {
        "row": delivery,
        "name": delivery.file_name or "a file without a name",
        "expires_at": delivery.received_at + KEPT_FOR,
        "form": form or ReadingForm(initial=ReadingForm.write(choices), zone=zone, auto_id=f"reading-{delivery.pk}-%s"),
        "channels": list(list_channels(workspace=membership.workspace)),
        "rows": [_make_row(line, cast) for line in told],
        "silent_count": len(silent),
        "asks_who": bool(silent or choices.speakers),
        "untimed_count": sum(1 for line in told if line.reading and not line.time_basis),
        "dialects": Counter(name_dialect(line.reading.dialect) for line in told if line.reading).most_common(),
        "malformed_count": sum(1 for line in told if line.reading and line.reading.error),
        "beginning": beginning,
    }


def _make_row(line: Foretold, cast: Cast) -> dict[str, Any]:
    reading, record = line.reading, line.record
    notes = list_all_notes(reading) if reading else []
    candidate = reading.candidates[0] if reading and reading.candidates else None
    messages = reading.messages if reading else ()
    return {
        "number": record.index + 1,
        "line": record.line,
        "length": record.length,
        "at": datetime.fromisoformat(line.time) if line.time else None,
        "time_words": TIME_WORDS.get(line.time_basis, ""),
        "dialect": name_dialect(reading.dialect, reading.version) if reading else "",
        "why": candidate.why if candidate else "",
        "sayings": [_make_saying(message, cast) for message in messages[:MAX_PARTS]],
        "more_parts": max(0, len(messages) - MAX_PARTS),
        "notes": notes[:MAX_NOTES],
        "more_notes": max(0, len(notes) - MAX_NOTES),
        "is_malformed": bool(reading and reading.error),
        "wire": reading.wire if reading else "",
        "stretches": [stretch for stretch in cut_layers(reading).get(0, ()) if stretch.kind == "masked"]
        if reading
        else (),
        "problem": record.problem.reason if record.problem else "",
    }


def _make_saying(message: Message, cast: Cast) -> dict[str, Any]:
    """One message of a previewed record: who says what to whom, and its sentence."""
    receivers = [name for name in message.receivers if name]
    is_to_itself = bool(message.sender) and receivers == [message.sender]
    line = Line(
        at=None,
        basis="",
        sender=cast.find(message.sender) if message.sender else None,
        receivers=[] if is_to_itself else cast.find_all(receivers),
        is_broadcast=message.broadcast,
        is_to_itself=is_to_itself,
        performative=message.performative,
        native_act=message.native_act or "",
    )
    return {"line": line, "segments": [(each.text, each.spans, each.basis) for each in message.english]}


# What the form around the files may add to the length of a request.
FORM_BYTES = 1024 * 1024

FULL = "Too many bytes wait to be imported here: import or discard the waiting files, then upload this again."


@takes_large_bodies
@csrf_exempt
@within_workspace("GET", "HEAD", "POST", needs="auditor")
def upload(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """The page, and files that go up: who sends them, how large they are and what waits already is looked at before a
    byte is read; looking for the CSRF token reads it all."""
    if request.method != "POST":
        return _answer(request, membership, UploadForm())
    if membership.workspace.archived_at is not None:
        stop_reading(request)
        return _answer(request, membership, UploadForm(), status=409, refusal=ARCHIVED)
    size_bytes = find_declared_length(request)
    if size_bytes > settings.LIMITS["delivery_bytes"] + FORM_BYTES:
        return refuse_length(request)
    if size_bytes + staging.count_waiting_bytes(workspace=membership.workspace) > settings.LIMITS["waiting_bytes"]:
        stop_reading(request)
        return _answer(request, membership, UploadForm(), status=503, refusal=FULL)
    return HttpResponse(status=204) if is_asked_first(request) else _take(request, membership)


@csrf_protect
def _take(request: HttpRequest, membership: Membership) -> HttpResponse:
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        return _answer(request, membership, form, status=422)
    staged: list[Delivery] = []
    for file in form.cleaned_data["logs"]:
        try:
            staged += staging.stage_file(
                membership=membership,
                channel=ensure_channel(workspace=membership.workspace, name=Channel.DEFAULT),
                chunks=file.chunks(),
                choices=form.read(),
                remote_address=find_address(),
                file_name=file.name or "",
                content_type=file.content_type or "",
            )
        except RefusedArchiveError as error:
            form.add_error("logs", f"{file.name}: {error}")
    if form.errors:
        return _answer(request, membership, form, status=400)
    if request.headers.get("HX-Request"):
        cards = [make_card(delivery, membership) for delivery in staged]
        return render_part(request, membership, "uploads/_staged_list.html", {"cards": cards}, status=201)
    if len(staged) == 1:
        return redirect("pages:staged", membership.workspace.slug, staged[0].pk)
    return redirect("pages:upload", membership.workspace.slug)


def _answer(
    request: HttpRequest, membership: Membership, form: UploadForm, *, status: int = 200, refusal: str = ""
) -> HttpResponse:
    wait = {"Retry-After": "60"} if status == 503 else {}
    if request.headers.get("HX-Request"):
        words = refusal or "; ".join(str(error) for errors in form.errors.values() for error in errors)
        return HttpResponse(words, status=status, headers=wait, content_type="text/plain; charset=utf-8")
    context: dict[str, Any] = {
        "form": form,
        "refusal": refusal,
        "limit_bytes": settings.LIMITS["delivery_bytes"],
        "kept_hours": int(staging.KEPT_FOR.total_seconds() // 3600),
        "channels": list(list_channels(workspace=membership.workspace)),
        "waiting": [
            {"row": delivery, "expires_at": delivery.received_at + staging.KEPT_FOR}
            for delivery in staging.list_staged(membership=membership)
        ],
    }
    response = render_page(request, membership, "uploads/upload.html", context, section="upload", status=status)
    for name, value in wait.items():
        response[name] = value
    return response


@within_workspace("GET", "HEAD", "POST", needs="auditor")
def show_staged(request: HttpRequest, membership: Membership, delivery_id: uuid.UUID) -> HttpResponse:
    """A staged file: its beginning as it would be read; and what its sender decides."""
    delivery = staging.list_staged(membership=membership).filter(pk=delivery_id).first()
    if delivery is None:
        return _follow(membership, delivery_id)
    with timezone.override(ZoneInfo(membership.user.time_zone)):
        if request.method != "POST":
            return _show(request, membership, delivery)
        try:
            return _decide(request, membership, delivery)
        except staging.NotStagedError:
            return _follow(membership, delivery_id)
        except ValidationError as error:
            flashes.error(request, "; ".join(error.messages))
            url = reverse("pages:upload", args=[membership.workspace.slug])
            # A piece of a page cannot follow to another page by itself.
            is_piece = request.headers.get("HX-Request")
            return HttpResponse(headers={"HX-Redirect": url}) if is_piece else redirect(url)


def _follow(membership: Membership, delivery_id: uuid.UUID) -> HttpResponse:
    """What was staged is a delivery by now, or is gone."""
    if find_delivery(workspace=membership.workspace, delivery_id=delivery_id) is None:
        raise Http404
    return redirect("pages:delivery", membership.workspace.slug, delivery_id)


_LEFT = "Only name, size and SHA-256 are kept, in the audit log."


def _decide(request: HttpRequest, membership: Membership, delivery: Delivery) -> HttpResponse:
    action = request.POST.get("action")
    is_piece = "HX-Request" in request.headers
    slug = membership.workspace.slug
    if action == "discard":
        staging.discard(delivery=delivery)
        if is_piece:
            gone = render_part(request, membership, "uploads/_discarded.html", {"name": delivery.file_name})
            return _replace_card(gone, delivery)
        flashes.success(request, f"{delivery.file_name} was discarded. {_LEFT}")
        return redirect("pages:upload", slug)
    form = ReadingForm(
        request.POST,
        zone=membership.user.time_zone,
        is_final=action == "load",
        auto_id=f"reading-{delivery.pk}-%s",
    )
    if not form.is_valid():
        return _show(request, membership, delivery, form, status=200 if is_piece else 422)
    delivery = staging.choose(delivery=delivery, choices=form.read())
    if action != "load":
        return _show(request, membership, delivery, form)
    delivery = staging.load(delivery=delivery)
    if is_piece:
        progress = {"delivery": make_progress(delivery)}
        return _replace_card(render_part(request, membership, "deliveries/_progress.html", progress), delivery)
    return redirect("pages:delivery", slug, delivery.pk)


def _show(
    request: HttpRequest,
    membership: Membership,
    delivery: Delivery,
    form: ReadingForm | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    context = {"card": make_card(delivery, membership, form)}
    if request.headers.get("HX-Request"):
        card = render_part(request, membership, "uploads/_staged.html", context, status=status)
        has_errors = (form is not None and bool(form.errors)) or "had_errors" in request.POST
        return _replace_card(card, delivery) if has_errors else card
    return render_page(request, membership, "uploads/staged.html", context, section="upload", status=status)


def _replace_card(answer: HttpResponse, delivery: Delivery) -> HttpResponse:
    """Let this answer take the place of the whole card, and not only of what is told in it."""
    answer["HX-Retarget"], answer["HX-Reswap"] = f"#staged-{delivery.pk}", "outerHTML"
    answer["HX-Reselect"] = "unset"
    return answer


@within_workspace("POST", needs="auditor")
def decide_waiting(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Load all that this person has staged, each as it was chosen; or throw all of it away."""
    is_load = request.POST.get("action") == "load"
    done = 0
    for delivery in staging.list_staged(membership=membership):
        try:
            if is_load:
                staging.load(delivery=delivery)
            else:
                staging.discard(delivery=delivery)
            done += 1
        except staging.NotStagedError:
            continue  # Another window of the same person was quicker.
        except ValidationError as error:
            flashes.error(request, f"{delivery.file_name}: {'; '.join(error.messages)}")
    files = "1 file" if done == 1 else f"{done:,} files"
    if not is_load:
        flashes.success(request, f"Discarded: {files}. {_LEFT}")
        return redirect("pages:upload", membership.workspace.slug)
    flashes.success(request, f"Loading {files}.")
    return redirect("pages:deliveries", membership.workspace.slug)
