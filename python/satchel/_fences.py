"""Tags around text that is data: none that the text itself writes."""

from __future__ import annotations

import re

__all__ = ["free_tag"]


def free_tag(base: str, content: str) -> str:
    """The first of ``base``, ``base-2``, ``base-3`` and so on that is no tag in ``content``.

    Tags that only begin like one of the content's are passed over as well: 2 is taken by 27. Linear
    in the content, however many tags it makes up.
    """
    taken: set[str] = set()
    is_taken = False
    for found in re.finditer(rf"</?{base}(?:-(\d{{1,18}}))?", content, re.IGNORECASE):
        is_taken = True
        digits = found[1] or ""
        taken.update(digits[:end] for end in range(1, len(digits) + 1))
    number = 2
    while str(number) in taken:
        number += 1
    return f"{base}-{number}" if is_taken else base
