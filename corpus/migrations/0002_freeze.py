from django.db import migrations

# An instrument that somebody has sat is frozen: neither its text nor its stimuli may change under the answers.
FREEZE = """
CREATE FUNCTION corpus_instrument_freeze() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM corpus_sitting WHERE instrument_id = OLD.id) THEN
        RAISE EXCEPTION 'instrument % is frozen: it has sittings', OLD.id
            USING ERRCODE = 'restrict_violation', CONSTRAINT = 'instrument_frozen';
    END IF;
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER instrument_freeze BEFORE UPDATE OR DELETE ON corpus_instrument
    FOR EACH ROW EXECUTE FUNCTION corpus_instrument_freeze();

CREATE FUNCTION corpus_stimulus_freeze() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    touched bigint[];
BEGIN
    touched := CASE TG_OP
        WHEN 'INSERT' THEN ARRAY[NEW.instrument_id]
        WHEN 'DELETE' THEN ARRAY[OLD.instrument_id]
        ELSE ARRAY[OLD.instrument_id, NEW.instrument_id]
    END;
    IF EXISTS (SELECT 1 FROM corpus_sitting WHERE instrument_id = ANY(touched)) THEN
        RAISE EXCEPTION 'instrument % is frozen: it has sittings', touched[1]
            USING ERRCODE = 'restrict_violation', CONSTRAINT = 'instrument_frozen';
    END IF;
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER stimulus_freeze BEFORE INSERT OR UPDATE OR DELETE ON corpus_stimulus
    FOR EACH ROW EXECUTE FUNCTION corpus_stimulus_freeze();
"""

THAW = """
DROP TRIGGER stimulus_freeze ON corpus_stimulus;
DROP FUNCTION corpus_stimulus_freeze();
DROP TRIGGER instrument_freeze ON corpus_instrument;
DROP FUNCTION corpus_instrument_freeze();
"""


class Migration(migrations.Migration):
    dependencies = [("corpus", "0001_initial")]
    operations = [migrations.RunSQL(FREEZE, THAW)]
