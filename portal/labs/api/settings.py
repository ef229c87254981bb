"""Settings of a lab over REST."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from portal.core.api.views import ApiView
from portal.core.models import BaseModel
from portal.labs.models import Lab, Role, TokenArea, User
from portal.labs.requests import user_of
from portal.labs.rules import require_role
from portal.labs.selectors import lab_named

_Row = TypeVar("_Row", bound=BaseModel)


class LabSettingsApi(ApiView, Generic[_Row]):
    """One kind of settings of a lab: members read them, managers set them."""

    area = TokenArea.LAB
    if_match: ClassVar = {"PUT": False}
    serializer_class: type[BaseSerializer[Any]]

    def current(self, lab: Lab) -> _Row:
        """The settings of the lab, or the usual ones."""
        raise NotImplementedError

    def change(self, lab: Lab, user: User, row: _Row, data: Mapping[str, Any]) -> _Row:
        """Set what was sent, by the service that is the settings' only writer."""
        raise NotImplementedError

    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Return the settings. Members of the lab only."""
        lab = lab_named(user_of(request), id)
        return Response(self.representation(self.register(self.current(lab))))

    def put(self, request: Request, id: uuid.UUID) -> Response:
        """Replace the settings. Managers of the lab only."""
        user = user_of(request)
        lab = lab_named(user, id)
        require_role(user, lab.pk, at_least=Role.MANAGER)
        body = self.serializer_class(data=request.data)
        body.is_valid(raise_exception=True)
        row = self.register(self.current(lab))
        return Response(self.representation(self.change(lab, user, row, body.validated_data)))

    def representation(self, row: _Row) -> Any:
        """The settings as every answer has them."""
        return self.serializer_class(row).data
