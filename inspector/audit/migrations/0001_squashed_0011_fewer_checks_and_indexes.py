"""What a new database gets at once; one that is there came to the same by the migrations that this replaces."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.utils import timezone

from inspector.accounts.models import make_id
from inspector.schema import FinishTables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('audit', name)
        for name in (
            '0001_squashed_0006_alerts', '0007_due_since', '0008_open_severity', '0009_verdict_labels',
            '0010_assigned_and_snoozed', '0011_fewer_checks_and_indexes',
        )
    ]

    dependencies = [
        ('accounts', '0001_squashed_0012_indexes_sealed'),
        ('intake', '0001_squashed_0021_sealed_at_rest'),
        ('threads', '0001_squashed_0042_carriers'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Finding',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('part', models.IntegerField()),
                ('rule', models.CharField(max_length=48)),
                ('key', models.BinaryField(max_length=32)),
                ('severity', models.SmallIntegerField(choices=[(0, 'none'), (1, 'info'), (2, 'notice'), (3, 'warning'), (4, 'error')])),
                ('text', models.TextField()),
                ('cites', models.TextField(blank=True)),
                ('span', models.TextField(blank=True)),
                ('related', models.TextField(blank=True)),
                ('sender', models.TextField(blank=True)),
                ('at', models.DateTimeField()),
                ('due_at', models.DateTimeField(null=True)),
                ('state', models.CharField(choices=[('open', 'Open'), ('accepted', 'Accepted'), ('fixed', 'Fixed'), ('false-alarm', 'False alarm')], default='open', max_length=16)),
                ('holds', models.BooleanField(default=True)),
                ('is_suppressed', models.BooleanField(default=False)),
                ('found_at', models.DateTimeField(default=timezone.now)),
                ('ended_at', models.DateTimeField(null=True)),
                ('version', models.CharField(max_length=64)),
                ('channel', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.PROTECT, to='accounts.channel')),
                ('conversation', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='findings', to='threads.conversation')),
                ('record', models.ForeignKey(on_delete=models.CASCADE, related_name='findings', to='intake.record')),
                ('workspace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
                ('due_since', models.DateTimeField(null=True)),
                ('assignee', models.ForeignKey(db_index=False, null=True, on_delete=models.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('snoozed_until', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', 'rule', '-at', '-id'], name='finding_by_rule'),
                    models.Index(condition=models.Q(('holds', True), ('is_suppressed', False), ('state', 'open')), fields=['workspace', '-severity', '-at', '-id'], name='finding_open'),
                    models.Index(condition=models.Q(('assignee__isnull', False)), fields=['workspace', 'assignee', '-at', '-id'], name='finding_assigned'),
                    models.Index(condition=models.Q(('due_at__isnull', False), ('due_since__isnull', True), ('holds', True)), fields=['workspace', 'channel', 'due_at'], name='finding_to_be_due'),
                    models.Index(condition=models.Q(('due_at__isnull', False), ('due_since__isnull', False), ('holds', True)), fields=['workspace', 'channel', 'due_at'], name='finding_due'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('conversation', 'key'), name='finding_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('address', models.TextField()),
                ('severity', models.SmallIntegerField(choices=[(0, 'none'), (1, 'info'), (2, 'notice'), (3, 'warning'), (4, 'error')], default=4)),
                ('rules', ArrayField(base_field=models.CharField(max_length=48), default=list, size=None)),
                ('salt', models.BinaryField(max_length=16)),
                ('secret_digest', models.BinaryField(max_length=32)),
                ('site', models.TextField()),
                ('is_on', models.BooleanField(default=True)),
                ('off_because', models.TextField(blank=True)),
                ('failures', models.IntegerField(default=0)),
                ('failing_since', models.DateTimeField(null=True)),
                ('paused_until', models.DateTimeField(null=True)),
                ('set_at', models.DateTimeField(default=timezone.now)),
                ('set_by', models.ForeignKey(on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.OneToOneField(on_delete=models.CASCADE, related_name='+', to='accounts.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('delivered', 'delivered'), ('failed', 'given up'), ('dropped', 'no longer to be told')], default='waiting', max_length=16)),
                ('answers', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('next_at', models.DateTimeField(null=True)),
                ('finding', models.ForeignKey(null=True, on_delete=models.CASCADE, to='audit.finding')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
                ('webhook', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='audit.webhook')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', '-created_at', '-id'], name='alert_newest'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('webhook', 'finding'), name='alert_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ReviewQueue',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=120)),
                ('about', models.TextField(blank=True)),
                ('reviewers', models.SmallIntegerField(default=1)),
                ('source', models.CharField(choices=[('hand', 'People, by hand'), ('findings', 'Open findings'), ('search', 'A search')], default='hand', max_length=16)),
                ('rules', ArrayField(base_field=models.CharField(max_length=48), default=list, size=None)),
                ('severity', models.SmallIntegerField(choices=[(0, 'none'), (1, 'info'), (2, 'notice'), (3, 'warning'), (4, 'error')], default=0)),
                ('query', models.TextField(blank=True)),
                ('is_standing', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('closed_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', 'source', 'created_at'], name='review_queue_by_source'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('reviewers__in', [1, 2])), name='review_queue_of_one_or_two'),
                    models.UniqueConstraint(condition=models.Q(('is_standing', True)), fields=('workspace',), name='review_queue_standing_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='AuditSample',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('seed', models.CharField(max_length=64)),
                ('stratum', models.CharField(choices=[('dialect', 'Dialect'), ('severity', 'Gravest note'), ('pair', 'Pair of agents'), ('channel', 'Channel')], max_length=16)),
                ('wanted', models.IntegerField()),
                ('since', models.DateTimeField(null=True)),
                ('until', models.DateTimeField(null=True)),
                ('population', models.BigIntegerField()),
                ('drawn', models.IntegerField()),
                ('unsettled', models.BigIntegerField(default=0)),
                ('strata', models.JSONField(default=list)),
                ('digest', models.BinaryField(max_length=32)),
                ('method', models.CharField(max_length=16)),
                ('made_at', models.DateTimeField(default=timezone.now)),
                ('made_by', models.ForeignKey(on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('queue', models.OneToOneField(on_delete=models.CASCADE, related_name='sample', to='audit.reviewqueue')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', '-made_at', '-id'], name='audit_sample_newest'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Binding',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('digest', models.BinaryField(max_length=32)),
                ('messages', models.BigIntegerField()),
                ('manifest', models.BinaryField()),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('checked_digest', models.BinaryField(max_length=32)),
                ('checked_at', models.DateTimeField(default=timezone.now)),
                ('changes', models.TextField(blank=True)),
                ('conversation', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='bindings', to='threads.conversation')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('conversation', 'digest'), name='binding_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Comment',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('part', models.IntegerField()),
                ('start', models.IntegerField()),
                ('end', models.IntegerField()),
                ('quoted', models.BinaryField()),
                ('source_sha256', models.BinaryField(max_length=32)),
                ('english_sha256', models.BinaryField(max_length=32)),
                ('decoder', models.CharField(max_length=32)),
                ('words', models.TextField()),
                ('is_restricted', models.BooleanField(default=False)),
                ('state', models.CharField(choices=[('open', 'Open'), ('resolved', 'Resolved'), ('withdrawn', 'Withdrawn')], default='open', max_length=16)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('author', models.ForeignKey(on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('record', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='comments', to='intake.record')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', 'record', 'part', 'created_at'], name='comment_by_record'),
                    models.Index(fields=['workspace', 'state', '-created_at', '-id'], name='comment_newest'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('end__gt', models.F('start'))), name='comment_has_span'),
                ],
            },
        ),
        migrations.CreateModel(
            name='CommentTurn',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('reply', 'Replied'), ('resolved', 'Resolved'), ('reopened', 'Opened again'), ('withdrawn', 'Withdrew')], max_length=16)),
                ('at', models.DateTimeField(default=timezone.now)),
                ('words', models.TextField(blank=True)),
                ('is_restricted', models.BooleanField(default=False)),
                ('by', models.ForeignKey(on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('comment', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='turns', to='audit.comment')),
                ('of', models.ForeignKey(db_index=False, null=True, on_delete=models.CASCADE, related_name='withdrawals', to='audit.commentturn')),
            ],
            options={
                'ordering': ['at', 'id'],
                'indexes': [
                    models.Index(fields=['comment', 'at', 'id'], name='comment_turn_in_order'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Examination',
            fields=[
                ('conversation', models.OneToOneField(on_delete=models.CASCADE, primary_key=True, serialize=False, to='threads.conversation')),
                ('settled_digest', models.BinaryField(max_length=32, null=True)),
                ('version', models.CharField(max_length=64)),
                ('at', models.DateTimeField(default=timezone.now)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['version', 'conversation'], name='examination_version'),
                ],
            },
        ),
        migrations.CreateModel(
            name='FindingAct',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('state', models.CharField(choices=[('open', 'Open'), ('accepted', 'Accepted'), ('fixed', 'Fixed'), ('false-alarm', 'False alarm')], max_length=16)),
                ('at', models.DateTimeField(default=timezone.now)),
                ('reason', models.TextField(blank=True)),
                ('by', models.ForeignKey(on_delete=models.PROTECT, to=settings.AUTH_USER_MODEL)),
                ('finding', models.ForeignKey(on_delete=models.CASCADE, related_name='acts', to='audit.finding')),
                ('assignee', models.ForeignKey(db_index=False, null=True, on_delete=models.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('kind', models.CharField(choices=[('judged', 'Judged'), ('assigned', 'Assigned'), ('snoozed', 'Snoozed')], db_default='judged', default='judged', max_length=8)),
                ('until', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['at', 'id'],
            },
        ),
        migrations.CreateModel(
            name='Rubric',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('number', models.IntegerField()),
                ('criteria', ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('at', models.DateTimeField(default=timezone.now)),
                ('by', models.ForeignKey(null=True, on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('queue', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='rubrics', to='audit.reviewqueue')),
            ],
            options={
                'ordering': ['-number'],
                'constraints': [
                    models.UniqueConstraint(fields=('queue', 'number'), name='rubric_version_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ReviewItem',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('second', 'Needs a second reviewer'), ('disputed', 'Disputed'), ('settled', 'Signed off'), ('removed', 'Taken out')], default='waiting', max_length=16)),
                ('needed', models.SmallIntegerField(default=1)),
                ('why', models.TextField(blank=True)),
                ('added_at', models.DateTimeField(default=timezone.now)),
                ('held_until', models.DateTimeField(null=True)),
                ('verdict', models.CharField(blank=True, choices=[('fine', 'No issues'), ('concern', 'Concern'), ('violation', 'Violation')], max_length=16)),
                ('ended_at', models.DateTimeField(null=True)),
                ('added_by', models.ForeignKey(null=True, on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('conversation', models.ForeignKey(on_delete=models.CASCADE, related_name='review_items', to='threads.conversation')),
                ('holder', models.ForeignKey(db_index=False, null=True, on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
                ('queue', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='items', to='audit.reviewqueue')),
                ('rubric', models.ForeignKey(null=True, on_delete=models.RESTRICT, related_name='+', to='audit.rubric')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', 'queue', 'state', 'added_at', 'id'], name='review_item_in_queue'),
                    models.Index(condition=models.Q(('holder__isnull', False)), fields=['workspace', 'holder'], name='review_item_held'),
                ],
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('state__in', ['waiting', 'second', 'disputed'])), fields=('queue', 'conversation'), name='review_item_open_once'),
                    models.CheckConstraint(condition=models.Q(models.Q(('held_until__isnull', True), ('holder__isnull', True)), models.Q(('held_until__isnull', False), ('holder__isnull', False)), _connector='OR'), name='review_lease_whole'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Review',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('verdict', models.CharField(choices=[('fine', 'No issues'), ('concern', 'Concern'), ('violation', 'Violation')], max_length=16)),
                ('comment', models.TextField(blank=True, max_length=10000)),
                ('seen_digest', models.BinaryField(max_length=32)),
                ('seen_messages', models.BigIntegerField()),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('conversation', models.ForeignKey(on_delete=models.CASCADE, related_name='reviews', to='threads.conversation')),
                ('reviewer', models.ForeignKey(on_delete=models.PROTECT, to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, to='accounts.workspace')),
                ('answers', ArrayField(base_field=models.CharField(choices=[('pass', 'Pass'), ('fail', 'Fail'), ('n/a', 'Not applicable')], max_length=8), default=list, size=None)),
                ('is_adjudication', models.BooleanField(default=False)),
                ('withdrawn_at', models.DateTimeField(null=True)),
                ('binding', models.ForeignKey(null=True, on_delete=models.RESTRICT, related_name='reviews', to='audit.binding')),
                ('item', models.ForeignKey(on_delete=models.CASCADE, related_name='reviews', to='audit.reviewitem')),
                ('rubric', models.ForeignKey(null=True, on_delete=models.RESTRICT, related_name='+', to='audit.rubric')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['conversation', '-created_at'], name='review_newest'),
                ],
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('withdrawn_at__isnull', True)), fields=('item', 'reviewer'), name='review_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='RuleChange',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('rule', models.CharField(max_length=48)),
                ('is_on', models.BooleanField(default=True)),
                ('severity', models.SmallIntegerField(choices=[(0, 'none'), (1, 'info'), (2, 'notice'), (3, 'warning'), (4, 'error')], null=True)),
                ('at', models.DateTimeField(default=timezone.now)),
                ('reason', models.TextField()),
                ('by', models.ForeignKey(on_delete=models.PROTECT, to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', 'rule', '-at'], name='rule_change_latest'),
                ],
            },
        ),
        migrations.CreateModel(
            name='SampledConversation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('place', models.IntegerField()),
                ('stratum', models.TextField()),
                ('identity', models.BinaryField(max_length=32)),
                ('conversation', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='+', to='threads.conversation')),
                ('sample', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='conversations', to='audit.auditsample')),
            ],
            options={
                'ordering': ['place'],
                'constraints': [
                    models.UniqueConstraint(fields=('sample', 'place'), name='sampled_place_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Suppression',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('rule', models.CharField(max_length=48)),
                ('sender', models.TextField(blank=True)),
                ('reason', models.TextField()),
                ('at', models.DateTimeField(default=timezone.now)),
                ('lifted_at', models.DateTimeField(null=True)),
                ('by', models.ForeignKey(on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('conversation', models.ForeignKey(null=True, on_delete=models.CASCADE, to='threads.conversation')),
                ('lifted_by', models.ForeignKey(null=True, on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('lifted_at', None)), fields=['workspace', 'rule'], name='suppression_live'),
                ],
            },
        ),
        FinishTables(),
    ]
