"""Adapters of django-allauth for accounts, second factors and OpenID Connect."""
