from django.urls import path

from annotation import import_views
from llmruns import judge_views
from reports import (
    agreement_views,
    classifier_views,
    dashboard_views,
    error_views,
    export_views,
    figure_views,
    flow_views,
    judging_views,
    label_views,
    prompt_views,
    quality_views,
    result_views,
    withdrawal_views,
)
from reports.judging_agreement import CampaignAnswers
from surveys.import_known import respondents_named

urlpatterns = [
    path(
        "studies/<slug:slug>/campaigns/<int:pk>/agreement/",
        agreement_views.campaign_agreement_page,
        name="campaign_agreement",
    ),
    path(
        "studies/<slug:slug>/campaigns/<int:pk>/agreement.csv",
        agreement_views.campaign_agreement_csv,
        name="campaign_agreement_csv",
    ),
    path(
        "studies/<slug:slug>/campaigns/<int:pk>/quality/",
        quality_views.campaign_quality_page,
        name="campaign_quality",
    ),
    path(
        "studies/<slug:slug>/campaigns/<int:pk>/quality.csv",
        quality_views.campaign_quality_csv,
        name="campaign_quality_csv",
    ),
    path(
        "studies/<slug:slug>/campaigns/<int:pk>/quality/figure.json",
        quality_views.campaign_quality_vega,
        name="campaign_quality_vega",
    ),
    path(
        "studies/<slug:slug>/campaigns/<int:pk>/quality/figure.<str:kind>",
        quality_views.campaign_quality_figure,
        name="campaign_quality_figure",
    ),
    path("", dashboard_views.home, name="home"),
    path("studies/new/", dashboard_views.study_new, name="study_new"),
    path("studies/<slug:slug>/", dashboard_views.study_dashboard, name="study_dashboard"),
    path("studies/<slug:slug>/instrument/", dashboard_views.instrument_load, name="instrument_load"),
    path("studies/<slug:slug>/results/", result_views.results, name="results"),
    path("studies/<slug:slug>/results/answers/", result_views.result_answers, name="result_answers"),
    path("studies/<slug:slug>/results/figures.json", figure_views.figures_vega, name="figures_vega"),
    path("studies/<slug:slug>/results/figure1.json", figure_views.figure_vega, name="figure_vega"),
    path("studies/<slug:slug>/results/figure1.csv", figure_views.figure_csv, name="figure_csv"),
    path("studies/<slug:slug>/results/figure1.<str:kind>", figure_views.figure_file, name="figure_file"),
    path("studies/<slug:slug>/results/figure<int:number>.json", figure_views.figure_vega, name="figure_vega"),
    path("studies/<slug:slug>/results/figure<int:number>.csv", figure_views.figure_csv, name="figure_csv"),
    path("studies/<slug:slug>/results/figure<int:number>.<str:kind>", figure_views.figure_file, name="figure_file"),
    path("studies/<slug:slug>/results/errors/", error_views.errors, name="errors"),
    path("studies/<slug:slug>/results/errors.csv", error_views.errors_csv, name="errors_csv"),
    path("studies/<slug:slug>/results/error_words.csv", error_views.error_words_csv, name="error_words_csv"),
    path("studies/<slug:slug>/stimuli/<int:pk>/accepted/", error_views.accepted_add, name="accepted_add"),
    path("studies/<slug:slug>/accepted/<int:pk>/retire/", error_views.accepted_retire, name="accepted_retire"),
    path("studies/<slug:slug>/classifiers/", classifier_views.classifier_list, name="classifier_list"),
    path("studies/<slug:slug>/classifiers/new/", classifier_views.classifier_new, name="classifier_new"),
    path("studies/<slug:slug>/classifiers/<int:pk>/", classifier_views.classifier, name="classifier"),
    path("studies/<slug:slug>/classifiers/<int:pk>/stop/", classifier_views.classifier_stop, name="classifier_stop"),
    path("studies/<slug:slug>/classifiers/<int:pk>/again/", classifier_views.classifier_again, name="classifier_again"),
    path("studies/<slug:slug>/classifiers/<int:pk>/judge/", classifier_views.classifier_judge, name="classifier_judge"),
    path("studies/<slug:slug>/exports/", export_views.exports, name="exports"),
    path("studies/<slug:slug>/exports/<str:name>.csv", export_views.export_file, name="export_file"),
    # Whose answer a file of judgements means, a layer beside that of the judgements may know: it is handed in here.
    path(
        "studies/<slug:slug>/campaigns/imports/<uuid:key>/",
        import_views.judgement_draft,
        {"named": respondents_named},
        name="judgement_draft",
    ),
    path(
        "studies/<slug:slug>/campaigns/imports/<uuid:key>/confirm/",
        import_views.judgement_confirm,
        {"named": respondents_named},
        name="judgement_confirm",
    ),
    # Which answers a campaign holds, a layer beside that of the models may know: it is handed in here.
    path(
        "studies/<slug:slug>/judgings/new/",
        judge_views.judging_new,
        {"sources": CampaignAnswers()},
        name="judging_new",
    ),
    path("studies/<slug:slug>/judgings/<int:pk>/agreement/", judging_views.judging_agreement, name="judging_agreement"),
    path("studies/<slug:slug>/judgings/<int:pk>/judgements.csv", judging_views.judging_csv, name="judging_csv"),
    path("studies/<slug:slug>/flow/", flow_views.flow, name="flow"),
    path("studies/<slug:slug>/flow/flow.json", flow_views.flow_vega, name="flow_vega"),
    path("studies/<slug:slug>/flow/flow.csv", flow_views.flow_csv, name="flow_csv"),
    path("studies/<slug:slug>/flow/flow.<str:kind>", flow_views.flow_file, name="flow_file"),
    path("studies/<slug:slug>/campaigns/<int:pk>/labels/", label_views.campaign_labels, name="campaign_labels"),
    path("studies/<slug:slug>/campaigns/<int:pk>/labels/<str:shape>.csv", label_views.label_file, name="label_file"),
    path("studies/<slug:slug>/prompts/compare/", prompt_views.prompt_compare, name="prompt_compare"),
    path("withdraw/", withdrawal_views.withdraw, name="withdraw"),
    path("p/<str:secret>/withdraw/", withdrawal_views.participant_withdraw_page, name="participant_withdraw"),
    path(
        "studies/<slug:slug>/surveys/<int:pk>/sittings/<int:sitting_pk>/withdraw/",
        withdrawal_views.sitting_withdraw_page,
        name="survey_sitting_withdraw",
    ),
    path("studies/<slug:slug>/instruments/<int:pk>/stimuli.csv", export_views.instrument_file, name="instrument_file"),
    path("studies/<slug:slug>/references/references.csv", export_views.references_csv, name="references_csv"),
]
