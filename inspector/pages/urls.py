"""The addresses of the pages. What belongs to a workspace stands below its slug."""

from django.urls import include, path

from . import (
    account,
    conversations,
    dead_letters,
    deliveries,
    glossary,
    keyring,
    members,
    messages,
    problems,
    raw,
    search,
    sequence,
    settings,
    sign_in,
    traces,
    translator,
    uploads,
    withdrawals,
)

app_name = "pages"

workspace_urls = [
    path("conversations/", conversations.show_conversations, name="conversations"),
    path("conversations/<uuid:conversation_id>/", conversations.show_conversation, name="conversation"),
    path("conversations/<uuid:conversation_id>/review/", conversations.review_conversation, name="review"),
    path("conversations/<uuid:conversation_id>/sequence/", sequence.show_sequence, name="sequence"),
    path("conversations/<uuid:conversation_id>/sequence.mmd", sequence.download_mermaid, name="sequence-mermaid"),
    path("conversations/<uuid:conversation_id>/raw/", raw.show_raw, name="conversation-raw"),
    path("conversations/<uuid:conversation_id>/tree/", traces.show_conversation_tree, name="conversation-tree"),
    path("traces/", traces.show_traces, name="traces"),
    path("traces/<uuid:trace_id>/", traces.show_trace, name="trace"),
    path("messages/<uuid:message_id>/", messages.show_message, name="message"),
    path("records/<uuid:record_id>/raw/", messages.download_raw, name="raw"),
    path("search/", search.search, name="search"),
    path("translator/", translator.translate, name="translator"),
    path("glossary/<slug:dialect>/", glossary.show_glossary, name="glossary"),
    path("upload/", uploads.upload, name="upload"),
    path("upload/waiting/", uploads.decide_waiting, name="decide-waiting"),
    path("upload/<uuid:delivery_id>/", uploads.show_staged, name="staged"),
    path("deliveries/", deliveries.show_deliveries, name="deliveries"),
    path("deliveries/<uuid:delivery_id>/", deliveries.show_delivery, name="delivery"),
    path("deliveries/<uuid:delivery_id>/progress/", deliveries.show_progress, name="progress"),
    path("deliveries/<uuid:delivery_id>/problems.csv", problems.download_csv, name="problems-csv"),
    path("deliveries/<uuid:delivery_id>/problems.jsonl", problems.download_jsonl, name="problems-jsonl"),
    path("deliveries/<uuid:delivery_id>/withdraw/", withdrawals.withdraw, name="withdraw"),
    path("deliveries/<uuid:delivery_id>/take-back/", withdrawals.undo, name="take-back"),
    path("dead-letters/", dead_letters.show_dead_letters, name="dead-letters"),
    path("dead-letters/retry/", dead_letters.retry_dead_letters, name="retry-dead-letters"),
    path("settings/", settings.show_settings, name="settings"),
    path("settings/keys/<uuid:key_id>/revoke/", settings.revoke_key, name="revoke-key"),
    path("settings/members/", members.invite, name="invite"),
    path("settings/members/<int:membership_id>/", members.change, name="change-member"),
    path("settings/members/<int:membership_id>/invite/", members.invite_anew, name="invite-again"),
    path("settings/members/<int:membership_id>/remove/", members.remove, name="remove-member"),
    path("keyring/", keyring.show_keyring, name="keyring"),
    path("keyring/opening/", keyring.show_opening, name="opening"),
    path("keyring/<uuid:escrowed_key_id>/remove/", keyring.remove, name="remove-escrowed-key"),
    path("account/", account.show_account, name="account"),
]

urlpatterns = [
    path("", sign_in.show_home, name="home"),
    path("sign-in/", sign_in.sign_in, name="sign-in"),
    path("sign-in/<str:token>/", sign_in.use_link, name="sign-in-link"),
    path("sign-out/", sign_in.sign_out, name="sign-out"),
    path("w/<slug:slug>/", include(workspace_urls)),
]
