"""Pages of the catalogue of models, of prices and of stored keys."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from llmruns.catalogue import (
    EntryTakenError,
    PriceTakenError,
    catalogue_rows,
    entry_find,
    entry_get,
    entry_save,
    price_add,
    prices_of,
)
from llmruns.credentials import CredentialRefusedError, credential_create, credential_retire
from llmruns.forms_catalogue import CredentialForm, EntryForm, PriceForm
from llmruns.models import CatalogueEntry, Credential, ModelConfig
from llmruns.money_forms import NEVER_CALLED
from llmruns.selectors import credential_rows
from llmruns.vault import VaultClosedError, vault_is_open
from llmruns.views import _person
from studies.access import research_study
from studies.models import Study


@login_required
@require_safe
def catalogue_list(request: HttpRequest, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    return render(request, "llmruns/catalogue_list.html", {"study": study, "rows": catalogue_rows(study)})


@login_required
@require_http_methods(["GET", "POST"])
def catalogue_new(request: HttpRequest, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    form = EntryForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        values = form.values()
        if entry_find(study=study, provider=values["provider"], model=values["model"]) is not None:
            form.add_error("model", _("The catalogue has this model already: change its entry there."))
        else:
            try:
                entry = entry_save(study=study, actor=_person(request), **values)
            except EntryTakenError:
                form.add_error("model", _("The catalogue has this model already: change its entry there."))
            else:
                messages.success(request, _("“%(label)s” is in the catalogue.") % {"label": entry.label})
                return redirect("catalogue_entry", slug, entry.pk)
    return render(request, "llmruns/catalogue_edit.html", {"study": study, "form": form, "entry": None})


def _entry(study: Study, pk: int) -> CatalogueEntry:
    entry = entry_get(study=study, pk=pk)
    if entry is None:
        raise Http404
    return entry


@login_required
@require_safe
def catalogue_entry(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    entry = _entry(study, pk)
    # A built-in entry that the study has replaced is an old address: the study's own stands above it.
    own = entry_find(study=study, provider=entry.provider, model=entry.model)
    if own is not None and own.pk != entry.pk:
        return redirect("catalogue_entry", slug, own.pk)
    prices = prices_of(study=study, provider=entry.provider, model=entry.model)
    return render(request, "llmruns/catalogue_entry.html", {"study": study, "entry": entry, "prices": prices})


@login_required
@require_http_methods(["GET", "POST"])
def catalogue_edit(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Of a built-in entry: makes the study's own, which stands above it."""
    study = research_study(request.user, slug)
    entry = _entry(study, pk)
    form = EntryForm(request.POST or None, entry=entry)
    if request.method == "POST" and form.is_valid():
        saved = entry_save(
            study=study, actor=_person(request), provider=entry.provider, model=entry.model, **form.values()
        )
        messages.success(request, _("Saved. Models that were added before keep what they were added with."))
        return redirect("catalogue_entry", slug, saved.pk)
    return render(request, "llmruns/catalogue_edit.html", {"study": study, "form": form, "entry": entry})


@login_required
@require_http_methods(["GET", "POST"])
def price_new(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    entry = _entry(study, pk)
    return _price_form(request, study, entry, reverse("catalogue_entry", args=[slug, entry.pk]))


@login_required
@require_http_methods(["GET", "POST"])
def model_price_new(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Of a model of the study, whether or not the catalogue knows it. A price belongs to the provider and the name."""
    study = research_study(request.user, slug)
    config = get_object_or_404(ModelConfig.objects.exclude(provider__in=NEVER_CALLED), study=study, pk=pk)
    return _price_form(request, study, config, reverse("model_list", args=[slug]))


def _price_form(request: HttpRequest, study: Study, of: CatalogueEntry | ModelConfig, back: str) -> HttpResponse:
    form = PriceForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            price_add(
                study=study,
                actor=_person(request),
                provider=of.provider,
                model=of.model,
                **{name: form.cleaned_data[name] for name in PriceForm.Meta.fields},
            )
        except PriceTakenError:
            form.add_error("valid_from", _("The study has a price from this day on. Prices are added, not changed."))
        else:
            messages.success(request, _("The price is added. Calls that were made before keep theirs."))
            return redirect(back)
    context = {"study": study, "form": form, "of": of, "back": back}
    return render(request, "llmruns/price_new.html", context)


@login_required
@require_safe
def credential_list(request: HttpRequest, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    context = {"study": study, "credentials": credential_rows(study), "is_open": vault_is_open()}
    return render(request, "llmruns/credential_list.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def credential_new(request: HttpRequest, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    form = CredentialForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            credential = credential_create(study=study, actor=_person(request), **form.cleaned_data)
        except VaultClosedError:
            form.add_error(None, _("Nothing was stored: this installation has no LURIA_CREDENTIAL_KEYS."))
        except CredentialRefusedError as error:
            if error.reason == "taken":
                form.add_error("name", _("The study has a key of this name."))
            else:
                form.add_error("key", _("A key is one line of Latin letters, digits and signs."))
        else:
            messages.success(request, _("The key “%(name)s” is stored.") % {"name": credential.name})
            return redirect("credential_list", slug)
    context = {"study": study, "form": form, "is_open": vault_is_open()}
    return render(request, "llmruns/credential_new.html", context)


@login_required
@require_POST
def credential_retire_view(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    credential = get_object_or_404(Credential, study=study, pk=pk)
    if credential_retire(credential=credential, actor=_person(request)):
        messages.success(request, _("The key “%(name)s” is forgotten.") % {"name": credential.name})
    else:
        messages.info(request, _("It was forgotten before."))
    return redirect("credential_list", slug)
