"""URLs of the lab's pages; ``sign_in`` has the URLs of ``accounts/``."""

from portal.labs.urls.pages import app_name, urlpatterns

__all__ = ["app_name", "urlpatterns"]
