"""What `satchel.openai` and `satchel.anthropic` share: asking with a window, recording the reply.

``reply`` says what comes back, ``asking`` and ``streaming`` ask, ``chat``, ``responses`` and
``messages`` know one API each. No client is imported before one is used.
"""

from __future__ import annotations

from satchel.clients.asking import AsyncModel, Model
from satchel.clients.reply import Reply, ToolCall
from satchel.clients.streaming import AsyncReplyStream, ReplyStream

__all__ = ["AsyncModel", "AsyncReplyStream", "Model", "Reply", "ReplyStream", "ToolCall"]
