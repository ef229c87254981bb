"""Transfers in pieces: states, announced hashes, parts of one file."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def mark_stored(apps: Any, schema_editor: Any) -> None:
    """Every transfer that has an asset is complete."""
    apps.get_model("archive", "Upload").objects.exclude(asset=None).update(state="stored")


class Migration(migrations.Migration):

    dependencies = [
        ('archive', '0006_scaled_by_hand'),
    ]

    operations = [
        migrations.AddField(
            model_name='upload',
            name='error_code',
            field=models.CharField(blank=True, max_length=60),
        ),
        migrations.AddField(
            model_name='upload',
            name='error_message',
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name='upload',
            name='is_part',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='upload',
            name='name',
            field=models.CharField(blank=True, help_text='The title it shall have', max_length=200),
        ),
        migrations.AddField(
            model_name='upload',
            name='part_number',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='upload',
            name='sha256',
            field=models.CharField(blank=True, help_text='Announced, then as measured', max_length=64),
        ),
        migrations.AddField(
            model_name='upload',
            name='state',
            field=models.CharField(choices=[('receiving', 'Receiving'), ('checking', 'Checking'), ('stored', 'Stored'), ('refused', 'Refused')], default='receiving', max_length=10),
        ),
        migrations.AddField(
            model_name='upload',
            name='whole',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='archive.upload'),
        ),
        migrations.AlterField(
            model_name='upload',
            name='received_bytes',
            field=models.BigIntegerField(default=0, help_text='Of these it is certain'),
        ),
        migrations.RunPython(mark_stored, migrations.RunPython.noop, elidable=True),
    ]
