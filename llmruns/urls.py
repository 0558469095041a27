from django.urls import path

from llmruns import views

STUDY = "studies/<slug:slug>"

urlpatterns = [
    path(f"{STUDY}/models/", views.model_list, name="model_list"),
    path(f"{STUDY}/models/new/", views.model_new, name="model_new"),
    path(f"{STUDY}/models/<int:pk>/try/", views.model_try_out, name="model_try"),
    path(f"{STUDY}/experiments/", views.experiment_list, name="experiment_list"),
    path(f"{STUDY}/experiments/new/", views.experiment_new, name="experiment_new"),
    path(f"{STUDY}/experiments/<int:pk>/", views.experiment_detail, name="experiment_detail"),
    path(f"{STUDY}/experiments/<int:pk>/cancel/", views.experiment_stop, name="experiment_cancel"),
    path(f"{STUDY}/experiments/<int:pk>/resume/", views.experiment_continue, name="experiment_resume"),
    path(f"{STUDY}/experiments/<int:pk>/runs/<int:run_pk>/", views.run_detail, name="run_detail"),
    path(f"{STUDY}/experiments/<int:pk>/calls/", views.call_list, name="call_list"),
    path(f"{STUDY}/calls/<int:pk>/", views.call_detail, name="call_detail"),
]
