from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [('exports', '0001_squashed_0005_changed')]

    operations = [
        migrations.AddField('piece', 'object_key', models.TextField(blank=True, default='', db_default='')),
        migrations.AddField('piece', 'object_bytes', models.BigIntegerField(null=True)),
        migrations.AddField('piece', 'object_sha256', models.BinaryField(max_length=32, null=True)),
    ]
