from functools import lru_cache

from django import template
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from markdown_it import MarkdownIt

register = template.Library()

# HTML in the source stays text, and there are no pictures: a page calls no other host.
renderer = MarkdownIt("commonmark", {"html": False}).disable(["image", "html_block", "html_inline"])


@register.filter
@lru_cache(maxsize=256)  # the same instruction stands on every task page
def markdown(text: str) -> SafeString:
    """A researcher's text as HTML; any markup in it is escaped by the renderer."""
    return mark_safe(renderer.render(text))  # noqa: S308  # the renderer escapes


@register.filter
def worded(texts: dict[str, str]) -> str:
    """Of `{"ru": …, "en": …}` the text in the reader's language, or in the first that has one."""
    return texts.get(get_language() or "") or next((text for text in texts.values() if text), "")
