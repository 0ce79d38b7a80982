"""The pages people watch: live games, past games, replays that show why a move was made, and the official board's protocol."""

from serve.viewer.access import Access
from serve.viewer.routes import home_page, viewer_blueprint

__all__ = ["Access", "home_page", "viewer_blueprint"]
