from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0011_two_for_keys'),
    ]

    operations = [
        migrations.AddField(
            model_name='workspace',
            name='indexes_sealed',
            field=models.BooleanField(default=True),
        ),
    ]
