from tests.portal.embedded_rois import encoder, world  # noqa: F401 - fixtures
