"""Two indexes of messages without the source: within one instant of a conversation it hardly ever differs."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0006_requests_of_a_key'),
        ('intake', '0013_fewer_checks_and_indexes'),
        ('threads', '0037_packed_bodies'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='message',
            name='message_in_order',
        ),
        migrations.RemoveIndex(
            model_name='message',
            name='message_in_sight',
        ),
        migrations.AddIndex(
            model_name='message',
            index=models.Index(fields=['conversation', 'order_time', 'order_index'], name='message_in_time'),
        ),
        migrations.AddIndex(
            model_name='message',
            index=models.Index(condition=models.Q(models.Q(('sights', 1), _negated=True), models.Q(('parent__isnull', True), ('parent_key__isnull', False)), ('parent_why__contains', 'circle'), ('parent_why__startswith', 'it names itself'), _connector='OR'), fields=['conversation', 'order_time', 'order_index'], name='message_to_look_at'),
        ),
    ]
