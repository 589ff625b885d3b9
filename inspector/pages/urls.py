"""The addresses of the pages, and of second factors and single sign-on. What belongs to a workspace stands below its
slug.
"""

from collections.abc import Callable

from allauth.account.decorators import reauthentication_required
from allauth.account.views import reauthenticate
from allauth.mfa.base import views as base
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as passkeys
from django.db import transaction
from django.http import HttpResponseBase
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from inspector.accounts.single_sign_on import come_back

from . import (
    agents,
    comments,
    connections,
    deliveries,
    evidence,
    exports,
    findings,
    graph,
    keeping,
    keyring,
    live,
    messages,
    overview,
    palette,
    review_items,
    reviews,
    search,
    settings,
    shell,
    sign_in,
    traces,
    trail,
    translator,
    uploads,
)
from .conversations import sequence, tasks
from .conversations import views as conversations


def _serve(route: str, view: Callable[..., HttpResponseBase], name: str) -> URLPattern:
    """A page of secrets, kept by no cache; what it changes and the entry in the audit log are one transaction."""
    return path(f"second-factor/{route}", never_cache(transaction.atomic(view)), name=name)


workspace_urls = [
    path("", overview.lead_to_overview, name="workspace"),
    path("overview/", overview.show_overview, name="overview"),
    path("live/", live.show_news, name="live"),
    path("overview/activity/", overview.show_activity, name="activity"),
    path("conversations/", conversations.show_conversations, name="conversations"),
    path("conversations/<uuid:conversation_id>/", conversations.show_conversation, name="conversation"),
    path("conversations/<uuid:conversation_id>/transcript.txt", conversations.show_text, name="conversation-text"),
    path("conversations/<uuid:conversation_id>/review/", conversations.review_conversation, name="review"),
    path("conversations/<uuid:conversation_id>/sequence/", sequence.show_sequence, name="sequence"),
    path("conversations/<uuid:conversation_id>/sequence.mmd", sequence.download_mermaid, name="sequence-mermaid"),
    path("conversations/<uuid:conversation_id>/tasks/", tasks.show_tasks, name="conversation-tasks"),
    path("conversations/<uuid:conversation_id>/raw/", conversations.show_raw, name="conversation-raw"),
    path("conversations/<uuid:conversation_id>/tree/", traces.show_conversation_tree, name="conversation-tree"),
    path(
        "conversations/<uuid:conversation_id>/findings/",
        findings.show_conversation_findings,
        name="conversation-findings",
    ),
    path("conversations/<uuid:conversation_id>/queue/", reviews.enqueue, name="enqueue"),
    path("reviews/", reviews.show_reviews, name="reviews"),
    path("reviews/new/", reviews.make_queue, name="new-queue"),
    path("reviews/samples/", reviews.show_samples, name="samples"),
    path("reviews/samples/new/", reviews.draw, name="new-sample"),
    path("reviews/samples/<uuid:sample_id>/", reviews.show_sample, name="sample"),
    path("reviews/queues/<uuid:queue_id>/", reviews.show_queue, name="queue"),
    path("reviews/queues/<uuid:queue_id>/act/", reviews.act_on_queue, name="act-on-queue"),
    path("reviews/items/<uuid:item_id>/", review_items.show_item, name="review-item"),
    path("reviews/items/<uuid:item_id>/act/", review_items.act_on_item, name="act-on-item"),
    path("reviews/items/<uuid:item_id>/verdict/", review_items.judge_item, name="judge-item"),
    path("findings/", findings.show_findings, name="findings"),
    path("findings/judge/", findings.judge_findings, name="judge-findings"),
    path("findings/rule/", findings.set_one, name="set-rule"),
    path("findings/suppress/", findings.suppress_findings, name="suppress-findings"),
    path("findings/suppressions/<uuid:suppression_id>/lift/", findings.lift_suppression, name="lift-suppression"),
    path("findings/<uuid:finding_id>/", findings.show_finding, name="finding"),
    path("traces/", traces.show_traces, name="traces"),
    path("traces/<uuid:trace_id>/", traces.show_trace, name="trace"),
    path("messages/<uuid:message_id>/", messages.show_message, name="message"),
    path("messages/<uuid:message_id>/comments/", comments.write, name="write-comment"),
    path("comments/", comments.show_comments, name="comments"),
    path("comments/<uuid:comment_id>/", comments.show_comment, name="comment"),
    path("comments/<uuid:comment_id>/act/", comments.act, name="act-on-comment"),
    path("messages/<uuid:message_id>/json/", messages.show_json, name="message-json"),
    path("records/<uuid:record_id>/raw/", evidence.download_raw, name="raw"),
    path("search/", search.search, name="search"),
    path("search/facets/", search.show_facets, name="facets"),
    path("search/suggestions/", search.suggest_terms, name="suggestions"),
    path("search/saved/", search.save, name="save-search"),
    path("search/saved/<uuid:saved_id>/forget/", search.forget, name="forget-search"),
    path("messages/<uuid:message_id>/around/", search.show_around, name="around"),
    path("counts/", shell.show_counts, name="counts"),
    path("palette/", palette.suggest_places, name="palette"),
    path("agents/", agents.show_agents, name="agents"),
    path("agents/graph/", graph.show_graph, name="agents-graph"),
    path("agents/<uuid:agent_id>/", agents.show_agent, name="agent"),
    path("agents/<uuid:agent_id>/name/", agents.name, name="name-agent"),
    path("agents/<uuid:agent_id>/join/", agents.join, name="join-agent"),
    path("agents/words/<uuid:word_id>/undo/", agents.undo, name="undo-agent-word"),
    path("translator/", translator.translate, name="translator"),
    path("glossary/<slug:dialect>/", translator.show_glossary, name="glossary"),
    path("upload/", uploads.upload, name="upload"),
    path("upload/waiting/", uploads.decide_waiting, name="decide-waiting"),
    path("upload/<uuid:delivery_id>/", uploads.show_staged, name="staged"),
    path("deliveries/", deliveries.show_deliveries, name="deliveries"),
    path("deliveries/<uuid:delivery_id>/", deliveries.show_delivery, name="delivery"),
    path("deliveries/<uuid:delivery_id>/progress/", deliveries.show_progress, name="progress"),
    path("deliveries/<uuid:delivery_id>/problems.csv", deliveries.download, {"form": "csv"}, name="problems-csv"),
    path("deliveries/<uuid:delivery_id>/problems.jsonl", deliveries.download, {"form": "jsonl"}, name="problems-jsonl"),
    path("deliveries/<uuid:delivery_id>/withdraw/", deliveries.withdraw, name="withdraw"),
    path("deliveries/<uuid:delivery_id>/take-back/", deliveries.undo, name="take-back"),
    path("dead-letters/", deliveries.show_dead_letters, name="dead-letters"),
    path("dead-letters/retry/", deliveries.retry_dead_letters, name="retry-dead-letters"),
    path("exports/", exports.show_exports, name="exports"),
    path("exports/new/", exports.ask, name="new-export"),
    path("exports/<uuid:export_id>/", exports.show_export, name="export"),
    path("exports/<uuid:export_id>/progress/", exports.show_progress, name="export-progress"),
    path("exports/<uuid:export_id>/file", exports.download, name="export-file"),
    path("exports/<uuid:export_id>/manifest.json", exports.download_manifest, name="export-manifest"),
    path("exports/<uuid:export_id>/stop/", exports.stop, name="stop-export"),
    path("connect/", connections.show_connect, name="connect"),
    path("connect/<uuid:key_id>/", connections.show_arrival, name="connect-arrival"),
    path("settings/", settings.show_settings, name="settings"),
    path("settings/keys/<uuid:key_id>/revoke/", settings.revoke_key, name="revoke-key"),
    path("settings/keys/<uuid:key_id>/take-over/", settings.take_over_key, name="take-over-key"),
    path("settings/alerts/", connections.show_alerts, name="alerts"),
    path("settings/alerts/test/", connections.test, name="test-alerts"),
    path("settings/alerts/secret/", connections.renew, name="renew-alert-secret"),
    path("settings/alerts/switch/", connections.switch, name="switch-alerts"),
    path("settings/workspace/", settings.change_workspace, name="change-workspace"),
    path("settings/workspaces/", settings.make_another, name="new-workspace"),
    path("settings/members/", settings.invite, name="invite"),
    path("settings/members/<int:membership_id>/", settings.change_role, name="change-member"),
    path("settings/members/<int:membership_id>/switch/", settings.switch_access, name="switch-member"),
    path("settings/invitations/<int:invitation_id>/", settings.act_on_invitation, name="act-on-invitation"),
    path("settings/members/<int:membership_id>/remove/", settings.take_out, name="remove-member"),
    path("trail/", trail.show_trail, name="trail"),
    path("trail/trail.csv", trail.download, {"form": "csv"}, name="trail-csv"),
    path("trail/trail.jsonl", trail.download, {"form": "jsonl"}, name="trail-jsonl"),
    path("retention/", keeping.show_retention, name="retention"),
    path("retention/act/", keeping.act, name="act-on-retention"),
    path("integrity/", keeping.show_integrity, name="integrity"),
    path("integrity/verify/", keeping.verify, name="verify-ledger"),
    path("integrity/compare/", keeping.compare, name="compare-checkpoint"),
    path("integrity/checkpoint.txt", keeping.download_checkpoint, name="checkpoint"),
    path("integrity/checkpoint.svg", keeping.show_code, name="checkpoint-code"),
    path("integrity/bundle.zip", keeping.download_bundle, name="bundle"),
    path("conversations/<uuid:conversation_id>/bundle.zip", keeping.download_bundle, name="conversation-bundle"),
    path("keyring/", keyring.show_keyring, name="keyring"),
    path("keyring/opening/", keyring.show_opening, name="opening"),
    path("keyring/<uuid:escrowed_key_id>/release/", keyring.release, name="release-escrowed-key"),
    path("keyring/<uuid:escrowed_key_id>/remove/", keyring.remove, name="remove-escrowed-key"),
    path("account/", sign_in.show_account, name="account"),
]

