"""The addresses of the pages. What belongs to a workspace stands below its slug."""

from django.urls import include, path, re_path

from . import connect, exports, integrity, live, overview, palette, retention, search, shell, trail, translator
from .agents import graph as agent_graph
from .agents import views as directory
from .conversations import tasks
from .conversations import views as conversations
from .deliveries import uploads
from .deliveries import views as deliveries
from .findings import acting, alerts
from .findings import views as findings
from .messages import evidence
from .messages import views as messages
from .reviews import comments, samples
from .reviews import item as review_item
from .reviews import views as reviews
from .sequences import views as sequence
from .settings import account, keyring, sign_in
from .settings import views as settings
from .traces import views as traces

app_name = "pages"

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
    path("reviews/samples/", samples.show_samples, name="samples"),
    path("reviews/samples/new/", samples.draw, name="new-sample"),
    path("reviews/samples/<uuid:sample_id>/", samples.show_sample, name="sample"),
    path("reviews/queues/<uuid:queue_id>/", reviews.show_queue, name="queue"),
    path("reviews/queues/<uuid:queue_id>/act/", reviews.act_on_queue, name="act-on-queue"),
    path("reviews/items/<uuid:item_id>/", review_item.show_item, name="review-item"),
    path("reviews/items/<uuid:item_id>/act/", review_item.act_on_item, name="act-on-item"),
    path("reviews/items/<uuid:item_id>/verdict/", review_item.judge_item, name="judge-item"),
    path("findings/", findings.show_findings, name="findings"),
    path("findings/judge/", acting.judge_findings, name="judge-findings"),
    path("findings/rule/", acting.set_one, name="set-rule"),
    path("findings/suppress/", acting.suppress_findings, name="suppress-findings"),
    path("findings/suppressions/<uuid:suppression_id>/lift/", acting.lift_suppression, name="lift-suppression"),
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
    path("agents/", directory.show_agents, name="agents"),
    path("agents/graph/", agent_graph.show_graph, name="agents-graph"),
    path("agents/<uuid:agent_id>/", directory.show_agent, name="agent"),
    path("agents/<uuid:agent_id>/name/", directory.name, name="name-agent"),
    path("agents/<uuid:agent_id>/join/", directory.join, name="join-agent"),
    path("agents/words/<uuid:word_id>/undo/", directory.undo, name="undo-agent-word"),
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
    path("connect/", connect.show_connect, name="connect"),
    path("connect/<uuid:key_id>/", connect.show_arrival, name="connect-arrival"),
    path("settings/", settings.show_settings, name="settings"),
    path("settings/keys/<uuid:key_id>/revoke/", settings.revoke_key, name="revoke-key"),
    path("settings/keys/<uuid:key_id>/take-over/", settings.take_over_key, name="take-over-key"),
    path("settings/alerts/", alerts.show_alerts, name="alerts"),
    path("settings/alerts/test/", alerts.test, name="test-alerts"),
    path("settings/alerts/secret/", alerts.renew, name="renew-alert-secret"),
    path("settings/alerts/switch/", alerts.switch, name="switch-alerts"),
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
    path("retention/", retention.show_retention, name="retention"),
    path("retention/act/", retention.act, name="act-on-retention"),
    path("integrity/", integrity.show_integrity, name="integrity"),
    path("integrity/verify/", integrity.verify, name="verify-ledger"),
    path("integrity/compare/", integrity.compare, name="compare-checkpoint"),
    path("integrity/checkpoint.txt", integrity.download_checkpoint, name="checkpoint"),
    path("integrity/checkpoint.svg", integrity.show_code, name="checkpoint-code"),
    path("integrity/bundle.zip", integrity.download_bundle, name="bundle"),
    path("conversations/<uuid:conversation_id>/bundle.zip", integrity.download_bundle, name="conversation-bundle"),
    path("keyring/", keyring.show_keyring, name="keyring"),
    path("keyring/opening/", keyring.show_opening, name="opening"),
    path("keyring/<uuid:escrowed_key_id>/release/", keyring.release, name="release-escrowed-key"),
    path("keyring/<uuid:escrowed_key_id>/remove/", keyring.remove, name="remove-escrowed-key"),
    path("account/", account.show_account, name="account"),
]

urlpatterns = [
    path("", sign_in.show_home, name="home"),
    path("sign-in/", sign_in.sign_in, name="sign-in"),
    path("sign-in-link/", sign_in.use_link, name="sign-in-link"),
    path("invitation/", sign_in.follow_invitation, name="invitation"),
    re_path(r"^(?:sign-in|invitation)/[\w-]+/$", sign_in.refuse_old_link, name="old-link"),
    path("sign-out/", sign_in.sign_out, name="sign-out"),
    path("w/<slug:slug>/", include(workspace_urls)),
]
