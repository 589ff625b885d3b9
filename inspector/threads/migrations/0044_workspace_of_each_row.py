from django.db import migrations, models

MODELS = ('exchange', 'fact', 'openingtrial', 'read')


class Migration(migrations.Migration):
    dependencies = [('threads', '0043_call_key'), ('accounts', '0001_squashed_0012_indexes_sealed')]

    operations = [
        migrations.AddField(
            model,
            'workspace',
            models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=models.CASCADE,
                related_name='+',
                to='accounts.workspace',
            ),
        )
        for model in MODELS
    ]
