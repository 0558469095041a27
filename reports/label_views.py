"""The page of a campaign's labels: what they rest on, their versions, their files."""

from collections.abc import Sequence

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from annotation.models import Campaign, Item, LabelVersion
from annotation.versions import chain_verify, labels_freeze, versions_catch_up
from reports.campaign_labels import (
    LONG,
    label_counts,
    long_rows,
    wide_columns,
    wide_rows,
)
from reports.csvfile import stream
from studies.access import SignedIn, unblinded_study

SHOWN = 50


def _campaign(request: SignedIn, slug: str, pk: int) -> Campaign:
    study = unblinded_study(request.user, slug)
    return get_object_or_404(study.campaigns.select_related("study", "round"), pk=pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def campaign_labels(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """A post freezes a campaign that was closed before labels had versions."""
    campaign = _campaign(request, slug, pk)
    if request.method == "POST":
        if request.POST.get("do") == "freeze" and campaign.state == Campaign.State.CLOSED:
            labels_freeze(campaign=campaign, actor=request.user)
            messages.success(request, _("The labels are frozen: this is version 1."))
        return redirect("campaign_labels", slug, pk)
    versions_catch_up(campaign=campaign)  # idempotent, as the rules that a results page applies
    versions = list(campaign.label_versions.select_related("actor").order_by("-version"))
    is_asked = bool(versions) and request.GET.get("verify") == "1"  # reads all votes: seconds
    context = {
        "study": campaign.study,
        "campaign": campaign,
        "is_closed": campaign.state == Campaign.State.CLOSED,
        "counts": label_counts(campaign),
        "versions": _with_items(campaign, versions[:SHOWN]),
        "n_versions": len(versions),
        "verified": is_asked,
        "problems": chain_verify(campaign) if is_asked else [],
    }
    return render(request, "reports/labels.html", context)


def _with_items(campaign: Campaign, versions: Sequence[LabelVersion]) -> list[tuple[LabelVersion, int | None]]:
    """Each version with the item that it is about, if it is about one that is still there. One query."""
    named = [one.change["answer"] for one in versions if "answer" in one.change]
    there = Item.objects.filter(campaign=campaign, answer__blind_id__in=named, removed_at__isnull=True)
    items = {str(blind): pk for pk, blind in there.values_list("pk", "answer__blind_id")}
    return [(one, items.get(one.change.get("answer", ""))) for one in versions]


@login_required
@require_safe
def label_file(request: SignedIn, slug: str, pk: int, shape: str) -> StreamingHttpResponse:
    campaign = _campaign(request, slug, pk)
    if shape not in ("long", "wide"):
        raise Http404
    versions_catch_up(campaign=campaign)
    columns, rows = (LONG, long_rows(campaign)) if shape == "long" else (wide_columns(campaign), wide_rows(campaign))
    for_excel = request.GET.get("for") == "excel"
    pieces = stream(columns, rows, for_excel=for_excel, decimal_comma=get_language() == "ru")
    response = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    name = f"{campaign.study.slug}-campaign-{campaign.pk}-labels-{shape}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response
