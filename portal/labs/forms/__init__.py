"""Forms: those of the lab's pages. ``sign_in`` has those that allauth is told to use."""

from portal.labs.forms.pages import (
    AddressForm,
    InviteForm,
    NewAccountForm,
    PasswordForm,
    ProgramForm,
    ProgramTokenForm,
    RoleForm,
    SetUpForm,
    TokenForm,
)

__all__ = [
    "AddressForm",
    "InviteForm",
    "NewAccountForm",
    "PasswordForm",
    "ProgramForm",
    "ProgramTokenForm",
    "RoleForm",
    "SetUpForm",
    "TokenForm",
]
