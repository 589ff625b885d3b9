"""Exchanges say what appearances said beside them: what an agent sent, each message once.

What is stored of a conversation is carried over: of a sender's exchanges in a dialect one takes all that it sent. So
the sums are as they were; where the conversation is resolved again, each exchange has its own.
"""

from __future__ import annotations

import json
from typing import Any

from django.db import migrations, models

_CARRY = """
UPDATE threads_exchange AS row SET sent = held.sent, failed = held.failures
  FROM (SELECT DISTINCT ON (conversation_id, sender_id, dialect) id, conversation_id, sender_id, dialect
          FROM threads_exchange WHERE sender_id IS NOT NULL
         ORDER BY conversation_id, sender_id, dialect, id) AS first
  JOIN threads_appearance AS held
    ON held.conversation_id = first.conversation_id AND held.agent_id = first.sender_id
   AND held.dialect = first.dialect
 WHERE row.id = first.id
"""
# Where the summary of a block has its appearances; its exchanges come behind them.
_AT = 13


def carry_blocks(apps: Any, editor: Any) -> None:
    """The same for the rows that blocks count, which are kept as JSON text."""
    blocks = apps.get_model("threads", "Block").objects.exclude(summary="")
    for block in blocks.only("pk", "summary").iterator(chunk_size=200):
        summary = json.loads(block.summary)
        appearances = summary.pop(_AT) if len(summary) > _AT else []
        left = {(agent, dialect): (sent, failed) for agent, dialect, sent, _, failed, *_ in appearances}
        if len(summary) > _AT:
            summary[_AT] = [
                [sender, receiver, is_broadcast, dialect, messages, failures, *left.pop((sender, dialect), (0, 0)), *at]
                for sender, receiver, is_broadcast, dialect, messages, failures, *at in summary[_AT]
            ]
        blocks.filter(pk=block.pk).update(summary=json.dumps(summary, separators=(",", ":")))


class Migration(migrations.Migration):

    dependencies = [("threads", "0037_packed_bodies")]

    operations = [
        migrations.AddField("exchange", "sent", models.IntegerField(default=0)),
        migrations.AddField("exchange", "failed", models.IntegerField(default=0)),
        migrations.RunSQL(_CARRY),
        migrations.RunPython(carry_blocks),
        migrations.DeleteModel("appearance"),
        migrations.RemoveIndex("exchange", "exchange_by_pair"),
        migrations.RemoveIndex("exchange", "exchange_by_receiver"),
        migrations.RemoveField("exchange", "workspace"),
        migrations.RemoveField("exchange", "channel"),
        migrations.AlterField("exchange", "messages", models.IntegerField()),
        migrations.AlterField("exchange", "failures", models.IntegerField()),
        migrations.AddIndex("exchange", models.Index(fields=["sender"], name="exchange_of_sender")),
        migrations.AddIndex("exchange", models.Index(fields=["receiver"], name="exchange_of_receiver")),
    ]
