"""The web server of all pages: access, limits on connections, host names."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.streaming.web.host_names import split_names
    from shadowtime.shared.streaming.web.server import (
        Handler,
        Route,
        address_of,
        listening,
        require_port,
        shutdown_event,
    )

__getattr__ = lazy_exports(__name__)
