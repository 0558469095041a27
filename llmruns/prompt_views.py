"""Prompts and their versions. A new one is seen with every stimulus before it is kept."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from corpus.models import Instrument
from llmruns.log import whole
from llmruns.models import Prompt
from llmruns.prompt_forms import PROMPT_ERRORS, PromptForm
from llmruns.prompts import PromptRefusedError, previews_of, prompt_create, prompts_of
from llmruns.services import PAPER_PROMPT, paper_prompt_text
from studies.access import SignedIn, research_study
from studies.models import Study


@login_required
@require_safe
def prompt_list(request: SignedIn, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    prompts = list(prompts_of(study))
    context = {
        "study": study,
        "prompts": prompts,
        "paper_text": paper_prompt_text() if not any(one.slug == PAPER_PROMPT for one in prompts) else "",
        "instruments": Instrument.objects.filter(study=study).order_by("-pk"),
    }
    return render(request, "llmruns/prompt_list.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def prompt_new(request: SignedIn, slug: str) -> HttpResponse:
    """Two steps: the text, and what comes of it for each stimulus. Only the second one keeps it."""
    study = research_study(request.user, slug)
    if request.method != "POST":
        return _form(request, study, PromptForm(study=study, initial=_initial(request, study)))
    form = PromptForm(request.POST, study=study)
    step = request.POST.get("step")
    if not form.is_valid() or step == "change":
        return _form(request, study, form)
    data = form.cleaned_data
    if step != "save":
        previews = previews_of(data["text"], data["instrument"]) if data["instrument"] else []
        context = {"study": study, "form": form, "data": data, "previews": previews}
        return render(request, "llmruns/prompt_preview.html", context)
    try:
        prompt = prompt_create(study=study, slug=data["slug"], text=data["text"], note=data["note"], actor=request.user)
    except PromptRefusedError as error:
        form.add_error("text", str(PROMPT_ERRORS[error.reason]))
        return _form(request, study, form)
    messages.success(request, _("%(prompt)s is kept. Choose it when you launch an experiment.") % {"prompt": prompt})
    return redirect("prompt_list", slug)


def _initial(request: SignedIn, study: Study) -> dict[str, str]:
    """Of the version that the new one begins with: `?from=`, else the paper's."""
    number = whole(request.GET.get("from", ""))
    prompt = Prompt.objects.filter(study=study, purpose=Prompt.Purpose.ANSWER, pk=number).first() if number else None
    if prompt is None:
        return {"slug": PAPER_PROMPT, "text": paper_prompt_text()}
    return {"slug": prompt.slug, "text": prompt.text}


def _form(request: SignedIn, study: Study, form: PromptForm) -> HttpResponse:
    return render(request, "llmruns/prompt_new.html", {"study": study, "form": form})
