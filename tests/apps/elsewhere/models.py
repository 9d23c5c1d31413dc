from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models


class Member(AbstractBaseUser, PermissionsMixin):
    """Somebody who signs in with an e-mail address, and has no other name."""

    email = models.EmailField(unique=True)
    branch = models.CharField(max_length=30, default="head office")
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = ["branch"]
    objects = BaseUserManager["Member"]()

    def __str__(self) -> str:
        return self.email
