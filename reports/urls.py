from django.urls import path

from reports import dashboard_views, export_views, result_views

urlpatterns = [
    path("", dashboard_views.home, name="home"),
    path("studies/new/", dashboard_views.study_new, name="study_new"),
    path("studies/<slug:slug>/", dashboard_views.study_dashboard, name="study_dashboard"),
    path("studies/<slug:slug>/instrument/", dashboard_views.instrument_load, name="instrument_load"),
    path("studies/<slug:slug>/results/", result_views.results, name="results"),
    path("studies/<slug:slug>/results/answers/", result_views.result_answers, name="result_answers"),
    path("studies/<slug:slug>/results/figure1.json", result_views.figure_vega, name="figure_vega"),
    path("studies/<slug:slug>/results/figure1.csv", result_views.figure_csv, name="figure_csv"),
    path("studies/<slug:slug>/results/figure1.<str:kind>", result_views.figure_file, name="figure_file"),
    path("studies/<slug:slug>/exports/", export_views.exports, name="exports"),
    path("studies/<slug:slug>/exports/<str:name>.csv", export_views.export_file, name="export_file"),
]
