"""The told bodies of messages are packed texts from now on; those that are stored stay as long as they were.

The conversion writes the table anew and holds it meanwhile, as does every change of a column's type.
"""

from django.db import migrations

import inspector.threads.models.packed_text

# Form 0 of a packed text: UTF-8 as it is.
_FORWARDS = """
ALTER TABLE threads_message ALTER COLUMN body DROP DEFAULT,
    ALTER COLUMN body TYPE bytea
        USING CASE WHEN body = '' THEN ''::bytea ELSE '\\x00'::bytea || convert_to(body, 'UTF8') END
"""


class Migration(migrations.Migration):

    dependencies = [("threads", "0036_changed_blocks")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(_FORWARDS)],
            state_operations=[
                migrations.AlterField(
                    model_name="message",
                    name="body",
                    field=inspector.threads.models.packed_text.PackedTextField(),
                ),
            ],
        ),
    ]
