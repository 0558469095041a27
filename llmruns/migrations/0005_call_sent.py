from typing import Any

from django.db import migrations, models


def never_sent(apps: Any, schema_editor: Any) -> None:
    """Calls that failed before there was a connection: until now only the words of the failure said so."""
    apps.get_model("llmruns", "Call").objects.filter(
        state="failed", kind="connection", http_status=None, detail__startswith="ConnectError"
    ).update(sent=False)


class Migration(migrations.Migration):
    dependencies = [("llmruns", "0004_shared_tokens")]

    operations = [
        migrations.AddField(model_name="call", name="sent", field=models.BooleanField(default=True)),
        migrations.RunPython(never_sent, migrations.RunPython.noop),
    ]
