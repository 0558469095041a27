"""The page on which a researcher plans a campaign, counts what it would hold, and opens it."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import NON_FIELD_ERRORS
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from annotation.choosing import MAX_PLACES, answers_waiting
from annotation.doubting import KINDS
from annotation.doubting_forms import silent_words
from annotation.errors import (
    CampaignClosedError,
    DeadlinePassedError,
    GuidelineUnknownError,
    JudgesSilentError,
    NotAMemberError,
    NothingToRateError,
    RepeatsTooFarError,
    SelectionChangedError,
    TitleTakenError,
    TooManyPlacesError,
)
from annotation.models import Campaign, Rater
from annotation.opening import campaign_deadline_set, campaign_open
from annotation.opening_forms import CampaignForm, DeadlineForm, asked_before
from annotation.preview import Preview, campaign_preview
from studies.access import SignedIn, is_blinded, research_study
from studies.models import Study

PREFILLED = {"like", "doubt", "doubt_judges"}
Judges = Callable[[Study], Mapping[int, str]]


@login_required
@require_http_methods(["GET", "POST"])
def campaign_new(request: SignedIn, slug: str, judges: Judges) -> HttpResponse:
    """Without data the form, with a query the counts of what would be opened; a post opens it.

    `?like=` takes the values of an earlier campaign, whose title is not repeated; `?doubt=` and `?doubt_judges=`
    choose answers that automatic judges doubt. `judges` names the automatic judges, which a layer above knows.
    """
    study = research_study(request.user, slug)
    blinded = is_blinded(request.user, study)
    more: dict[str, Any] = {"study": study, "blinded": blinded, "judges": {} if blinded else judges(study)}
    if request.method == "GET" and request.GET.keys() <= PREFILLED:
        return _page(request, CampaignForm(None, initial=_prefilled(request, study), **more), more)
    data = request.POST if request.method == "POST" else request.GET
    form = CampaignForm(data, **more)
    if request.method == "POST" and form.is_valid():
        done = _campaign_open(request, study, form)
        if done is not None:
            return done
    return _page(request, form, more)


def _prefilled(request: SignedIn, study: Study) -> dict[str, Any]:
    """What the address chooses; what it does not know is left as it is."""
    like = request.GET.get("like", "")
    pk = int(like) if like.isascii() and like.isdigit() and len(like) < 19 else 0
    earlier = Campaign.objects.filter(study=study, pk=pk).first()
    initial = asked_before(earlier) if earlier is not None else {}
    if request.GET.get("doubt") in KINDS:
        initial |= {"doubt": request.GET["doubt"], "doubt_judges": request.GET.getlist("doubt_judges")}
    return initial


def _campaign_open(request: SignedIn, study: Study, form: CampaignForm) -> HttpResponse | None:
    """The answer after opening; None with the form's error where nothing was opened."""
    try:
        campaign = campaign_open(
            study=study,
            title=form.cleaned_data["title"],
            raters_per_answer=form.cleaned_data["raters_per_answer"],
            seed=form.cleaned_data["seed"],
            actor=request.user,
            selection=form.selection(),
            plan=form.plan(),
            adjudicator=form.adjudicator_user(),
            seen=request.POST.get("seen") or None,
        )
    except NothingToRateError:
        form.add_error(None, _("There is no answer to rate: see below what is left out and why. Nothing was opened."))
    except SelectionChangedError as error:
        form.add_error(
            None,
            _(
                "What would be opened has changed since you counted it: the answers, the gold or training answers, or "
                "the rules. There are %(n)d answers now. Nothing was opened; look again."
            )
            % {"n": error.answers},
        )
    except (TooManyPlacesError, RepeatsTooFarError) as error:
        _refusal_add(form, error)
    except JudgesSilentError as error:
        form.add_error("doubt", silent_words(error))
    except GuidelineUnknownError:
        form.add_error("guideline", _("The study has no such version of the rules. Nothing was opened."))
    except DeadlinePassedError:
        form.add_error("deadline", _("This moment has passed."))
    except TitleTakenError:
        form.add_error("title", _("A campaign with this title is open already. Nothing was opened a second time."))
    except NotAMemberError:
        form.add_error("adjudicator", _("This person is no longer a member of the study."))
    else:
        messages.success(request, _("The campaign is open. Its answers are fixed; raters find it on their first page."))
        return redirect("campaign", study.slug, campaign.pk)
    return None


def _refusal_add(form: Form, error: TooManyPlacesError | RepeatsTooFarError) -> None:
    """What is wrong with a plan as soon as its answers are counted."""
    if isinstance(error, TooManyPlacesError):
        form.add_error(
            None,
            _("This asks for %(n)d judgements; one campaign takes at most %(most)d. Take a sample or fewer raters.")
            % {"n": error.places, "most": MAX_PLACES},
        )
    else:
        form.add_error(
            "repeat_distance",
            _("There are only %(n)d answers to judge: none of them could come again after so many others.")
            % {"n": error.items},
        )


def _page(request: SignedIn, form: CampaignForm, more: dict[str, Any]) -> HttpResponse:
    study = more["study"]
    context: dict[str, Any] = {"study": study, "form": form}
    if form.is_bound and set(form.errors) <= {NON_FIELD_ERRORS}:
        context["preview"] = preview = _preview(study, form)
        if preview is not None and preview.answers:  # the same data once more, as hidden fields of the form that opens
            context["ready"] = CampaignForm(form.data, auto_id=False, **more)
            context["is_rater"] = Rater.objects.filter(
                study=study, user=request.user, is_active=True, only_decides=False
            ).exists()
    context["waiting"] = answers_waiting(study)
    return render(request, "annotation/campaign_new.html", context, status=400 if request.method == "POST" else 200)


def _preview(study: Study, form: CampaignForm) -> Preview | None:
    """None, with the form's error, where such a campaign cannot be."""
    try:
        return campaign_preview(
            study,
            form.selection(),
            form.plan(),
            seed=form.cleaned_data["seed"],
            raters_per_answer=form.cleaned_data["raters_per_answer"],
        )
    except (TooManyPlacesError, RepeatsTooFarError) as error:
        if not form.errors:
            _refusal_add(form, error)
        return None
    except JudgesSilentError as error:
        form.add_error("doubt", silent_words(error))
        return None


@login_required
@require_POST
def campaign_deadline(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """Raters are given more time, or less, or are no longer told a day."""
    study = research_study(request.user, slug)
    found = get_object_or_404(Campaign.objects.select_related("study"), study=study, pk=pk)
    form = DeadlineForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(map(str, form.errors["deadline"])) + " " + _("The deadline stays as it was."))
        return redirect("campaign", slug, pk)
    try:
        campaign_deadline_set(campaign=found, deadline=form.cleaned_data["deadline"], actor=request.user)
    except CampaignClosedError:
        messages.error(request, _("The campaign is closed: nobody waits for a deadline."))
    except DeadlinePassedError:
        messages.error(request, _("This moment has passed.") + " " + _("The deadline stays as it was."))
    else:
        messages.success(request, _("The deadline is set. Raters see it on their first page."))
    return redirect("campaign", slug, pk)
