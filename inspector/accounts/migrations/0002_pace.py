"""One table for all limits a minute: that of sign-ins, under its name. The columns in which keys were counted are left
to the processes of the version before, which read and write them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_squashed_0012_indexes_sealed")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel("SignInPace"),
                migrations.CreateModel(
                    name="Pace",
                    fields=[
                        (
                            "name",
                            models.CharField(db_column="address", max_length=45, primary_key=True, serialize=False),
                        ),
                        ("left", models.FloatField(db_column="tries_left")),
                        ("at", models.DateTimeField(db_column="tries_at")),
                    ],
                    options={"db_table": "accounts_signinpace"},
                ),
                migrations.RemoveField("apikey", "requests_left"),
                migrations.RemoveField("apikey", "requests_at"),
            ],
        ),
    ]
