from django.urls import path

from annotation import adjudication_views, guideline_views, import_views, rater_views, reference_views, views

urlpatterns = [
    path("rate/", rater_views.rate_home, name="rate_home"),
    path("rate/c/<int:pk>/next/", rater_views.rate_next, name="rate_next"),
    path("rate/c/<int:pk>/decide/", adjudication_views.decide_next, name="decide_next"),
    path("rate/decide/<uuid:item>/", adjudication_views.decide, name="decide"),
    path("rate/<uuid:place>/", rater_views.rate_place, name="rate_place"),
    path("rate/c/<int:pk>/mine/", rater_views.rate_mine, name="rate_mine"),
    path("rate/<uuid:place>/skip/", rater_views.rate_skip, name="rate_skip"),
    path("rate/<uuid:place>/withdraw/", rater_views.rate_withdraw, name="rate_withdraw"),
    path("studies/<slug:slug>/campaigns/", views.campaign_list, name="campaign_list"),
    # The pages of one draft are in reports.urls.
    path("studies/<slug:slug>/campaigns/imports/", import_views.judgement_imports, name="judgement_imports"),
    path("studies/<slug:slug>/campaigns/imports/new/", import_views.judgement_upload, name="judgement_upload"),
    path("studies/<slug:slug>/campaigns/imports/<int:pk>/", import_views.judgement_import, name="judgement_import"),
    path(
        "studies/<slug:slug>/campaigns/imports/<uuid:key>/discard/",
        import_views.judgement_discard,
        name="judgement_discard",
    ),
    path("studies/<slug:slug>/campaigns/new/", views.campaign_new, name="campaign_new"),
    path("studies/<slug:slug>/campaigns/rate-too/", views.rate_too, name="rate_too"),
    path("studies/<slug:slug>/campaigns/<int:pk>/", views.campaign, name="campaign"),
    path("studies/<slug:slug>/campaigns/<int:pk>/answers/", views.campaign_answers, name="campaign_answers"),
    path("studies/<slug:slug>/campaigns/<int:pk>/close/", views.campaign_end, name="campaign_close"),
    path("studies/<slug:slug>/campaigns/<int:pk>/adjudicator/", views.adjudicator_name, name="adjudicator_name"),
    path("studies/<slug:slug>/campaigns/<int:pk>/withdraw/", views.label_take_out, name="label_withdraw"),
    path("studies/<slug:slug>/guidelines/", guideline_views.guideline_list, name="guideline_list"),
    path("studies/<slug:slug>/guidelines/new/", guideline_views.guideline_new, name="guideline_new"),
    path("studies/<slug:slug>/guidelines/<int:number>/", guideline_views.guideline, name="guideline"),
    path(
        "studies/<slug:slug>/guidelines/<int:number>/compare/",
        guideline_views.guideline_compare,
        name="guideline_compare",
    ),
    path("studies/<slug:slug>/references/", reference_views.reference_list, name="reference_list"),
    path("studies/<slug:slug>/references/answers/", reference_views.reference_answers, name="reference_answers"),
    path("studies/<slug:slug>/references/answers/<uuid:answer>/", reference_views.reference_new, name="reference_new"),
    path("studies/<slug:slug>/references/file/", reference_views.references_file, name="references_file"),
    path("studies/<slug:slug>/references/<int:pk>/", reference_views.reference, name="reference"),
    path("studies/<slug:slug>/references/<int:pk>/state/", reference_views.reference_state, name="reference_state"),
    path("studies/<slug:slug>/raters/<int:pk>/", views.rater_state, name="rater_state"),
]