public_urls: list[URLPattern | URLResolver] = [
    path("", sign_in.show_home, name="home"),
    path("sign-in/", sign_in.sign_in, name="sign-in"),
    path("sign-in-link/", sign_in.use_link, name="sign-in-link"),
    path("invitation/", sign_in.follow_invitation, name="invitation"),
    re_path(r"^(?:sign-in|invitation)/[\w-]+/$", sign_in.refuse_old_link, name="old-link"),
    path("sign-out/", sign_in.sign_out, name="sign-out"),
    path("w/<slug:slug>/", include(workspace_urls)),
]

# What allauth does here, under the names by which it knows it. What else it brings has no address: signing up, mail
# addresses, passwords by mail, connecting accounts.
identity_urls = [
    # Where allauth leads whoever has to begin anew.
    path("sign-in/", sign_in.sign_in, name="account_login"),
    path("single-sign-on/", sign_in.go_to_provider, name="single-sign-on"),
    path("single-sign-on/<slug:provider_id>/", never_cache(come_back), name="openid_connect_callback"),
    path(
        "second-factor/password/",
        never_cache(sensitive_post_parameters("password")(sign_in.within_pace(sign_in.hash_in_turn(reauthenticate)))),
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
    _serve("codes/", reauthentication_required(app="allauth.mfa")(sign_in.show_recovery_codes), "recovery-codes"),
]

urlpatterns = [path("", include((public_urls, "pages"))), *identity_urls]
