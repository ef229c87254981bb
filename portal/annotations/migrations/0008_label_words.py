"""Labels get their keys, and revisions the name that their label has now."""

from django.db import migrations, models
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Lower


def to_words(apps, schema_editor):
    """Names that differ in case alone are told apart by a number."""
    LabelSet = apps.get_model("annotations", "LabelSet")
    Label = apps.get_model("annotations", "Label")
    for label_set in LabelSet.objects.all():
        taken = set()
        for place, label in enumerate(
            Label.objects.filter(label_set=label_set).order_by("position", "name", "id")
        ):
            name, number = label.name, 2
            while name.lower() in taken:
                name, number = f"{label.name[:74]} ({number})", number + 1
            taken.add(name.lower())
            key = str(place + 1) if place < 9 else ""
            Label.objects.filter(pk=label.pk).update(name=name, key=key)
    names = Label.objects.filter(pk=OuterRef("label_id")).values("name")
    revisions = apps.get_model("annotations", "RoiRevision").objects.exclude(label=None)
    revisions.update(label_name=Subquery(names[:1]))


class Migration(migrations.Migration):
    dependencies = [("annotations", "0007_label_sets")]

    operations = [
        migrations.RunPython(to_words, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name='label',
            constraint=models.UniqueConstraint(models.F('label_set'), Lower('name'), condition=models.Q(('retired_at', None)), name='label_name_unique_in_any_case'),
        ),
    ]
