"""Pause, caps and limits: what a person does to work that is going on."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from llmruns.budget import CapRefusedError, cap_set, experiment_pause
from llmruns.limits import LimitTakenError, limit_remove, limit_rows, limit_set
from llmruns.models import Experiment, ProviderLimit
from llmruns.money_forms import CAP_ERRORS, CapForm, LimitForm
from studies.access import SignedIn, research_study


@login_required
@require_POST
def experiment_hold(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    experiment = get_object_or_404(Experiment, study=study, pk=pk)
    if experiment_pause(experiment=experiment, actor=request.user):
        messages.success(request, _("Paused. Calls in flight end and count; nothing more is sent until you resume."))
    else:
        messages.info(request, _("It is not running, so there was nothing to pause."))
    return redirect("experiment_detail", slug, pk)


@login_required
@require_POST
def experiment_cap(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    experiment = get_object_or_404(Experiment, study=study, pk=pk)
    form = CapForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for error in form.errors["cap"]))
        return redirect("experiment_detail", slug, pk)
    try:
        cap_set(experiment=experiment, cap=form.cleaned_data["cap"], actor=request.user)
    except CapRefusedError as error:
        messages.error(request, str(CAP_ERRORS[error.reason]))
    else:
        messages.success(request, _("The cap is changed. A paused experiment goes on when you resume it."))
    return redirect("experiment_detail", slug, pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def limit_list(request: SignedIn, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    form = LimitForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            limit_set(study=study, actor=request.user, **form.cleaned_data)
        except LimitTakenError:
            form.add_error(None, _("There is a limit for this provider and address: change that one."))
        else:
            return redirect("limit_list", slug)
    return render(request, "llmruns/limit_list.html", {"study": study, "form": form, "rows": limit_rows(study)})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def limit_edit(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    limit = get_object_or_404(ProviderLimit, study=study, pk=pk)
    form = LimitForm(request.POST or None, instance=ProviderLimit.objects.get(pk=limit.pk))
    if request.method == "POST" and form.is_valid():
        try:
            limit_set(study=study, actor=request.user, limit=limit, **form.cleaned_data)
        except LimitTakenError:
            form.add_error(None, _("There is a limit for this provider and address: change that one."))
        else:
            messages.success(request, _("Saved. It holds from the next call on."))
            return redirect("limit_list", slug)
    return render(request, "llmruns/limit_edit.html", {"study": study, "form": form, "limit": limit})


@login_required
@require_POST
def limit_delete(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    limit_remove(limit=get_object_or_404(ProviderLimit, study=study, pk=pk), actor=request.user)
    messages.success(request, _("The limit is gone: calls are sent as fast as the workers can."))
    return redirect("limit_list", slug)
