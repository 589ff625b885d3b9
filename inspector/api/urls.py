"""The addresses of the HTTP API, version 1."""

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView

from . import (
    agents,
    comments,
    decoding,
    deliveries,
    exports,
    findings,
    ingest,
    live,
    manual,
    messages,
    reviews,
    samples,
    sequences,
    status,
    tasks,
    traces,
    trail,
    withdrawals,
)

app_name = "api"
urlpatterns = [
    path("v1/messages", ingest.MessagesView.as_view(), name="messages"),
    path("v1/messages/<uuid:message_id>", messages.MessageView.as_view(), name="message"),
    path("v1/messages/<uuid:message_id>/comments", comments.MessageCommentsView.as_view(), name="message-comments"),
    path("v1/comments", comments.CommentsView.as_view(), name="comments"),
    path("v1/comments/<uuid:comment_id>", comments.CommentView.as_view(), name="comment"),
    path("v1/comments/<uuid:comment_id>/acts", comments.CommentActsView.as_view(), name="comment-acts"),
    path("v1/live", live.LiveView.as_view(), name="live"),
    path("v1/conversations", messages.ConversationsView.as_view(), name="conversations"),
    path("v1/conversations/<uuid:conversation_id>", messages.ConversationView.as_view(), name="conversation"),
    path("v1/conversations/<uuid:conversation_id>/sequence", sequences.SequenceView.as_view(), name="sequence"),
    path("v1/conversations/<uuid:conversation_id>/tasks", tasks.TasksView.as_view(), name="tasks"),
    path(
        "v1/conversations/<uuid:conversation_id>/tree", traces.ConversationTreeView.as_view(), name="conversation-tree"
    ),
    path(
        "v1/conversations/<uuid:conversation_id>/waterfall",
        traces.ConversationWaterfallView.as_view(),
        name="conversation-waterfall",
    ),
    path("v1/traces", traces.TracesView.as_view(), name="traces"),
    path("v1/traces/<uuid:trace_id>", traces.TraceView.as_view(), name="trace"),
    path("v1/traces/<uuid:trace_id>/tree", traces.TraceTreeView.as_view(), name="trace-tree"),
    path("v1/traces/<uuid:trace_id>/waterfall", traces.TraceWaterfallView.as_view(), name="trace-waterfall"),
    path("v1/findings", findings.FindingsView.as_view(), name="findings"),
    path("v1/findings/<uuid:finding_id>", findings.FindingView.as_view(), name="finding"),
    path("v1/findings/<uuid:finding_id>/acts", findings.ActsView.as_view(), name="finding-acts"),
    path("v1/reviews/queues", reviews.QueuesView.as_view(), name="review-queues"),
    path("v1/reviews/queues/<uuid:queue_id>", reviews.QueueView.as_view(), name="review-queue"),
    path("v1/reviews/queues/<uuid:queue_id>/next", reviews.NextView.as_view(), name="review-next"),
    path("v1/reviews/queues/<uuid:queue_id>/items", reviews.ItemsView.as_view(), name="review-items"),
    path("v1/reviews/items/<uuid:item_id>", reviews.ItemView.as_view(), name="review-item"),
    path("v1/reviews/items/<uuid:item_id>/lease", reviews.LeaseView.as_view(), name="review-lease"),
    path("v1/reviews/items/<uuid:item_id>/verdict", reviews.VerdictView.as_view(), name="review-verdict"),
    path("v1/samples", samples.SamplesView.as_view(), name="samples"),
    path("v1/samples/<uuid:sample_id>", samples.SampleView.as_view(), name="sample"),
    path("v1/samples/<uuid:sample_id>/conversations", samples.DrawnView.as_view(), name="sample-conversations"),
    path("v1/trail", trail.TrailView.as_view(), name="trail"),
    path("v1/agents", agents.AgentsView.as_view(), name="agents"),
    path("v1/agents/<uuid:agent_id>", agents.AgentView.as_view(), name="agent"),
    path("v1/deliveries/<uuid:delivery_id>", deliveries.DeliveryView.as_view(), name="delivery"),
    path(
        "v1/deliveries/<uuid:delivery_id>/withdrawal", withdrawals.WithdrawalView.as_view(), name="delivery-withdrawal"
    ),
    path("v1/records/<uuid:record_id>/raw", deliveries.RawView.as_view(), name="raw"),
    path("v1/exports", exports.ExportsView.as_view(), name="exports"),
    path("v1/exports/<uuid:export_id>", exports.ExportView.as_view(), name="export"),
    path("v1/exports/<uuid:export_id>/file", exports.ExportFileView.as_view(), name="export-file"),
    path("v1/decode", decoding.DecodeView.as_view(), name="decode"),
    path("v1/encode", decoding.EncodeView.as_view(), name="encode"),
    path("v1/limits", status.LimitsView.as_view(), name="limits"),
    path("docs/", manual.ManualView.as_view(), name="docs"),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    re_path("", status.NothingView.as_view(), name="nothing"),
]
