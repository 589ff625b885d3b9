from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("intake", "0010_idempotency_of_a_key"),
    ]

    operations = [
        AddIndexConcurrently(
            "delivery",
            models.Index(
                fields=["workspace"],
                name="delivery_waiting",
                condition=models.Q(state__in=["staged", "receiving", "framing"]),
            ),
        ),
    ]
