"""The admin shows facts and changes none: every write goes through a service, with its audit entry."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from studies.models import AuditEntry, Membership, Study, User


class ReadOnlyAdmin(admin.ModelAdmin):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(User)
class UserAdmin(ReadOnlyAdmin):
    list_display = ("username", "is_active", "date_joined", "last_login")
    exclude = ("password",)


@admin.register(Study, Membership)
class PlainAdmin(ReadOnlyAdmin):
    pass


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "actor", "study", "action", "target")
    list_select_related = ("actor", "study")
