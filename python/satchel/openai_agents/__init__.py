"""A bridge to the OpenAI Agents SDK: sessions in any store, and windows that fit.

`SatchelSession` keeps a conversation in any store of satchel's; `context_filter` packs what
each model call gets; `session_input_callback` joins stored items and new ones at whole steps. The
SDK itself (extra ``openai-agents``) is imported by the page-in tool and for what only it knows.
"""

from satchel.openai_agents.filtering import ContextFilter, context_filter
from satchel.openai_agents.joining import session_input_callback
from satchel.openai_agents.session import SatchelSession

__all__ = ["ContextFilter", "SatchelSession", "context_filter", "session_input_callback"]
