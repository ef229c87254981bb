import uuid

from django.db import migrations


def add_parts(apps, schema_editor):
    """Mosaics built before had one part, whose canvas is the mosaic's."""
    Mosaic = apps.get_model("mosaics", "Mosaic")
    MosaicPart = apps.get_model("mosaics", "MosaicPart")
    MosaicFrame = apps.get_model("mosaics", "MosaicFrame")
    for mosaic in Mosaic.objects.filter(canvas__isnull=False).iterator():
        MosaicPart.objects.create(
            id=uuid.uuid5(mosaic.pk, "part 0"),
            mosaic=mosaic,
            index=0,
            canvas_id=mosaic.canvas_id,
            anchor_index=mosaic.anchor_index,
            registered_count=mosaic.registered_count,
        )
    MosaicFrame.objects.filter(status="registered").update(part=0)


class Migration(migrations.Migration):

    dependencies = [
        ('mosaics', '0002_parts_and_followups'),
    ]

    operations = [
        migrations.RunPython(add_parts, migrations.RunPython.noop),
    ]
