from django.urls import path

from surveys import composer_views as views

BASE = "studies/<slug:slug>/compositions/"

urlpatterns = [
    path(BASE, views.composition_list, name="composition_list"),
    path(BASE + "new/", views.composition_new, name="composition_new"),
    path(BASE + "<int:pk>/", views.composition, name="composition"),
    path(BASE + "<int:pk>/slots/<int:slot>/", views.composition_decide, name="composition_decide"),
    path(BASE + "<int:pk>/stop/", views.composition_stop, name="composition_stop"),
    path(BASE + "<int:pk>/again/", views.composition_again, name="composition_again"),
    path(BASE + "<int:pk>/left-out/", views.composition_left_out, name="composition_left_out"),
    path(BASE + "<int:pk>/tasks.csv", views.composition_csv, name="composition_csv"),
    path(BASE + "<int:pk>/make/", views.composition_make, name="composition_make"),
]
