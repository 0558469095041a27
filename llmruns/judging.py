"""The life of a judging: launched, paused, resumed, cancelled. What happens to a single call is in judge_calls.py."""

import uuid
from decimal import Decimal
from functools import partial

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from llmruns.addresses import base_url_check
from llmruns.calls import calls_sweep
from llmruns.credentials import key_of
from llmruns.estimate import cap_obstacle
from llmruns.judge_calls import GOING, judging_settle
from llmruns.judge_choosing import MAX_ANSWERS, Chosen, Selection, chosen
from llmruns.judge_prompts import codes_missing, judge_prompt_ensure, judged_criteria
from llmruns.models import Currency, Judging, JudgingItem, ModelConfig, ModelJudge, Prompt, Provider
from llmruns.pricing import LARGEST
from llmruns.sending import judging_send
from scoring.models import Judge, Rubric
from scoring.services import automatic_round_create, round_close
from studies.models import Study, User
from studies.services import audit_record

MAX_ATTEMPTS, LONGEST_DEADLINE = 50, 86_400
BATCH = 5_000
RESUMABLE = [Judging.State.PAUSED, Judging.State.INCOMPLETE]


class JudgingRefusedError(Exception):
    """`reason` is one of: bounds, foreign, replayed (the configuration sends nothing), criteria (the prompt does not
    name all of them, `detail` says which), nothing, many, cap (it is no amount, or has no currency), or a reason of
    pricing for which a cap is impossible, as `uncappable` with it in `detail`."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason} {detail}".strip())
        self.reason = reason
        self.detail = detail


class JudgingChangedError(Exception):
    """Other answers would be judged now than those that were shown: `found`."""

    def __init__(self, found: Chosen) -> None:
        super().__init__(len(found.answers))
        self.found = found


class JudgingNotResumableError(Exception):
    """It is neither paused nor incomplete."""


def judging_launch(
    *,
    study: Study,
    config: ModelConfig,
    rubric: Rubric,
    selection: Selection,
    actor: User | None,
    prompt: Prompt | None = None,
    title: str = "",
    max_attempts: int = 10,
    deadline: int = 900,
    cap: Decimal | None = None,
    currency: str = "",
    launch_key: uuid.UUID | None = None,
    seen: str | None = None,
) -> Judging:
    """Fix the answers and put the work into the queue. The same launch_key launches once.

    `prompt`: None for the study's newest of this rubric and language. `seen`: the digest of the answers that the person
    was shown. The study is locked, as by whoever withdraws a participant: no text is copied meanwhile.

    Raises JudgingRefusedError, JudgingChangedError, keys.KeyMissingError, addresses.AddressRefusedError,
    prompts.PromptRefusedError.
    """
    if not (1 <= max_attempts <= MAX_ATTEMPTS and 1 <= deadline <= LONGEST_DEADLINE):
        raise JudgingRefusedError("bounds")
    studies = {config.study_id, selection.instrument.study_id, prompt.study_id if prompt else study.pk}
    if studies != {study.pk} or (prompt and prompt.purpose != Prompt.Purpose.JUDGE):
        raise JudgingRefusedError("foreign")
    if config.provider == Provider.REPLAYED:
        raise JudgingRefusedError("replayed")
    key_of(config)
    if config.provider != Provider.SIMULATED:
        base_url_check(config.base_url, allow_private=settings.ALLOW_PRIVATE_ENDPOINTS)
    try:
        with transaction.atomic():
            Study.objects.select_for_update(no_key=True).get(pk=study.pk)
            known = judging_launched(study, launch_key)
            if known is not None:
                return known
            prompt = prompt or judge_prompt_ensure(
                study=study, rubric=rubric, language=selection.instrument.language, actor=actor
            )
            if missing := codes_missing(prompt.text, judged_criteria(rubric)):
                raise JudgingRefusedError("criteria", ", ".join(missing))
            found = _found(selection, config, prompt, rubric, seen)
            if cap is not None:
                _cap_check(config, cap, currency, prompt.text)
            judge = model_judge_ensure(config=config, prompt=prompt, rubric=rubric)
            judging = Judging.objects.create(
                model_judge=judge,
                round=automatic_round_create(study=study, rubric=rubric, judge=judge.judge),
                title=title or f"{config.label} · {selection.instrument.title}"[:200],
                selection=_described(selection, found),
                max_attempts=max_attempts,
                deadline=deadline,
                cap=cap,
                currency=currency if cap is not None else "",
                launch_key=launch_key,
                launched_by=actor,
            )
            _items_create(judging, found)
            _launch_audit(judging, found, actor)
            transaction.on_commit(partial(judging_send, judging.pk))
    except IntegrityError as error:
        known = judging_launched(study, launch_key)
        if known is None or "judging_launched_once" not in str(error):
            raise
        return known
    return judging


def judging_launched(study: Study, launch_key: uuid.UUID | None) -> Judging | None:
    """What was launched by this very form."""
    return Judging.objects.filter(round__study=study, launch_key=launch_key).first() if launch_key else None


def _found(selection: Selection, config: ModelConfig, prompt: Prompt, rubric: Rubric, seen: str | None) -> Chosen:
    found = chosen(selection, config=config, prompt=prompt, rubric=rubric)
    if seen is not None and seen != found.digest():
        raise JudgingChangedError(found)
    if not found.answers:
        raise JudgingRefusedError("nothing")
    if len(found.answers) > MAX_ANSWERS:
        raise JudgingRefusedError("many")
    return found


def _cap_check(config: ModelConfig, cap: Decimal, currency: str, text: str) -> None:
    if not 0 < cap <= LARGEST or currency not in Currency.values:
        raise JudgingRefusedError("cap")
    if reason := cap_obstacle(config, currency, text):
        raise JudgingRefusedError("uncappable", reason)


def model_judge_ensure(*, config: ModelConfig, prompt: Prompt, rubric: Rubric) -> ModelJudge:
    """The judge that these three make. The caller holds the study's lock."""
    known = ModelJudge.objects.filter(config=config, prompt=prompt, rubric=rubric).first()
    if known is not None:
        return known
    judge = Judge.objects.create(kind=Judge.Kind.MODEL)
    return ModelJudge.objects.create(judge=judge, config=config, prompt=prompt, rubric=rubric)


