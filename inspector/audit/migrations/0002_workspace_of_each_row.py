from django.db import migrations, models

MODELS = ('findingact', 'sampledconversation')


class Migration(migrations.Migration):
    dependencies = [('audit', '0001_squashed_0011_fewer_checks_and_indexes'), ('accounts', '0001_squashed_0012_indexes_sealed')]

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
