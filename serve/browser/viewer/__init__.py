"""The pages for watching live and past games, with the reasons for each move, and the official
board's protocol.
"""

from serve.browser.viewer.access import Access, is_a_web_pages
from serve.browser.viewer.routes import home_page, viewer_blueprint

__all__ = ["Access", "home_page", "is_a_web_pages", "viewer_blueprint"]
