from django.db import migrations

# The state is written down: an instrument is frozen by its first sitting or by hand. The stimulus trigger reads it under a
# lock, so that an edit and a first sitting at the same moment come one after the other.
FREEZE = """
CREATE OR REPLACE FUNCTION corpus_instrument_freeze() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state = 'frozen' THEN
        RAISE EXCEPTION 'instrument % is frozen', OLD.id
            USING ERRCODE = 'restrict_violation', CONSTRAINT = 'instrument_frozen';
    END IF;
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION corpus_stimulus_freeze() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    touched bigint[];
    known text;
BEGIN
    touched := CASE TG_OP
        WHEN 'INSERT' THEN ARRAY[NEW.instrument_id]
        WHEN 'DELETE' THEN ARRAY[OLD.instrument_id]
        ELSE ARRAY[OLD.instrument_id, NEW.instrument_id]
    END;
    FOR known IN SELECT state FROM corpus_instrument WHERE id = ANY(touched) FOR SHARE LOOP
        IF known = 'frozen' THEN
            RAISE EXCEPTION 'instrument % is frozen', touched[1]
                USING ERRCODE = 'restrict_violation', CONSTRAINT = 'instrument_frozen';
        END IF;
    END LOOP;
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION corpus_sitting_needs_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM corpus_instrument WHERE id = NEW.instrument_id AND state = 'frozen') THEN
        RAISE EXCEPTION 'instrument % is a draft: nobody can sit it', NEW.instrument_id
            USING ERRCODE = 'restrict_violation', CONSTRAINT = 'sitting_of_frozen_instrument';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER sitting_needs_frozen BEFORE INSERT ON corpus_sitting
    FOR EACH ROW EXECUTE FUNCTION corpus_sitting_needs_frozen();
"""

KNOWN = """
ALTER TABLE corpus_instrument DISABLE TRIGGER instrument_freeze;
UPDATE corpus_instrument SET state = 'frozen' WHERE id IN (SELECT instrument_id FROM corpus_sitting);
ALTER TABLE corpus_instrument ENABLE TRIGGER instrument_freeze;
"""

THAW = """
DROP TRIGGER sitting_needs_frozen ON corpus_sitting;
DROP FUNCTION corpus_sitting_needs_frozen();
"""


class Migration(migrations.Migration):
    dependencies = [("corpus", "0003_freezing")]
    operations = [migrations.RunSQL(KNOWN, migrations.RunSQL.noop), migrations.RunSQL(FREEZE, THAW)]
