from django.urls import include, path

from surveys import (
    entrance_views,
    exclusion_views,
    import_views,
    participant_views,
    question_views,
    questionnaire_views,
    views,
    watch_views,
)

urlpatterns = [
    path("p/<str:secret>/<int:number>/", participant_views.task, name="participant_task"),
    path("p/<str:secret>/", participant_views.participant, name="participant"),
    path("p/<str:secret>/questions/<str:place>/", question_views.participant_questions, name="participant_questions"),
    path("p/<str:secret>/end/", participant_views.end, name="participant_end"),
    path("p/<str:secret>/leave/", participant_views.leave, name="participant_leave"),
    path("s/<slug:slug>/", entrance_views.survey_enter, name="survey_enter"),
    path("s/<slug:slug>/arrive/", entrance_views.survey_arrive, name="survey_arrive"),
    path("studies/<slug:slug>/surveys/", views.survey_list, name="survey_list"),
    path("studies/<slug:slug>/surveys/new/", views.survey_new, name="survey_new"),
    path("studies/<slug:slug>/surveys/<int:pk>/", views.survey, name="survey"),
    path("studies/<slug:slug>/surveys/<int:pk>/edit/", views.survey_edit, name="survey_edit"),
    path("studies/<slug:slug>/imports/", import_views.import_list, name="import_list"),
    path("studies/<slug:slug>/imports/new/", import_views.import_new, name="import_new"),
    path("studies/<slug:slug>/imports/<int:pk>/", import_views.import_batch, name="import_batch"),
    path("studies/<slug:slug>/imports/<uuid:key>/", import_views.import_draft, name="import_draft"),
    path("studies/<slug:slug>/imports/<uuid:key>/import/", import_views.import_confirm, name="import_confirm"),
    path("studies/<slug:slug>/imports/<uuid:key>/discard/", import_views.import_discard, name="import_discard"),
    path("studies/<slug:slug>/surveys/<int:pk>/state/", views.survey_state, name="survey_state"),
    path("studies/<slug:slug>/surveys/<int:pk>/preview/", views.survey_preview, name="survey_preview"),
    path("studies/<slug:slug>/surveys/<int:pk>/review.tsv", views.survey_review, name="survey_review"),
    path("studies/<slug:slug>/surveys/<int:pk>/questions/", questionnaire_views.question_list, name="question_list"),
    path("studies/<slug:slug>/surveys/<int:pk>/questions/new/", questionnaire_views.question_new, name="question_new"),
    path(
        "studies/<slug:slug>/surveys/<int:pk>/questions/copy/", questionnaire_views.question_copy, name="question_copy"
    ),
    path(
        "studies/<slug:slug>/surveys/<int:pk>/questions/<int:question>/",
        questionnaire_views.question_edit,
        name="question_edit",
    ),
    path(
        "studies/<slug:slug>/surveys/<int:pk>/questions/<int:question>/change/",
        questionnaire_views.question_change,
        name="question_change",
    ),
    path("studies/<slug:slug>/surveys/<int:pk>/watch/", watch_views.watch, name="survey_watch"),
    path("studies/<slug:slug>/surveys/<int:pk>/find/", watch_views.sitting_find, name="survey_sitting_find"),
    path(
        "studies/<slug:slug>/surveys/<int:pk>/sittings/<int:sitting_pk>/",
        watch_views.sitting_page,
        name="survey_sitting",
    ),
    path(
        "studies/<slug:slug>/surveys/<int:pk>/sittings/<int:sitting_pk>/exclude/",
        exclusion_views.sitting_leave_out,
        name="survey_sitting_exclude",
    ),
    path("studies/<slug:slug>/surveys/<int:pk>/exclusion/", exclusion_views.exclusion, name="survey_exclusion"),
    path(
        "studies/<slug:slug>/surveys/<int:pk>/exclusion/apply/",
        exclusion_views.exclusion_apply,
        name="survey_exclusion_apply",
    ),
    path(
        "studies/<slug:slug>/surveys/<int:pk>/exclusion/<int:rule_pk>/again/",
        exclusion_views.exclusion_again,
        name="survey_exclusion_again",
    ),
    path(
        "studies/<slug:slug>/surveys/<int:pk>/exclusion/<int:rule_pk>/lift/",
        exclusion_views.exclusion_lift,
        name="survey_exclusion_lift",
    ),
    path("", include("surveys.composer_urls")),
]
