from django.db import migrations, models

from inspector.schema import fill_workspace
from inspector.trail.row_security import renew_policy

# Each with the table and the column by which a row knows its workspace.
FILLED = {
    'findingact': ('audit_finding', 'finding_id'),
    'sampledconversation': ('audit_auditsample', 'sample_id'),
}


def fill(apps, schema_editor):
    for model, (parent, reference) in FILLED.items():
        fill_workspace(f'audit_{model}', pk='id', parent=parent, reference=reference)
        # It refers to no other table any more.
        renew_policy(f'audit_{model}')


class Migration(migrations.Migration):
    # It fills piece by piece, beside those who write, and may be done again.
    atomic = False

    dependencies = [('audit', '0002_workspace_of_each_row')]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunPython(fill, migrations.RunPython.noop)],
            [
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
            ],
        )
    ]
