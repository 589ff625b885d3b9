"""Answers, events and objects of A2A as drafts: messages of the agent, tasks and how they stand, artifacts, errors."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from .._draft import Draft
from .._english import join_words, quote, say_instant, say_name
from .._json import write
from .._jsonrpc import NOT_UNDERSTOOD, Call, read_failure, say_failure
from .._record import Failure, NoteKind
from .._time import instant_of_text
from .calls import draft_message
from .shapes import (
    PROBLEMS_AT,
    ROLES,
    Spot,
    find_shape,
    is_config,
    is_problem,
    read_columns,
    read_content,
    say_parts,
    say_references,
    unwrap,
)
from .tables import ERRORS, PROBLEMS, STATES, State, read_state

STATE_UNKNOWN: Final = NoteKind(
    code="a2a.state-unknown",
    severity="warning",
    group="protocol",
    about="A task is in a state that the specification does not have.",
    cites="A2A 1.0, section 4.1.3",
)
# By whether the piece is added to what came before, is the last, and says that more follows.
_PIECES: Final = {
    (False, False, False): "the artifact",
    (False, False, True): "the first piece of the artifact",
    (False, True, False): "the whole artifact",
    (True, False, False): "a further piece of the artifact",
    (True, False, True): "a further piece of the artifact",
    (True, True, False): "the last piece of the artifact",
}


def draft_answer(call: Call) -> Draft:
    """The draft of a result or an error of JSON-RPC."""
    at = Spot(call.data, call.path)
    draft = _draft_error(at, call) if call.kind == "error" else draft_object(at.at("result"), call)
    if call.id is not None:
        draft.columns["parent_id"] = call.id
    return draft


def draft_object(spot: Spot, call: Call | None = None) -> Draft:
    """The draft of an object, alone or as the result that answers a call."""
    spot = unwrap(spot)
    shape = find_shape(spot)
    if shape == "message":
        return _draft_reply(spot, call)
    if shape in ("task", "status-update"):
        return _draft_task(spot, str(shape), call)
    if shape == "artifact-update":
        return _draft_piece(spot, call)
    if shape == "card":
        return _draft_card(spot, call)
    if shape == "config":
        return _draft_config(spot, call)
    if shape == "error":
        return _draft_error(spot, Call(spot.path, spot.members, "error", None))
    if shape == "problem":
        return _draft_problem(spot, call)
    return _draft_list(spot, shape, call)


def _begin(draft: Draft, spot: Spot, call: Call | None) -> Draft:
    """Who speaks, and to which request where it answers one."""
    asked = ("a2a-asked", call.id) if call is not None and call.id is not None else ("", "")
    # Alone, a message without its role may be either's.
    is_open = call is None and spot.members.get("kind") == "message" and not spot.find("role")
    draft.say_sender("Someone" if is_open else "The agent", spot.path, asked=asked).say(
        " says" if call is None else " answers"
    )
    if call is not None and call.id is not None:
        own = (*call.path, "id")
        draft.say(f" (request {say_name(call.id)}, ", own)
        draft.recall("a2a-call", call.id, "which is not known here", own).say(")")
    return draft.say(", by A2A")


def _draft_reply(spot: Spot, call: Call | None) -> Draft:
    """A message that the agent sends; alone it may also be one of who asks."""
    if call is None and ROLES.get(str(spot.at("role").value)) == "user":
        return draft_message(spot)
    draft = Draft("inform" if call is None else "done", "message", **read_columns(spot))
    _begin(draft, spot, call)
    if spot.find("taskId"):
        draft.say(f", on the task {say_name(str(spot.find('taskId')))}", spot.at("taskId").path)
    say_parts(draft.say(": "), spot.at("parts"))
    say_references(draft, spot)
    return draft.say(".")


def _draft_task(spot: Spot, shape: str, call: Call | None) -> Draft:
    """A task as it stands, or an event that says so."""
    status, task = spot.at("status"), spot.at("taskId") if spot.find("taskId") else spot.at("id")
    written = str(status.at("state").text)
    word = read_state(written)
    state = STATES.get(word, State("inform", f"is in the state {quote(written)}"))
    message, artifacts = status.at("message"), list(spot.at("artifacts").items)
    content: dict[str, Any] = {}
    if message.members:
        content["message"] = read_content(message.at("parts"))
    if artifacts:
        content["artifacts"] = [item.value for item in artifacts]
    draft = Draft(
        state.performative,
        shape,
        task_id=task.text,
        conversation_id=spot.find("contextId", "sessionId"),
        message_id=message.find("messageId"),
        status=word,
        content=content,
        attributes=_find_repeated(spot),
    )
    _begin(draft, spot, call).say(", that ")
    draft.say(f"the task {say_name(task.text)} " if task.text else "the task ", task.path)
    draft.say(state.says, status.at("state").path)
    # When it reached the state, which may be long before this is said: no time of the message.
    if instant := instant_of_text(status.at("timestamp").text or ""):
        draft.say(f" (as of {say_instant(datetime.fromisoformat(instant))})", status.at("timestamp").path)
    if message.at("parts").value is not None:
        say_parts(draft.say(": "), message.at("parts"))
        say_references(draft, message)
    for item in artifacts:
        draft.say("; ")
        _say_artifact(draft, item, "its artifact")
    earlier = len(list(spot.at("history").items))
    if earlier:
        words = "1 earlier message is repeated" if earlier == 1 else f"{earlier} earlier messages are repeated"
        draft.say(f"; {words}", spot.at("history").path)
    if spot.at("final").value is True:
        draft.say("; nothing more follows in this stream", spot.at("final").path)
    if word not in STATES:
        draft.note(STATE_UNKNOWN, f"the task is in a state that A2A does not have: {quote(written)}", status.path)
    return draft.say(".")


def _find_repeated(task: Spot) -> dict[str, Any]:
    """The id of the last message to the agent that a task repeats."""
    said = [
        item.find("messageId") for item in task.at("history").items if ROLES.get(str(item.at("role").value)) == "user"
    ]
    return {"repeats": said[-1]} if said and said[-1] else {}


def _say_artifact(draft: Draft, artifact: Spot, words: str) -> None:
    name, own = artifact.find("name"), artifact.find("artifactId")
    draft.say(words, artifact.path)
    if name or own:
        draft.say(f" {say_name(str(name or own))}", artifact.at("name" if name else "artifactId").path)
    if name and own and own != name:
        draft.say(f" ({say_name(own)})", artifact.at("artifactId").path)
    say_parts(draft.say(": "), artifact.at("parts"))


def _draft_piece(spot: Spot, call: Call | None) -> Draft:
    """A piece of an artifact: the first, one that is added to it, or the last."""
    artifact, task = spot.at("artifact"), spot.at("taskId") if spot.find("taskId") else spot.at("id")
    # Before version 0.2 these stood in the artifact.
    is_added, is_last = (True in (spot.at(name).value, artifact.at(name).value) for name in ("append", "lastChunk"))
    is_open = False in (spot.at("lastChunk").value, artifact.at("lastChunk").value)
    words = _PIECES[is_added, is_last, is_open and not is_last]
    draft = Draft(
        "progress",
        "artifact-update",
        task_id=task.text,
        conversation_id=spot.find("contextId", "sessionId"),
        object_id=artifact.find("artifactId"),
        topic=artifact.find("name"),
        content=read_content(artifact.at("parts")),
    )
    _begin(draft, spot, call).say(", with ")
    _say_artifact(draft, artifact, words)
    if task.text:
        draft.say(f"; it is of the task {say_name(task.text)}", task.path)
    name = f"{task.text or ''}/{artifact.find('artifactId') or write(artifact.at('index').value)}"
    draft.gather("a2a-artifact", name, "", is_first=not is_added)
    for text in (item.at("text") for item in artifact.at("parts").items):
        draft.gather("a2a-artifact", name, text.text or "", text.path)
    if is_last:
        draft.say("; the artifact is complete", spot.path)
        if is_added:
            draft.say_gathered("a2a-artifact", name, artifact.path)
    return draft.say(".")


def _draft_card(spot: Spot, call: Call | None) -> Draft:
    """What an agent says of itself."""
    skills = [text for item in spot.at("skills").items if (text := item.find("name", "id"))]
    draft = Draft("advertise", "card", sender=spot.find("name"), capabilities=tuple(skills), content=spot.value)
    _begin(draft, spot, call).say(", in its agent card, that it has ")
    names = join_words([say_name(name) for name in skills])
    words = "no skills" if not names else f"the skill {names}" if len(skills) == 1 else f"the skills {names}"
    draft.say(words, spot.at("skills").path)
    if spot.find("version"):
        draft.say(f", in version {say_name(str(spot.find('version')))}", spot.at("version").path)
    if spot.find("description"):
        draft.say(": ").carry(spot.at("description").path)
    return draft.say(".")


def _draft_config(spot: Spot, call: Call | None) -> Draft:
    """Where the agent sends news of a task."""
    task = spot.at("taskId") if spot.find("taskId") else spot.at("id")
    url = spot.at("url") if is_config(spot) else spot.at("pushNotificationConfig", "url")
    draft = Draft("inform", "config", task_id=task.text, content={"url": url.text})
    _begin(draft, spot, call).say(f", that it sends news of the task {say_name(str(task.text))}", task.path)
    return draft.say(f" to {quote(str(url.text))}", url.path).say(".")


def _draft_list(spot: Spot, shape: str | None, call: Call | None) -> Draft:
    """Several tasks or places for news, or an answer that says nothing else of itself."""
    act = "inform" if shape else "done"
    draft = Draft(act, shape or "result", content=spot.value)
    _begin(draft, spot, call)
    if shape == "tasks":
        draft.say(": " if spot.at("tasks").value else ", that there are no such tasks", spot.at("tasks").path)
        for index, item in enumerate(spot.at("tasks").items):
            state = str(item.at("status", "state").text)
            says = STATES.get(read_state(state), State("", "")).says
            before = ", " if index else ""
            draft.say(f"{before}the task {say_name(str(item.find('id')))} {says}", item.path)
    elif shape == "configs":
        listed = spot if isinstance(spot.value, list) else spot.at("configs")
        urls = [item.find("url") or item.at("pushNotificationConfig", "url").text for item in listed.items]
        draft.say(f", that it sends news to {join_words([quote(str(url)) for url in urls])}", spot.path)
    elif spot.value not in (None, {}, []):
        draft.say(": ").carry(spot.path)
    return draft.say(".")


def _draft_error(at: Spot, call: Call) -> Draft:
    failure, error = read_failure(call), at.at("error")
    code = error.at("code").value
    if type(code) is int and code in ERRORS:
        failure = failure.replace(cause=ERRORS[code])
    act = "not-understood" if type(code) is int and code in NOT_UNDERSTOOD else "failure"
    draft = Draft(act, "error", error=failure, content=error.value)
    _begin(draft, error, call).say(f", with {say_failure(failure)}", error.at("code").path)
    if error.at("message").text:
        draft.say(": ").carry(error.at("message").path)
    for held in (error.at("data"), error.at("details")):
        # The same error once more, as HTTP has it: its detail alone is new.
        more = held.at("detail") if is_problem(held) else held
        if more.value is not None:
            draft.say(", with ").carry(more.path)
    return draft.say(".")


def _draft_problem(spot: Spot, call: Call | None) -> Draft:
    """An error as HTTP carries it, whose type says which one."""
    status, kind = spot.at("status"), str(spot.at("type").value).removeprefix(PROBLEMS_AT)
    code = write(status.value) if type(status.value) is int else None
    failure = Failure(code=code, message=spot.find("detail", "title"), cause=ERRORS.get(PROBLEMS.get(kind, 0)))
    draft = Draft("failure", "error", error=failure, content=spot.value)
    _begin(draft, spot, call).say(f", with {say_failure(failure)}", spot.at("type").path)
    if failure.message is not None:
        draft.say(": ").carry(spot.at("detail" if spot.find("detail") else "title").path)
    return draft.say(".")
