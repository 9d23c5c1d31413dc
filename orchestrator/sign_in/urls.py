"""The addresses of single sign-on and of the second factor, those of them that the settings ask for."""

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, path

from orchestrator.sign_in.admin import register_second_factors

urlpatterns: list[URLPattern] = []
if settings.PROCESSION_SSO_NAME:
    from orchestrator.sign_in.provider import SingleSignOnView, finish_single_sign_on

    urlpatterns += [
        path("sign-in/with/", SingleSignOnView.as_view(), name="single-sign-on"),
        path(
            "sign-in/with/callback/",
            finish_single_sign_on,
            name="single-sign-on-callback",
        ),
    ]
if settings.PROCESSION_SECOND_FACTOR:
    from orchestrator.sign_in.second_factor_pages import (
        OwnSecondFactorView,
        SecondFactorView,
        recovery_codes_page,
    )

    urlpatterns += [
        path(
            "sign-in/second-factor/", SecondFactorView.as_view(), name="second-factor"
        ),
        path("second-factor/", OwnSecondFactorView.as_view(), name="own-second-factor"),
        path(
            "second-factor/recovery-codes/", recovery_codes_page, name="recovery-codes"
        ),
    ]
register_second_factors(admin.site)
