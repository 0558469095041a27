from django.db import migrations

# Consents given before the hash was kept beside each of them.
FILL = """
UPDATE surveys_consent SET sha256 = document.sha256
FROM surveys_consentdocument AS document WHERE document.id = document_id AND surveys_consent.sha256 = '';
"""


class Migration(migrations.Migration):
    dependencies = [("surveys", "0002_fielding")]
    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]
