from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("exports", "0004_findings")]

    operations = [
        migrations.AddField(model_name="export", name="changed", field=models.BigIntegerField(db_default=0, default=0)),
    ]
