from django.urls import path

from surveys import composer_views as views

urlpatterns = [
    path("", views.composition_list, name="composition_list"),
    path("new/", views.composition_new, name="composition_new"),
    path("<int:pk>/", views.composition, name="composition"),
    path("<int:pk>/slots/<int:slot>/", views.composition_decide, name="composition_decide"),
    path("<int:pk>/stop/", views.composition_stop, name="composition_stop"),
    path("<int:pk>/again/", views.composition_again, name="composition_again"),
    path("<int:pk>/left-out/", views.composition_left_out, name="composition_left_out"),
    path("<int:pk>/tasks.csv", views.composition_csv, name="composition_csv"),
    path("<int:pk>/make/", views.composition_make, name="composition_make"),
]
