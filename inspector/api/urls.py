"""The addresses of the HTTP API, version 1: of each the operations by their methods."""

from typing import Any

from django.urls import path, re_path
from django.urls.resolvers import URLPattern
from django.views.generic import TemplateView
from drf_spectacular.views import SpectacularAPIView

from .agents import Agents
from .conversations import Conversations
from .decoding import Codecs
from .deliveries import Deliveries
from .endpoints import Endpoint, Nothing
from .evidence import Erasures, Ledger, Trail
from .exports import Exports
from .findings import Comments, Findings
from .ingest import Exporters, PostedMessages
from .messages import Messages
from .reviews import Reviews, Samples
from .traces import Traces
from .workspaces import Workspaces


def _at(route: str, name: str, endpoint: type[Endpoint], **operations: Any) -> URLPattern:
    return path(f"v1/{route}", endpoint.as_view(operations), name=name)


app_name = "api"
_MESSAGE, _CONVERSATION = "messages/<uuid:message_id>", "conversations/<uuid:conversation_id>"
_QUEUE, _ITEM = "reviews/queues/<uuid:queue_id>", "reviews/items/<uuid:item_id>"
_TRACE, _DELIVERY = "traces/<uuid:trace_id>", "deliveries/<uuid:delivery_id>"
urlpatterns = [
    _at("messages", "messages", PostedMessages, get="list_messages", post="send_messages"),
    _at(_MESSAGE, "message", Messages, get="get_message"),
    _at(f"{_MESSAGE}/fields", "message-fields", Messages, get="list_fields"),
    _at(f"{_MESSAGE}/comments", "message-comments", Comments, get="list_message_comments", post="write_comment"),
    _at("comments", "comments", Comments, get="list_comments"),
    _at("comments/<uuid:comment_id>", "comment", Comments, get="get_comment"),
    _at("comments/<uuid:comment_id>/acts", "comment-acts", Comments, post="act_on_comment"),
    _at("live", "live", Messages, get="follow_messages"),
    _at("conversations", "conversations", Conversations, get="list_conversations"),
    _at(_CONVERSATION, "conversation", Conversations, get="get_conversation"),
    _at(f"{_CONVERSATION}/sequence", "sequence", Conversations, get="get_sequence"),
    _at(f"{_CONVERSATION}/tasks", "tasks", Conversations, get="list_tasks"),
    _at(f"{_CONVERSATION}/tree", "conversation-tree", Traces, get="get_conversation_tree"),
    _at(f"{_CONVERSATION}/waterfall", "conversation-waterfall", Traces, get="get_conversation_waterfall"),
    _at("otlp/v1/traces", "spans", Exporters, post="export_spans"),
    _at("otlp/v1/logs", "logs", Exporters, post="export_logs"),
    _at("traces", "traces", Traces, get="list_traces"),
    _at(_TRACE, "trace", Traces, get="get_trace"),
    _at(f"{_TRACE}/tree", "trace-tree", Traces, get="get_trace_tree"),
    _at(f"{_TRACE}/waterfall", "trace-waterfall", Traces, get="get_trace_waterfall"),
    _at("findings", "findings", Findings, get="list_findings"),
    _at("findings/<uuid:finding_id>", "finding", Findings, get="get_finding"),
    _at("findings/<uuid:finding_id>/acts", "finding-acts", Findings, post="judge_finding"),
    _at("reviews/queues", "review-queues", Reviews, get="list_review_queues"),
    _at(_QUEUE, "review-queue", Reviews, get="get_review_queue"),
    _at(f"{_QUEUE}/next", "review-next", Reviews, post="take_next_review"),
    _at(f"{_QUEUE}/items", "review-items", Reviews, get="list_review_items"),
    _at(_ITEM, "review-item", Reviews, get="get_review_item"),
    _at(f"{_ITEM}/lease", "review-lease", Reviews, post="take_review", put="hold_review", delete="give_review_back"),
    _at(f"{_ITEM}/verdict", "review-verdict", Reviews, post="give_verdict", delete="withdraw_verdict"),
    _at("samples", "samples", Samples, get="list_samples", post="draw_sample"),
    _at("samples/<uuid:sample_id>", "sample", Samples, get="get_sample"),
    _at("samples/<uuid:sample_id>/conversations", "sample-conversations", Samples, get="list_drawn"),
    _at("ledger/checkpoint", "checkpoint", Ledger, get="get_checkpoint"),
    _at("ledger/cosignatures", "cosignatures", Ledger, post="add_cosignature"),
    _at("ledger/proofs/consistency", "consistency", Ledger, get="prove_consistency"),
    _at("ledger/proofs/inclusion", "inclusion", Ledger, get="prove_inclusion"),
    _at("trail", "trail", Trail, get="list_deeds"),
    _at("agents", "agents", Agents, get="list_agents"),
    _at("agents/<uuid:agent_id>", "agent", Agents, get="get_agent"),
    _at("workspace", "workspace", Workspaces, get="get_workspace"),
    _at("workspace/acts", "workspace-acts", Workspaces, post="act_on_workspace"),
    _at("workspaces", "workspaces", Workspaces, post="make_workspace"),
    _at("channels", "channels", Workspaces, get="list_channels"),
    _at("rules", "rules", Workspaces, get="list_rules"),
    _at("searches", "searches", Workspaces, get="list_searches"),
    _at("facets", "facets", Workspaces, get="count_facets"),
    _at("totals", "totals", Workspaces, get="get_totals"),
    _at("deliveries", "deliveries", Deliveries, get="list_deliveries"),
    _at(_DELIVERY, "delivery", Deliveries, get="get_delivery"),
    _at(
        f"{_DELIVERY}/withdrawal",
        "delivery-withdrawal",
        Deliveries,
        get="get_withdrawal",
        post="withdraw_delivery",
        delete="take_withdrawal_back",
    ),
    _at("records/<uuid:record_id>/raw", "raw", Deliveries, get="get_raw"),
    _at("erasures", "erasures", Erasures, get="list_erasures", post="erase"),
    _at("erasures/<uuid:erasure_id>", "erasure", Erasures, get="get_erasure"),
    _at("exports", "exports", Exports, get="list_exports", post="make_export"),
    _at("exports/<uuid:export_id>", "export", Exports, get="get_export", delete="stop_export"),
    _at("exports/<uuid:export_id>/file", "export-file", Exports, get="get_export_file"),
    _at("decode", "decode", Codecs, post="decode"),
    _at("encode", "encode", Codecs, post="encode"),
    _at("limits", "limits", Workspaces, get="get_limits"),
    # It needs no key; what it sends does, and the key stays in the browser's page.
    path("docs/", TemplateView.as_view(template_name="api/manual.html"), name="docs"),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    re_path("", Nothing.as_view({"options": "options"}), name="nothing"),
]
