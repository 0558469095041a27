from django.db import migrations

# A judgement is a fact: it is retracted, never rewritten or deleted. Its reason may be blanked, because it may quote an
# answer whose author withdraws it. A closed round takes no more: whoever closes it waits for those that are being
# written, and whoever comes later finds it closed.
KEPT = """
CREATE FUNCTION scoring_judgement_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR (NEW.round_id, NEW.answer_id, NEW.criterion_id, NEW.judge_id, NEW.value, NEW.not_attempt,
        NEW.made_at, NEW.shared_from_id) IS DISTINCT FROM (OLD.round_id, OLD.answer_id, OLD.criterion_id, OLD.judge_id,
        OLD.value, OLD.not_attempt, OLD.made_at, OLD.shared_from_id)
        OR (OLD.retracted_at IS NOT NULL AND NEW.retracted_at IS DISTINCT FROM OLD.retracted_at) THEN
        RAISE EXCEPTION 'judgement % is kept as it was made', OLD.id
            USING ERRCODE = 'restrict_violation', CONSTRAINT = 'judgement_kept';
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION scoring_judgement_round_open() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ended timestamptz;
BEGIN
    SELECT closed_at INTO ended FROM scoring_round WHERE id = NEW.round_id FOR KEY SHARE;
    IF ended IS NOT NULL THEN
        RAISE EXCEPTION 'round % is closed', NEW.round_id
            USING ERRCODE = 'restrict_violation', CONSTRAINT = 'judgement_of_open_round';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER judgement_kept BEFORE UPDATE OR DELETE ON scoring_judgement
    FOR EACH ROW EXECUTE FUNCTION scoring_judgement_kept();
CREATE TRIGGER judgement_of_open_round BEFORE INSERT ON scoring_judgement
    FOR EACH ROW EXECUTE FUNCTION scoring_judgement_round_open();
"""
FREE = """
DROP TRIGGER judgement_kept ON scoring_judgement;
DROP TRIGGER judgement_of_open_round ON scoring_judgement;
DROP FUNCTION scoring_judgement_kept();
DROP FUNCTION scoring_judgement_round_open();
"""


class Migration(migrations.Migration):
    dependencies = [("scoring", "0002_sharing")]

    operations = [migrations.RunSQL(KEPT, FREE)]
