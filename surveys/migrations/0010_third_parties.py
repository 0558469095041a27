from django.db import migrations

# What people agreed to before it was written down with them.
WRITTEN = """
UPDATE corpus_respondent SET third_parties = TRUE
FROM surveys_participant AS person
JOIN surveys_consent AS consent ON consent.participant_id = person.id
JOIN surveys_consentdocument AS document ON document.id = consent.document_id
WHERE person.respondent_id = corpus_respondent.id AND document.purpose = 'third_parties'
"""


class Migration(migrations.Migration):
    dependencies = [("surveys", "0009_standing_before"), ("corpus", "0008_third_parties")]

    operations = [migrations.RunSQL(WRITTEN, migrations.RunSQL.noop)]
