from django.db import migrations, models

from inspector.schema import fill_workspace
from inspector.trail.row_security import renew_policy

# Each with its key, and the table and the column by which a row knows its workspace.
FILLED = {
    'exchange': ('id', 'threads_conversation', 'conversation_id'),
    'fact': ('id', 'threads_conversation', 'conversation_id'),
    'openingtrial': ('message_id', 'threads_message', 'message_id'),
    'read': ('id', 'threads_conversation', 'conversation_id'),
}


def fill(apps, schema_editor):
    for model, (pk, parent, reference) in FILLED.items():
        fill_workspace(f'threads_{model}', pk=pk, parent=parent, reference=reference)
        # It refers to no other table any more.
        renew_policy(f'threads_{model}')


class Migration(migrations.Migration):
    # It fills piece by piece, and builds an index beside those who write. All of it may be done again.
    atomic = False

    dependencies = [('threads', '0044_workspace_of_each_row')]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunPython(fill, migrations.RunPython.noop),
                migrations.RunSQL(
                    [
                        'ALTER TABLE threads_block DROP CONSTRAINT IF EXISTS block_of_workspace_once',
                        'DROP INDEX CONCURRENTLY IF EXISTS block_of_workspace_once',
                        'CREATE UNIQUE INDEX CONCURRENTLY block_of_workspace_once'
                        ' ON threads_block (conversation_id, border, workspace_id)',
                        'ALTER TABLE threads_block ADD CONSTRAINT block_of_workspace_once'
                        ' UNIQUE USING INDEX block_of_workspace_once',
                        'ALTER TABLE threads_block DROP CONSTRAINT IF EXISTS block_once',
                    ],
                    [
                        'ALTER TABLE threads_block ADD CONSTRAINT block_once UNIQUE (conversation_id, border)',
                        'ALTER TABLE threads_block DROP CONSTRAINT block_of_workspace_once',
                    ],
                ),
            ],
            [
                *(
                    migrations.AlterField(
                        model,
                        'workspace',
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            on_delete=models.CASCADE,
                            related_name='+',
                            to='accounts.workspace',
                        ),
                    )
                    for model in FILLED
                ),
                migrations.RemoveConstraint('block', 'block_once'),
                migrations.AddConstraint(
                    'block',
                    models.UniqueConstraint(
                        fields=['conversation', 'border', 'workspace'], name='block_of_workspace_once'
                    ),
                ),
            ],
        )
    ]
