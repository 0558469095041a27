from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from studies import views
from studies.forms import LoginForm

urlpatterns = [
    path(
        "login/",
        LoginView.as_view(
            template_name="studies/login.html", authentication_form=LoginForm, redirect_authenticated_user=True
        ),
        name="login",
    ),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("join/<str:secret>/", views.join, name="join"),
    path("account/", views.account, name="account"),
    path("account/token/", views.api_token_renew, name="api_token_renew"),
    path("studies/<slug:slug>/people/", views.people, name="people"),
    path("studies/<slug:slug>/people/invite/", views.invitation_new, name="invitation_new"),
    path(
        "studies/<slug:slug>/people/invitations/<int:pk>/revoke/",
        views.invitation_take_back,
        name="invitation_take_back",
    ),
    path("studies/<slug:slug>/people/<int:pk>/deactivate/", views.member_deactivate, name="member_deactivate"),
]
