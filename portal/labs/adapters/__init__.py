"""What django-allauth asks Tessera: about accounts, second factors and the provider of sign-in."""
