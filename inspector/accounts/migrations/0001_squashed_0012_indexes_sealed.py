"""What a new database gets at once; one that is there came to the same by the migrations that this replaces."""

from django.conf import settings
from django.contrib.auth.models import UserManager
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.utils import timezone

from inspector.accounts.models import make_id
from inspector.schema import FinishTables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('accounts', name)
        for name in (
            '0001_initial', '0002_api_key_agents', '0003_invitations', '0004_sessions',
            '0005_archived_workspaces', '0006_requests_of_a_key', '0007_sign_in_pace', '0008_second_factors',
            '0009_reads_of_keys', '0010_seals_records', '0011_two_for_keys', '0012_indexes_sealed',
        )
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[UnicodeUsernameValidator()], verbose_name='username')),
                ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=timezone.now, verbose_name='date joined')),
                ('time_zone', models.CharField(default='UTC', max_length=64)),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'verbose_name': 'user',
                'verbose_name_plural': 'users',
                'abstract': False,
            },
            managers=[
                ('objects', UserManager()),
            ],
        ),
        migrations.CreateModel(
            name='Workspace',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('slug', models.SlugField(max_length=64, unique=True)),
                ('name', models.CharField(max_length=120)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('archived_at', models.DateTimeField(blank=True, null=True)),
                ('requires_second_factor', models.BooleanField(default=False)),
                ('seals_records', models.BooleanField(default=False)),
                ('releases_keys_by_two', models.BooleanField(default=False)),
                ('indexes_sealed', models.BooleanField(default=True)),
            ],
        ),
        migrations.CreateModel(
            name='Channel',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, related_name='channels', to='accounts.workspace')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'name'), name='channel_name_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=120)),
                ('prefix', models.CharField(max_length=16, unique=True)),
                ('digest', models.BinaryField(max_length=32)),
                ('scopes', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=models.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('channel', models.ForeignKey(blank=True, null=True, on_delete=models.PROTECT, to='accounts.channel')),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, related_name='api_keys', to='accounts.workspace')),
                ('agents', ArrayField(base_field=models.TextField(), blank=True, default=list, size=None)),
                ('requests_at', models.DateTimeField(blank=True, null=True)),
                ('requests_left', models.FloatField(blank=True, null=True)),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', '-created_at'], name='api_key_by_workspace'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ApiKeyReads',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('what', models.CharField(max_length=40)),
                ('hour', models.DateTimeField()),
                ('count', models.BigIntegerField()),
                ('key', models.ForeignKey(on_delete=models.CASCADE, to='accounts.apikey')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('key', 'what', 'hour'), name='api_key_reads_of_an_hour'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=150)),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('auditor', 'Auditor'), ('viewer', 'Viewer')], max_length=16)),
                ('digest', models.BinaryField(max_length=32, unique=True)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('expires_at', models.DateTimeField()),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, related_name='invitations', to='accounts.workspace')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'name'), name='invitation_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('auditor', 'Auditor'), ('viewer', 'Viewer')], max_length=16)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('user', models.ForeignKey(on_delete=models.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, related_name='memberships', to='accounts.workspace')),
                ('is_by_group', models.BooleanField(default=False)),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'user'), name='membership_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Session',
            fields=[
                ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                ('session_data', models.TextField(verbose_name='session data')),
                ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                ('public_id', models.UUIDField(default=make_id, editable=False)),
                ('started_at', models.DateTimeField(null=True)),
                ('last_used_at', models.DateTimeField(null=True)),
                ('address', models.TextField(blank=True)),
                ('program', models.TextField(blank=True)),
                ('user', models.ForeignKey(null=True, on_delete=models.CASCADE, related_name='sessions', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'session',
                'verbose_name_plural': 'sessions',
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='SignInLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.BinaryField(max_length=32, unique=True)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('expires_at', models.DateTimeField()),
                ('user', models.ForeignKey(on_delete=models.CASCADE, to=settings.AUTH_USER_MODEL)),
                ('is_break_glass', models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name='SignInPace',
            fields=[
                ('address', models.CharField(max_length=45, primary_key=True, serialize=False)),
                ('tries_left', models.FloatField()),
                ('tries_at', models.DateTimeField()),
            ],
        ),
        migrations.AddField('workspace', 'members', models.ManyToManyField(related_name='workspaces', through='accounts.Membership', to=settings.AUTH_USER_MODEL)),
        FinishTables(),
    ]
