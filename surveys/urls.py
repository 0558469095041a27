from django.urls import path

from surveys import participant_views, views

urlpatterns = [
    path("s/<slug:slug>/", participant_views.survey_enter, name="survey_enter"),
    path("p/<str:secret>/", participant_views.participant, name="participant"),
    path("p/<str:secret>/<int:number>/", participant_views.task, name="participant_task"),
    path("p/<str:secret>/end/", participant_views.end, name="participant_end"),
    path("p/<str:secret>/leave/", participant_views.leave, name="participant_leave"),
    path("studies/<slug:slug>/surveys/", views.survey_list, name="survey_list"),
    path("studies/<slug:slug>/surveys/new/", views.survey_new, name="survey_new"),
    path("studies/<slug:slug>/surveys/<int:pk>/", views.survey, name="survey"),
    path("studies/<slug:slug>/surveys/<int:pk>/state/", views.survey_state, name="survey_state"),
]
