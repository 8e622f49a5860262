"""What can be read off a user's plain statements without a model, in English and Korean.

Only users are read, and only what they say of themselves: identity, preference, decision,
constraint. A question, a condition, a doubt, a past habit, somebody else's words or a role play is
no statement, and gives nothing. Patterns are bounded, so the cost is linear in the text.
"""

# ruff: noqa: RUF001, E501 - what people type has curly quotes and wide signs; endings are listed

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from satchel.memory.analysis import terms_of
from satchel.memory.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from satchel.memory.findings import Said
    from satchel.memory.item import Kind

__all__ = ["RuleExtractor"]

_LONGEST_SENTENCE: Final = 300
_LONGEST_TEXT: Final = 50_000


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern with a group ``v``, and what it says.

    Attributes:
        pattern: matched from the start of a clause.
        text: the statement; ``{v}`` is the value, ``{o}`` the group of that name.
        key: the key; ``{o}`` is the topic of that group or of the value, in terms.
        confidence: how sure such a statement is.
        kind: kind of the item.
    """

    pattern: re.Pattern[str]
    text: str
    key: str | None
    confidence: float = 0.9
    kind: Kind = "semantic"


_VALUE: Final = r"(?P<v>[^,.;!?\n]{1,80})"
_NAME: Final = r"(?P<v>[^\W\d_][\w'’-]{0,30}(?: [A-ZÀ-Þ][\w'’-]{0,30}){0,2})"
_SURELY: Final = r"(?:(?:really|also|still|now|always|just|absolutely|definitely) ){0,2}"


def _english(pattern: str, text: str, key: str | None, **rest: Any) -> _Rule:  # noqa: ANN401 - the fields of a rule
    source = (
        rf"(?:(?:and|but|so|well|hi|hello|hey|oh|yes|no|also|by the way|ok|okay)[, ]+)*{pattern}"
    )
    flagged = re.compile(source, re.IGNORECASE)
    return _Rule(flagged, text, key, **rest)


def _korean(pattern: str, text: str, key: str | None, **rest: Any) -> _Rule:  # noqa: ANN401 - the fields of a rule
    source = rf"(?:(?:안녕하세요|그리고|네|아|참고로|그런데|저기)[,.! ]+)*(?:(?:저는|나는|전|난|제가|내가) ?)?{pattern}"
    return _Rule(re.compile(source), text, key, **rest)


_ENGLISH: Final = (
    _english(rf"my name(?: is|['’]s) {_NAME}$", "The user's name is {v}.", "name", confidence=0.95),
    _english(rf"(?:please )?call me {_NAME}$", "The user wants to be called {v}.", "name"),
    _english(rf"i(?: am|['’]m) called {_NAME}$", "The user's name is {v}.", "name"),
    _english(
        rf"i {_SURELY}live in {_VALUE}$", "The user lives in {v}.", "residence", confidence=0.9
    ),
    _english(
        rf"i(?: have|['’]ve)? (?:just |recently )?moved to {_VALUE}$",
        "The user lives in {v}.",
        "residence",
    ),
    _english(rf"i(?: am|['’]m) (?:originally )?from {_VALUE}$", "The user is from {v}.", "origin"),
    _english(rf"i {_SURELY}work as (?:an? )?{_VALUE}$", "The user works as {v}.", "occupation"),
    _english(rf"i {_SURELY}work (?:at|for) {_VALUE}$", "The user works at {v}.", "employer"),
    _english(rf"my birthday is (?:on )?{_VALUE}$", "The user's birthday is {v}.", "birthday"),
    _english(
        rf"my (?P<o>job|profession|time ?zone|native language|mother tongue|hometown|shoe size"
        rf"|employer|address|wife|husband|partner|son|daughter|dog|cat)(?:['’]s name)? is {_VALUE}$",
        "The user's {o} is {v}.",
        "{o}",
    ),
    _english(
        rf"my favou?rite (?P<o>[a-z][\w ]{{1,30}}) is {_VALUE}$",
        "The user's favourite {o} is {v}.",
        "favourite {o}",
    ),
    _english(rf"i {_SURELY}prefer {_VALUE}$", "The user prefers {v}.", None),
    _english(
        rf"i {_SURELY}(?:like|love|enjoy) (?!it\b|that\b|this\b|to know\b){_VALUE}$",
        "The user likes {v}.",
        "liking {o}",
        confidence=0.85,
    ),
    _english(
        rf"i {_SURELY}(?:hate|dislike|can['’]?t stand|cannot stand|do not like|don['’]t like)"
        rf" (?!it\b|that\b|this\b){_VALUE}$",
        "The user does not like {v}.",
        "liking {o}",
        confidence=0.85,
    ),
    _english(
        rf"i(?: am|['’]m) (?:severely |very )?allergic to {_VALUE}$",
        "The user is allergic to {v}.",
        "allergy {o}",
        confidence=0.95,
    ),
    _english(
        r"i(?: am|['’]m) (?:a )?(?P<v>vegan|vegetarian|pescatarian|teetotaller|left-handed"
        r"|colou?r-?blind)$",
        "The user is {v}.",
        "being {o}",
    ),
    _english(
        rf"i (?:can['’]?t|cannot|do not|don['’]t) (?:eat|drink) {_VALUE}$",
        "The user does not eat or drink {v}.",
        "diet {o}",
    ),
    _english(
        rf"(?:i|we)(?: have|['’]ve)? (?:finally )?decided (?:to|on|that) {_VALUE}$",
        "Decided: {v}.",
        None,
        confidence=0.85,
    ),
    _english(rf"we agreed (?:to|on|that) {_VALUE}$", "Agreed: {v}.", None, confidence=0.85),
    _english(rf"let['’]s go with {_VALUE}$", "Decided: go with {v}.", None, confidence=0.8),
    _english(
        r"(?:please )?(?P<v>(?:never|do not ever|don['’]t ever) [^,.;!?\n]{3,80})$",
        "Rule of the user's: {v}.",
        None,
        kind="procedural",
    ),
    _english(
        r"(?:please |from now on,? )(?P<v>always [^,.;!?\n]{3,80})$",
        "Rule of the user's: {v}.",
        None,
        kind="procedural",
    ),
    _english(rf"(?:my|our|the) (?P<o>deadline|budget) is {_VALUE}$", "The {o} is {v}.", "{o}"),
)

_PERSON: Final = r"(?P<v>[가-힣A-Za-z]{1,20}?)"
_THING: Final = r"(?P<v>[^,.;!?\n]{1,40}?)"
_IS: Final = r"(?:이에요|예요|이예요|입니다|이야|야|이다|라고 해요?|라고 합니다)"

_KOREAN: Final = (
    _korean(rf"(?:제|내) 이름은 {_PERSON}{_IS}$", "사용자의 이름은 {v}.", "name", confidence=0.95),
    _korean(rf"{_PERSON}(?:이)?라고 불러 ?(?:주세요|줘)$", "사용자를 {v}(이)라고 부름.", "name"),
    _korean(
        rf"(?:지금 |요즘 |현재 )?{_THING}에 (?:살아요|살아|삽니다|살고 있어요?|살고 있습니다|산다)$",
        "사용자는 {v}에 삶.",
        "residence",
    ),
    _korean(
        rf"(?:최근에 |얼마 전 |지난달에 )?{_THING}(?:으로|로) 이사(?:했어요?|했습니다|왔어요?|왔습니다)$",
        "사용자는 {v}에 삶.",
        "residence",
    ),
    _korean(
        rf"{_THING}에서 (?:일해요?|일합니다|일하고 있어요?|일하고 있습니다|근무해요?|근무합니다)$",
        "사용자는 {v}에서 일함.",
        "employer",
    ),
    _korean(rf"(?:제|내) 직업은 {_THING}{_IS}$", "사용자의 직업은 {v}.", "occupation"),
    _korean(rf"(?:제|내) 생일은 {_THING}{_IS}$", "사용자의 생일은 {v}.", "birthday"),
    _korean(rf"(?:제|내) 고향은 {_THING}{_IS}$", "사용자의 고향은 {v}.", "origin"),
    _korean(
        rf"(?:제|내)가 (?:가장|제일) 좋아하는 (?P<o>[가-힣]{{1,10}})(?:은|는) {_THING}{_IS}$",
        "사용자가 가장 좋아하는 {o}: {v}.",
        "favourite {o}",
    ),
    _korean(
        rf"{_THING}(?:을|를|이|가)? ?(?:정말 |너무 |아주 )?(?:좋아해요?|좋아합니다|선호해요?|선호합니다)$",
        "사용자는 {v} 좋아함.",
        "liking {o}",
        confidence=0.85,
    ),
    _korean(
        rf"{_THING}(?:을|를|이|가|은|는)? ?(?:정말 |너무 )?(?:싫어해요?|싫어합니다|싫어요?|안 좋아해요?|안 좋아합니다)$",
        "사용자는 {v} 싫어함.",
        "liking {o}",
        confidence=0.85,
    ),
    _korean(
        rf"{_THING} ?알레르기가 (?:있어요?|있습니다)$",
        "사용자는 {v} 알레르기가 있음.",
        "allergy {o}",
        confidence=0.95,
    ),
    _korean(
        rf"{_THING}(?:을|를|은|는)? ?못 (?:먹어요?|먹습니다|마셔요?|마십니다)$",
        "사용자는 {v} 못 먹음.",
        "diet {o}",
    ),
    _korean(
        rf"(?:우리는 |저희는 )?{_THING}기로 (?:결정했어요?|결정했습니다|했어요?|했습니다|정했어요?|정했습니다|합의했어요?|합의했습니다)$",
        "결정: {v}기로 함.",
        None,
        confidence=0.85,
    ),
    _korean(
        rf"(?:우리는 |저희는 )?{_THING}(?:으로|로) (?:결정했어요?|결정했습니다|했어요?|했습니다|정했어요?|정했습니다|합의했어요?|합의했습니다|확정했어요?|확정했습니다)$",
        "결정: {v}(으)로 함.",
        None,
        confidence=0.8,
    ),
    _korean(
        r"(?P<v>(?:절대|반드시|항상|앞으로는?) [^,.;!?\n]{2,60}?(?:하지 ?마세요|하지 ?마|마세요|해 ?주세요|해 ?줘|하세요))$",
        "사용자의 규칙: {v}.",
        None,
        kind="procedural",
    ),
    _korean(rf"(?:제|우리|저희)? ?(?P<o>마감|예산)(?:일)?은 {_THING}{_IS}$", "{o}: {v}.", "{o}"),
)

_SENTENCE: Final = re.compile(r"[^.!?。！？\n]{1,300}[.!?。！？]?")
_CLAUSE: Final = re.compile(
    r"[;,]| and (?=i\b|my\b)| but (?=i\b|my\b)|(?<=고) (?=저는|제|나는|내)", re.IGNORECASE
)
_HANGUL: Final = re.compile(r"[가-힣]")
_NO_STATEMENT: Final = re.compile(
    r"\b(?:if|unless|suppose|imagine|pretend|maybe|perhaps|probably|possibly|might|would|could"
    r"|used to|not sure|i think|i guess|i believe|they say|he says|she says|he said|she said"
    r"|says that|told me|no longer|any ?more|role-?play|let['’]s say|for example|e\.g|as if"
    r"|wish|hypothetically|in the (?:story|novel|book|film|game)|my character)\b"
    r"|만약|만일|라면|다면|아마|혹시|것 같|듯|예를 들|가정|상상|역할|라고 (?:했|말|하더|그러)|대요|더라"
    r"|이었|였어|예전에|옛날에|더 이상|이제는? 안|[\"“”«»「」]",
    re.IGNORECASE,
)


class RuleExtractor:
    """Reads plain statements off what users say; needs no model and no network."""

    @property
    def name(self) -> str:
        """What the source of an item calls it."""
        return "rules"

    async def extract(self, said: Sequence[Said], /) -> list[Finding]:
        """See `Extractor.extract`."""
        return [found for one in said if one.role == "user" for found in _read(one)]


def _read(said: Said) -> Iterator[Finding]:
    for sentence in _SENTENCE.findall(said.text[:_LONGEST_TEXT]):
        if sentence[-1] in "?？" or _NO_STATEMENT.search(sentence):
            continue
        rules = _KOREAN if _HANGUL.search(sentence) else _ENGLISH
        for clause in (sentence, *_CLAUSE.split(sentence)):
            plain = clause.strip(" \t.!。！~")[:_LONGEST_SENTENCE]
            found = _finding(rules, plain, said)
            if found is not None:
                yield found
                if clause is sentence:
                    break


def _finding(rules: Sequence[_Rule], clause: str, said: Said) -> Finding | None:
    for rule in rules:
        match = rule.pattern.match(clause)
        if match is None:
            continue
        groups = match.groupdict()
        value = groups["v"].strip()
        topic = (groups.get("o") or value).strip()
        key = rule.key
        if key is not None:
            key = key.format(o=" ".join(terms_of(topic)) or topic.casefold())
        return Finding(
            text=rule.text.format(v=value, o=topic.casefold()),
            quote=clause,
            message=said.index,
            confidence=rule.confidence,
            kind=rule.kind,
            key=key,
            time=said.time,
        )
    return None
