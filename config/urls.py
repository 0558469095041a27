from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("config.api")),
    path("", include("reports.urls")),
    path("", include("surveys.urls")),
    path("", include("annotation.urls")),
    path("", include("llmruns.urls")),
    path("", include("studies.urls")),
    path("i18n/", include("django.conf.urls.i18n")),
    path("admin/", admin.site.urls),
]
