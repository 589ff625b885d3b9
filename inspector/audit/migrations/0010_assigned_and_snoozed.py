"""Findings are assigned to people and snoozed; made while others write."""

import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('accounts', '0005_archived_workspaces'),
        ('audit', '0009_verdict_labels'),
        ('intake', '0012_delivery_warnings'),
        ('threads', '0031_asked_back'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='finding',
            name='assignee',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='finding',
            name='snoozed_until',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='findingact',
            name='assignee',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='findingact',
            name='kind',
            field=models.CharField(choices=[('judged', 'Judged'), ('assigned', 'Assigned'), ('snoozed', 'Snoozed')], db_default='judged', default='judged', max_length=8),
        ),
        migrations.AddField(
            model_name='findingact',
            name='until',
            field=models.DateTimeField(null=True),
        ),
        AddIndexConcurrently(
            model_name='finding',
            index=models.Index(condition=models.Q(('assignee__isnull', False)), fields=['workspace', 'assignee', '-at', '-id'], name='finding_assigned'),
        ),
    ]
