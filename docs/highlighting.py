"""Code blocks without an element around each word that looks like plain text, as names and brackets do, or around each
operator: with the former, a page of recipes would be up to half as large again, and with the latter a tenth."""

from functools import cache

from pygments.formatters import HtmlFormatter
from pygments.styles import get_style_by_name
from pygments.token import Operator, Text
from sphinx.highlighting import PygmentsBridge


def setup(app):
    @cache
    def is_plain(kind):
        styles = map(get_style_by_name, (app.config.pygments_style, app.config.pygments_dark_style))
        return kind is Operator or all(style.style_for_token(kind) == style.style_for_token(Text) for style in styles)

    class Formatter(HtmlFormatter):
        def format_unencoded(self, tokensource, outfile):
            super().format_unencoded(((Text if is_plain(kind) else kind, text) for kind, text in tokensource), outfile)

    PygmentsBridge.html_formatter = Formatter
    return {"parallel_read_safe": True, "parallel_write_safe": True}
