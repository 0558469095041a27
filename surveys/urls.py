from django.urls import include, path

from surveys import (
    entrance_views,
    exclusion_views,
    import_views,
    instrument_edit_views,
    instrument_views,
    participant_views,
    practice_views,
    preview_views,
    question_views,
    questionnaire_views,
    views,
    watch_views,
)

preview = "p/preview-<int:pk>/"
instrument = "studies/<slug:slug>/instruments/<int:pk>/"
stimulus = f"{instrument}stimuli/<int:stimulus_pk>/"

urlpatterns = [
    # Before the participants' own, whose addresses these take on: see preview_views.
    path(preview, preview_views.preview, name="preview"),
    path(f"{preview}practice/<int:number>/", preview_views.preview_practice, name="preview_practice"),
    path(f"{preview}<int:number>/", preview_views.preview_task, name="preview_task"),
    path(f"{preview}end/", preview_views.preview_end, name="preview_end"),
    path(f"{preview}leave/", preview_views.preview_leave, name="preview_leave"),
    path("p/<str:secret>/<int:number>/", participant_views.task, name="participant_task"),
    path("p/<str:secret>/", participant_views.participant, name="participant"),
    path("p/<str:secret>/questions/<str:place>/", question_views.participant_questions, name="participant_questions"),
    path("p/<str:secret>/end/", participant_views.end, name="participant_end"),
    path("p/<str:secret>/leave/", participant_views.leave, name="participant_leave"),
    path("s/<slug:slug>/", entrance_views.survey_enter, name="survey_enter"),
    path("s/<slug:slug>/arrive/", entrance_views.survey_arrive, name="survey_arrive"),
    path("p/<str:secret>/practice/<int:number>/", practice_views.practice, name="participant_practice"),
    path("studies/<slug:slug>/instruments/", instrument_views.instrument_list, name="instrument_list"),
    path("studies/<slug:slug>/instruments/new/", instrument_views.instrument_new, name="instrument_new"),
    path(instrument, instrument_views.instrument, name="instrument"),
    path(f"{instrument}edit/", instrument_edit_views.instrument_edit, name="instrument_edit"),
    path(f"{instrument}examples/", instrument_edit_views.instrument_examples, name="instrument_examples"),
    path(f"{instrument}import/", instrument_edit_views.instrument_import, name="instrument_import"),
    path(f"{instrument}freeze/", instrument_views.instrument_freezing, name="instrument_freeze"),
    path(f"{instrument}copy/", instrument_views.instrument_copying, name="instrument_copy"),
    path(f"{instrument}delete/", instrument_views.instrument_deleting, name="instrument_delete"),
    path(f"{instrument}compare/", instrument_views.instrument_compare, name="instrument_compare"),
    path(f"{instrument}practice/", instrument_views.instrument_practice, name="instrument_practice"),
    path(f"{instrument}stimuli/new/", instrument_edit_views.stimulus_new, name="stimulus_new"),
    path(stimulus, instrument_edit_views.stimulus_edit, name="stimulus_edit"),
    path(f"{stimulus}move/", instrument_edit_views.stimulus_moving, name="stimulus_move"),
    path(
        f"{stimulus}delete/",
        instrument_edit_views.stimulus_deleting,
        name="stimulus_delete",
    ),
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
