from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("corpus", "0007_instrument_revision")]

    operations = [
        migrations.AddField(
            model_name="respondent",
            name="third_parties",
            field=models.BooleanField(default=False),
        ),
    ]
