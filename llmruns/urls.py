from django.urls import path

from llmruns import judge_views, log_views, money_views, prompt_views, views, views_catalogue

STUDY = "studies/<slug:slug>"

urlpatterns = [
    path(f"{STUDY}/models/", views.model_list, name="model_list"),
    path(f"{STUDY}/models/new/", views.model_new, name="model_new"),
    path(f"{STUDY}/models/catalogue/", views_catalogue.catalogue_list, name="catalogue_list"),
    path(f"{STUDY}/models/catalogue/new/", views_catalogue.catalogue_new, name="catalogue_new"),
    path(f"{STUDY}/models/catalogue/<int:pk>/", views_catalogue.catalogue_entry, name="catalogue_entry"),
    path(f"{STUDY}/models/catalogue/<int:pk>/edit/", views_catalogue.catalogue_edit, name="catalogue_edit"),
    path(f"{STUDY}/models/catalogue/<int:pk>/prices/new/", views_catalogue.price_new, name="price_new"),
    path(f"{STUDY}/models/keys/", views_catalogue.credential_list, name="credential_list"),
    path(f"{STUDY}/models/keys/new/", views_catalogue.credential_new, name="credential_new"),
    path(f"{STUDY}/models/keys/<int:pk>/retire/", views_catalogue.credential_retire_view, name="credential_retire"),
    path(f"{STUDY}/models/<int:pk>/try/", views.model_try_out, name="model_try"),
    path(f"{STUDY}/experiments/", views.experiment_list, name="experiment_list"),
    path(f"{STUDY}/experiments/new/", views.experiment_new, name="experiment_new"),
    path(f"{STUDY}/experiments/<int:pk>/", views.experiment_detail, name="experiment_detail"),
    path(f"{STUDY}/experiments/<int:pk>/cancel/", views.experiment_stop, name="experiment_cancel"),
    path(f"{STUDY}/experiments/<int:pk>/pause/", money_views.experiment_hold, name="experiment_pause"),
    path(f"{STUDY}/experiments/<int:pk>/cap/", money_views.experiment_cap, name="experiment_cap"),
    path(f"{STUDY}/prompts/", prompt_views.prompt_list, name="prompt_list"),
    path(f"{STUDY}/prompts/new/", prompt_views.prompt_new, name="prompt_new"),
    path(f"{STUDY}/judgings/", judge_views.judging_list, name="judging_list"),
    path(f"{STUDY}/judgings/<int:pk>/", judge_views.judging_detail, name="judging_detail"),
    path(f"{STUDY}/judgings/<int:pk>/pause/", judge_views.judging_hold, name="judging_pause"),
    path(f"{STUDY}/judgings/<int:pk>/resume/", judge_views.judging_continue, name="judging_resume"),
    path(f"{STUDY}/judgings/<int:pk>/cancel/", judge_views.judging_stop, name="judging_cancel"),
    path(f"{STUDY}/judgings/<int:pk>/cap/", judge_views.judging_cap, name="judging_cap"),
    path(f"{STUDY}/judgings/prompts/", judge_views.judge_prompt_list, name="judge_prompt_list"),
    path(f"{STUDY}/judgings/prompts/new/", judge_views.judge_prompt_new, name="judge_prompt_new"),
    path(f"{STUDY}/limits/", money_views.limit_list, name="limit_list"),
    path(f"{STUDY}/limits/<int:pk>/", money_views.limit_edit, name="limit_edit"),
    path(f"{STUDY}/limits/<int:pk>/remove/", money_views.limit_delete, name="limit_delete"),
    path(f"{STUDY}/experiments/<int:pk>/resume/", views.experiment_continue, name="experiment_resume"),
    path(f"{STUDY}/experiments/<int:pk>/runs/<int:run_pk>/", views.run_detail, name="run_detail"),
    path(f"{STUDY}/experiments/<int:pk>/calls/", log_views.call_list, name="call_list"),
    path(f"{STUDY}/calls/", log_views.call_log, name="call_log"),
    path(f"{STUDY}/calls.jsonl", log_views.call_file, name="call_file"),
    path(f"{STUDY}/calls/<int:pk>/", log_views.call_detail, name="call_detail"),
]