def _described(selection: Selection, found: Chosen) -> dict[str, object]:
    numbers = {
        "found": found.found,
        "answers": len(found.answers),
        "of_people": found.of_people(),
        "refusals": found.refusals,
        "no_consent": found.no_consent,
        "declined": found.declined,
        "in_open_sittings": found.in_open_sittings,
        "not_counted": found.not_counted,
        "judged_before": found.judged_before,
    }
    return {"asked": selection.as_json(), "numbers": numbers, "sha256": found.digest()}


def _items_create(judging: Judging, found: Chosen) -> None:
    """Those that are asked first: items are locked in the order of their ids, and whoever shares comes after."""
    now = timezone.now()
    texts = found.texts
    asked = JudgingItem.objects.bulk_create(
        [JudgingItem(judging=judging, answer_id=one.answer_id, due_at=now) for one in texts], batch_size=BATCH
    )
    of_text = {(one.stimulus_text, one.display_text): item for one, item in zip(texts, asked, strict=True)}
    own = {item.answer_id for item in asked}
    JudgingItem.objects.bulk_create(
        [
            JudgingItem(
                judging=judging,
                answer_id=one.answer_id,
                same_as=of_text[one.stimulus_text, one.display_text],
                due_at=now,
            )
            for one in found.answers
            if one.answer_id not in own
        ],
        batch_size=BATCH,
    )


def _launch_audit(judging: Judging, found: Chosen, actor: User | None) -> None:
    judge = judging.model_judge
    audit_record(
        actor=actor,
        study=judging.study,
        action="judging_launch",
        target=judging,
        detail={
            "config": judge.config.label,
            "prompt": str(judge.prompt),
            "rubric": judge.rubric.slug,
            "answers": len(found.answers),
            "of_people": found.of_people(),
            "attempts": judging.max_attempts,
            **({"cap": str(judging.cap), "currency": judging.currency} if judging.cap is not None else {}),
        },
    )


@transaction.atomic
def judging_cancel(*, judging: Judging, actor: User | None) -> bool:
    """Stop for good. Calls in flight end and stay in the log; what is judged stays. False: it had ended."""
    locked = Judging.objects.select_for_update(no_key=True).get(pk=judging.pk)
    if locked.state not in (*GOING, Judging.State.INCOMPLETE):
        return False
    locked.state, locked.problem, locked.ended_at = Judging.State.CANCELLED, "", timezone.now()
    locked.save(update_fields=["state", "problem", "ended_at"])
    round_close(round_id=locked.round_id)
    audit_record(actor=actor, study=locked.study, action="judging_cancel", target=locked)
    return True


def judging_resume(*, judging: Judging, actor: User | None) -> None:
    """Ask again what has no judgement for a technical reason. Raises JudgingNotResumableError, keys.KeyMissingError."""
    calls_sweep()
    key_of(judging.model_judge.config)
    with transaction.atomic():
        # Items before the judging, as whoever records a reply.
        items = JudgingItem.objects.filter(
            judging=judging, state__in=[JudgingItem.State.TODO, JudgingItem.State.GIVEN_UP]
        )
        open_items = list(items.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
        locked = Judging.objects.select_for_update(no_key=True).get(pk=judging.pk)
        if locked.state not in RESUMABLE:
            raise JudgingNotResumableError
        # Everything open gets a new deadline and is due now.
        JudgingItem.objects.filter(pk__in=open_items).update(
            state=JudgingItem.State.TODO, failures=0, failing_since=None, problem="", due_at=timezone.now()
        )
        locked.state, locked.problem, locked.reason = Judging.State.RUNNING, "", ""
        locked.waits_for_money, locked.ended_at = False, None
        locked.save(update_fields=["state", "problem", "reason", "waits_for_money", "ended_at"])
        audit_record(actor=actor, study=locked.study, action="judging_resume", target=locked)
        transaction.on_commit(partial(judging_send, locked.pk))


def judgings_settle() -> None:
    """End what has ended without anybody noticing: see services.work_recover."""
    for pk in Judging.objects.filter(state__in=GOING).values_list("pk", flat=True):
        judging_settle(pk)
